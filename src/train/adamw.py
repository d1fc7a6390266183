"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any, Sequence

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class AdamW(nn.Optimizer):
    """Loshchilov and Hutter, 2019, in the form of PyTorch's AdamW.

    w <- w - lr wd w;  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;
    w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps),  t counting the updates made, from 1.
    `decays`: the weight decay of each parameter, in their order.
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
        self.decays, self.eps = tuple(decays), eps
        self.beta1, self.beta2 = ms.Tensor(beta1, ms.float32), ms.Tensor(beta2, ms.float32)
        # Powers of the betas: their own state, so that a skipped step leaves the bias correction alone.
        self.power1 = ms.Parameter(np.ones((), np.float32), name="beta1_power", requires_grad=False)
        self.power2 = ms.Parameter(np.ones((), np.float32), name="beta2_power", requires_grad=False)
        self.moment1 = self._parameters.clone(prefix="moment1", init="zeros")
        self.moment2 = self._parameters.clone(prefix="moment2", init="zeros")
        self.adam = ops.Adam()

    def construct(self, gradients: tuple[ms.Tensor, ...]) -> bool:
        rate = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        power1, power2 = self.power1 * self.beta1, self.power2 * self.beta2
        self.power1, self.power2 = power1, power2
        # The fused operator adds eps to sqrt(v), uncorrected; so scaled, it is the formula above.
        eps = self.eps * ops.sqrt(1 - power2)
        done = True
        for i in range(len(self.decays)):
            w, m, v = self._parameters[i], self.moment1[i], self.moment2[i]
            if self.decays[i] > 0:
                ops.assign(w, w * (1 - rate * self.decays[i]))
            done = ops.depend(
                done, self.adam(w, m, v, power1, power2, rate, self.beta1, self.beta2, eps, gradients[i])
            )
        return done
