"""Losses and their gradients against NumPy in float64."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from src.config import Training
from src.data.mixing import Mixing
from tests.golden import spec

CLASSES, BATCH = 7, 5
DRAWN = Mixing(mixup=0.2, cutmix=0.0, size=(8, 8), batch_size=BATCH, steps=1, seed=1, epoch=0, rank=0).draw(0)


def logits_and_labels():
    random = np.random.RandomState(0)
    logits = (random.standard_normal((BATCH, CLASSES)) * 5).astype(np.float32)
    logits[0, :4] = 0, 1e-3, 60, -60  # where a careless formula overflows or loses its gradient
    return logits, random.randint(0, CLASSES, BATCH).astype(np.int32)


def wanted(training: Training, logits: np.ndarray, labels: np.ndarray, share: np.ndarray | None):
    """The loss and its gradient by the logits."""
    x = logits.astype(np.float64)
    targets = spec.smooth_one_hot(labels, CLASSES, training.label_smoothing)
    if share is not None:
        targets = share[:, None] * targets + (1 - share[:, None]) * targets[::-1]
    if training.loss == "ce":
        top = x.max(1, keepdims=True)
        log_sum = top + np.log(np.exp(x - top).sum(1, keepdims=True))
        return -(targets * (x - log_sum)).sum(1).mean(), (np.exp(x - log_sum) - targets) / BATCH
    if training.bce_threshold is not None:
        targets = (targets > training.bce_threshold).astype(np.float64)
    loss = np.maximum(x, 0) - x * targets + np.log1p(np.exp(-abs(x)))
    return loss.mean(), (1 / (1 + np.exp(-x)) - targets) / x.size


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(
    "training",
    [
        Training(label_smoothing=0.0),
        Training(label_smoothing=0.1),
        Training(loss="bce", label_smoothing=0.0),
        Training(loss="bce", label_smoothing=0.1),
        Training(loss="bce", label_smoothing=0.1, bce_threshold=0.2),
        Training(loss="bce", label_smoothing=0.0, bce_threshold=0.0),
    ],
    ids=lambda t: f"{t.loss}-{t.label_smoothing}-{t.bce_threshold}",
)
def test_loss_and_gradient_are_those_of_the_formula(graph_mode, training, mixed):
    import mindspore as ms

    from src.train.loss import training_loss

    logits, labels = logits_and_labels()
    loss = training_loss(training)
    tensors = [ms.Tensor(logits), ms.Tensor(labels)] + [ms.Tensor(DRAWN)] * mixed
    value, gradient = ms.value_and_grad(loss)(*tensors)
    expected, expected_gradient = wanted(training, logits, labels, DRAWN[:, -1] if mixed else None)
    assert float(value.asnumpy()) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(gradient.asnumpy(), expected_gradient, atol=2e-7)


def test_what_decides_the_loss_changes_it():
    """The cases above differ from each other, so that none can stand in for another."""
    logits, labels = logits_and_labels()
    cases = [
        Training(label_smoothing=0.0),
        Training(label_smoothing=0.1),
        Training(loss="bce", label_smoothing=0.0),
        Training(loss="bce", label_smoothing=0.1),
        Training(loss="bce", label_smoothing=0.1, bce_threshold=0.2),
    ]
    values = [wanted(t, logits, labels, share)[0] for t in cases for share in (None, DRAWN[:, -1])]
    # Without smoothing and mixing a threshold of 0.2 changes nothing.
    assert len({round(v, 6) for v in values}) == len(values) - 1


def test_half_precision_logits_are_compared_in_float32(graph_mode):
    import mindspore as ms

    from src.train.loss import training_loss

    logits, labels = logits_and_labels()
    halved = ms.Tensor(logits.astype(np.float16))
    training = dataclasses.replace(Training(), label_smoothing=0.1)
    value = training_loss(training)(halved, ms.Tensor(labels))
    assert value.dtype == ms.float32
    expected, _ = wanted(training, logits.astype(np.float16).astype(np.float32), labels, None)
    assert float(value.asnumpy()) == pytest.approx(expected, rel=1e-6)
