"""LARS and LAMB: the update of each layer scaled to the size of its weights, for large batches."""

from __future__ import annotations

from typing import Any, Sequence

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from src.train.gradients import sum_of_squares

LARS_EPS = 1e-8  # against a division by zero, as in NVIDIA's LARC and timm


def norm(x: ms.Tensor) -> ms.Tensor:
    """The L2 norm of all elements, a scalar."""
    return ops.sqrt(sum_of_squares(x))


def ratio_or_one(weight_norm: ms.Tensor, ratio: ms.Tensor, update_norm: ms.Tensor) -> ms.Tensor:
    """1 where a norm is zero: a layer that starts at zero must be able to leave it."""
    both = ops.logical_and(weight_norm > 0, update_norm > 0)
    return ops.select(both, ratio, ops.ones_like(ratio))


def is_adapted(parameter: ms.Parameter) -> bool:
    """Convolution and dense weights; biases and batch norm's gamma and beta keep the plain rate."""
    return bool(parameter.ndim > 1)


class Lars(nn.Optimizer):
    """You et al., 2017 (https://arxiv.org/abs/1708.03888), the rate outside the momentum as in SGD here.

    q = trust |w| / (|g| + wd |w| + eps) for convolution and dense weights, 1 for the others;
    v <- mom v + q (g + wd w);  w <- w - lr v.  This is the form of NVIDIA's LARC and of timm; the paper has
    the rate inside v, which differs while the rate changes. `decays`: of each parameter, in their order.
    """

    def __init__(
        self,
        parameters: Sequence[ms.Parameter],
        decays: Sequence[float],
        rate: Any,
        momentum: float,
        trust: float,
    ) -> None:
        super().__init__(rate, list(parameters))
        self.decays, self.momentum, self.trust = tuple(decays), momentum, trust
        self.adapted = tuple(is_adapted(p) for p in parameters)
        self.moments = self._parameters.clone(prefix="moments", init="zeros")
        self.apply_momentum = ops.ApplyMomentum()

    def construct(self, gradients: tuple[ms.Tensor, ...]) -> bool:
        rate = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        done = True
        for i in range(len(self.decays)):
            w, v, g = self._parameters[i], self.moments[i], gradients[i]
            direction = g + w * self.decays[i] if self.decays[i] > 0 else g
            if self.adapted[i]:
                w_norm, g_norm = norm(w), norm(g)
                ratio = self.trust * w_norm / (g_norm + self.decays[i] * w_norm + LARS_EPS)
                direction = direction * ratio_or_one(w_norm, ratio, g_norm)
            done = ops.depend(done, self.apply_momentum(w, v, rate, direction, self.momentum))
        return done


class Lamb(nn.Optimizer):
    """You et al., 2019 (https://arxiv.org/abs/1904.00962), with bias correction, as timm's Lamb.

    m and v as in Adam;  u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + wd w;
    w <- w - lr q u,  q = |w| / |u| for convolution and dense weights, 1 for the others.
    timm's clipping of the global norm is --grad-clip here. `decays`: of each parameter, in their order.
    """

    def __init__(
        self,
        parameters: Sequence[ms.Parameter],
        decays: Sequence[float],
        rate: Any,
        beta1: float,
        beta2: float,
        eps: float,
    ) -> None:
        super().__init__(rate, list(parameters))
        self.decays, self.beta1, self.beta2, self.eps = tuple(decays), beta1, beta2, eps
        self.adapted = tuple(is_adapted(p) for p in parameters)
        # Powers of the betas: their own state, so that a skipped step leaves the bias correction alone.
        self.power1 = ms.Parameter(np.ones((), np.float32), name="beta1_power", requires_grad=False)
        self.power2 = ms.Parameter(np.ones((), np.float32), name="beta2_power", requires_grad=False)
        self.moment1 = self._parameters.clone(prefix="moment1", init="zeros")
        self.moment2 = self._parameters.clone(prefix="moment2", init="zeros")

    def construct(self, gradients: tuple[ms.Tensor, ...]) -> bool:
        rate = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        power1, power2 = self.power1 * self.beta1, self.power2 * self.beta2
        self.power1, self.power2 = power1, power2
        for i in range(len(self.decays)):
            w, g = self._parameters[i], gradients[i]
            m = self.beta1 * self.moment1[i] + (1 - self.beta1) * g
            v = self.beta2 * self.moment2[i] + (1 - self.beta2) * ops.square(g)
            u = m / (1 - power1) / (ops.sqrt(v / (1 - power2)) + self.eps)
            if self.decays[i] > 0:
                u = u + self.decays[i] * w
            if self.adapted[i]:
                w_norm, u_norm = norm(w), norm(u)
                u = u * ratio_or_one(w_norm, w_norm / u_norm, u_norm)
            ops.assign(self.moment1[i], m)
            ops.assign(self.moment2[i], v)
            ops.assign(w, w - rate * u)
        return True
