"""The training loss: soft targets, cross-entropy or binary cross-entropy, and mixing before the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mindspore as ms
from mindspore import nn, ops

from src.train.mixing import mix_images, mix_targets

if TYPE_CHECKING:
    from src.config import Training


def smooth_targets(labels: ms.Tensor, num_classes: int, smoothing: float) -> ms.Tensor:
    """Labels int32 (batch,) -> float32 (batch, classes): 1 - eps + eps/K for the true class, else eps/K."""
    index = ops.arange(num_classes).astype(ms.int32).reshape((1, num_classes))
    own = ops.cast(index == labels.reshape((-1, 1)), ms.float32)
    return own * (1 - smoothing) + smoothing / num_classes


class BinaryCrossEntropy(nn.Cell):
    """A yes-or-no question for each class, as in "ResNet strikes back" (Wightman et al. 2021, as in timm).

    Mean over batch and classes. With a threshold a target above it is 1, any other 0, so that an image mixed
    of two classes shows both.
    """

    def __init__(self, threshold: float | None) -> None:
        super().__init__()
        self.threshold = threshold

    def construct(self, logits: ms.Tensor, targets: ms.Tensor) -> ms.Tensor:
        if self.threshold is not None:
            targets = ops.cast(targets > self.threshold, ms.float32)
        one = ops.ones_like(logits)  # no weights
        return ops.binary_cross_entropy_with_logits(logits, targets, one, one, "mean")


class TrainingLoss(nn.Cell):
    """Loss of logits (batch, classes) and int32 labels (batch,), smoothed and, with `mixing`, mixed."""

    def __init__(self, label_smoothing: float, compare: nn.Cell) -> None:
        super().__init__()
        self.label_smoothing, self.compare = label_smoothing, compare

    def construct(self, logits: ms.Tensor, labels: ms.Tensor, mixing: ms.Tensor | None = None) -> ms.Tensor:
        targets = smooth_targets(labels, logits.shape[1], self.label_smoothing)
        if mixing is not None:
            targets = mix_targets(targets, mixing)
        return self.compare(ops.cast(logits, ms.float32), targets)


def training_loss(training: Training) -> TrainingLoss:
    """The loss that the options ask for."""
    if training.loss == "bce":
        compare: nn.Cell = BinaryCrossEntropy(training.bce_threshold)
    else:
        # On soft targets, mean over the batch. Gradients within 1e-7 of float64 on the CPU; written out with
        # ops.log_softmax they were 7e-7 off.
        compare = nn.CrossEntropyLoss()
    return TrainingLoss(training.label_smoothing, compare)


class WithLossCell(nn.WithLossCell):
    """Network and loss as one cell that also hands out the logits, for counting right answers.

    `mixing` is the pipeline's third column, where images are mixed (mixup, cutmix). `normalize` makes network
    input of what the pipeline gives, if that has not been done (--normalize-on-device).
    """

    def __init__(self, network: nn.Cell, loss: nn.Cell, normalize: nn.Cell | None = None) -> None:
        super().__init__(network, loss)
        self.normalize = normalize

    def construct(
        self, data: ms.Tensor, label: ms.Tensor, mixing: ms.Tensor | None = None
    ) -> tuple[ms.Tensor, ms.Tensor]:
        if self.normalize is not None:
            data = self.normalize(data)
        if mixing is not None:
            data = mix_images(data, mixing)
        logits = self._backbone(data)
        return self._loss_fn(logits, label, mixing), logits
