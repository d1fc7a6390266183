"""Loss scaling: float16 holds nothing below 6e-8, so small gradients are carried as multiples."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops

# As in PyTorch's GradScaler: start here, halve at an overflow, double after so many updates without one.
INITIAL_SCALE, GROWTH_UPDATES, FACTOR = 2.0**16, 2000, 2.0
# NVIDIA's apex stops growing at 2^24; below 1 nothing would be gained, gradients that large are divergence.
MAX_SCALE, MIN_SCALE = 2.0**24, 1.0


class LossScale(nn.Cell):
    """The factor on the loss, and its rule (Micikevicius et al., 2018); both numbers are in checkpoints."""

    def __init__(self, scale: float, dynamic: bool) -> None:
        super().__init__(auto_prefix=False)
        self.dynamic = dynamic
        self.scale = ms.Parameter(np.array(scale, np.float32), name="loss_scale", requires_grad=False)
        self.good_updates = ms.Parameter(np.zeros((), np.int32), name="good_updates", requires_grad=False)

    def construct(self, finite: ms.Tensor) -> ms.Tensor:
        """Adjust the scale after an update; whether it could be lowered no further before."""
        if not self.dynamic:
            return ops.ones_like(finite)
        scale = self.scale * 1.0
        good = ops.select(finite, self.good_updates + 1, ops.zeros_like(self.good_updates))
        grows = good >= GROWTH_UPDATES
        raised = ops.minimum(scale * FACTOR, MAX_SCALE)
        lowered = ops.maximum(scale / FACTOR, MIN_SCALE)
        ops.assign(self.scale, ops.select(finite, ops.select(grows, raised, scale), lowered))
        ops.assign(self.good_updates, ops.select(grows, ops.zeros_like(good), good))
        return scale <= MIN_SCALE


class ScaledLoss(nn.Cell):
    """Network and loss -> (loss x scale, from which gradients are taken; loss; logits)."""

    def __init__(self, network: nn.Cell, loss_scale: LossScale) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.loss_scale = network, loss_scale

    def construct(self, *columns: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor, ms.Tensor]:
        loss, logits = self.network(*columns)
        return loss * self.loss_scale.scale, loss, logits


def loss_scale(asked: float | str | None, dtype: str) -> LossScale | None:
    """The scale that --loss-scale asks for; None where there is nothing to scale."""
    if dtype != "float16":
        return None
    if asked in (None, "dynamic"):
        return LossScale(INITIAL_SCALE, dynamic=True)
    return LossScale(float(asked), dynamic=False)
