"""The training loss."""

from __future__ import annotations

import mindspore as ms
from mindspore import nn


def training_loss(label_smoothing: float) -> nn.Cell:
    """Mean cross-entropy; the target is 1 - eps + eps/K for the true class and eps/K for the others."""
    return nn.CrossEntropyLoss(label_smoothing=label_smoothing)


class WithLossCell(nn.WithLossCell):
    """Network and loss as one cell that also hands out the logits, for counting right answers."""

    def construct(self, data: ms.Tensor, label: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
        logits = self._backbone(data)
        return self._loss_fn(logits, label), logits
