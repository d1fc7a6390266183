"""Counts of right answers, on the device."""

from __future__ import annotations

import mindspore as ms
from mindspore import nn, ops

from src.data.sampling import IGNORED_LABEL

TOP_K = (1, 5)


def rank_of_label(logits: ms.Tensor, labels: ms.Tensor) -> ms.Tensor:
    """How many classes come before each row's label (batch,), int32; equal logits rank by class index.

    A row with a NaN never has a rank below the number of classes, so that a diverged network scores nothing.
    """
    num_classes = logits.shape[1]
    index = ops.arange(num_classes).astype(ms.int32).reshape((1, num_classes))
    column = labels.reshape((-1, 1))
    own = ops.cast(index == column, ms.float32)
    # `where` and not a product: inf * 0 would be a NaN.
    own_logit = ops.select(own > 0, logits, ops.zeros_like(logits)).sum(1, keepdims=True)
    ahead = ops.logical_or(logits > own_logit, ops.logical_and(logits == own_logit, index < column))
    rank = ops.cast(ahead, ms.int32).sum(1)
    broken = ops.cast(logits != logits, ms.int32).sum(1)
    return ops.select(broken > 0, ops.zeros_like(rank) + num_classes, rank)


def topk_correct(logits: ms.Tensor, labels: ms.Tensor) -> ms.Tensor:
    """[right in the top 1, right in the top 5] of the rows with a label, float32 (2,).

    With fewer than 5 classes, the top 5 are all classes.
    """
    rank = rank_of_label(logits, labels)
    counted = labels > IGNORED_LABEL
    num_classes = logits.shape[1]
    counts = []
    for k in TOP_K:
        right = ops.logical_and(rank < min(k, num_classes), counted)
        counts.append(ops.cast(right, ms.float32).sum())
    return ops.stack(counts)


class EvalCell(nn.Cell):
    """One batch -> [top-1 right, top-5 right, sum of cross-entropy, rows counted], float32 (4,)."""

    def __init__(self, network: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss = nn.CrossEntropyLoss(reduction="none")

    def construct(self, images: ms.Tensor, labels: ms.Tensor) -> ms.Tensor:
        return self.counts(ops.cast(self.network(images), ms.float32), labels)

    def counts(self, logits: ms.Tensor, labels: ms.Tensor) -> ms.Tensor:
        """The counts of one batch's logits."""
        counted = labels > IGNORED_LABEL
        loss = self.loss(logits, ops.maximum(labels, ops.zeros_like(labels)))
        loss_sum = ops.select(counted, loss, ops.zeros_like(loss)).sum()
        count = ops.cast(counted, ms.float32).sum()
        return ops.concat((topk_correct(logits, labels), ops.stack((loss_sum, count))))


class AnsweringCell(EvalCell):
    """One batch -> the counts of EvalCell, and per row [likeliest class, its probability], float32 (2, b).

    The class is -1 in a row with a NaN. Of equal logits the first class is the answer, as in the counts.
    """

    def construct(self, images: ms.Tensor, labels: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
        logits = ops.cast(self.network(images), ms.float32)
        broken = ops.cast(logits != logits, ms.int32).sum(1) > 0
        # argmax leaves open which of equal logits it takes.
        num_classes = logits.shape[1]
        index = ops.arange(num_classes).astype(ms.int32).reshape((1, num_classes))
        at_top = logits == logits.max(axis=1, keepdims=True)
        likeliest = ops.select(at_top, index, ops.zeros_like(index) + num_classes).min(axis=1)
        likeliest = ops.cast(ops.select(broken, ops.zeros_like(likeliest) - 1, likeliest), ms.float32)
        confidence = ops.softmax(logits, -1).max(axis=1)
        confidence = ops.select(broken, ops.zeros_like(confidence), confidence)
        return self.counts(logits, labels), ops.stack((likeliest, confidence))
