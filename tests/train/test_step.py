"""The training step against 12-step runs of an independent implementation, and what it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from src.config import Training
from src.train.schedule import Schedule, Segment
from tests.golden import spec
from tests.models.test_resnet import golden_network

ARCH = "resnet18_v1.5"
PEAK = "peak0.004"


def golden_schedule(peak: float) -> Schedule:
    """The rates of the golden runs, with a step as an epoch."""
    warm = Segment("linear", 0.0, spec.WARMUP, peak, spec.WARMUP)
    return Schedule((warm, Segment("cosine", spec.WARMUP, spec.STEPS, peak)))


def build(training: Training, network=None):
    from src.train.loss import WithLossCell, training_loss
    from src.train.optimizer import optimizer
    from src.train.step import TrainStep

    network = golden_network(f"{ARCH}@64", 10) if network is None else network
    plan = golden_schedule(0.004)
    step = TrainStep(
        WithLossCell(network, training_loss(training.label_smoothing)),
        optimizer(network, training, plan, 1),
        count_right=True,
    )
    step.set_train()
    return network, step


def run(training: Training):
    """Losses of 12 steps, the network, and its weights before."""
    import mindspore as ms

    network, step = build(training)
    before = {p.name: p.asnumpy().copy() for p in network.trainable_params()}
    losses = []
    for i in range(spec.STEPS):
        images, labels = spec.step_batch(i)
        losses.append(float(step(ms.Tensor(images), ms.Tensor(labels.astype(np.int32))).asnumpy()))
    return losses, network, before, step


def moved_norm(network, before) -> float:
    squares = [
        ((p.asnumpy().astype(np.float64) - before[p.name]) ** 2).sum() for p in network.trainable_params()
    ]
    return float(np.sqrt(sum(squares)))


VARIANTS = {
    "base": Training(wd=spec.WEIGHT_DECAY),
    "nesterov": Training(wd=spec.WEIGHT_DECAY, optimizer="nag"),
    "wd05": Training(wd=0.05),
    "trap_wd05_bn_decayed": Training(wd=0.05, bn_weight_decay=True),
}
DEARER = {"nesterov", "wd05", "trap_wd05_bn_decayed"}  # not in the fast tests


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=[pytest.mark.slow] if v in DEARER else []) for v in VARIANTS]
)
def test_twelve_steps_equal_the_independent_ones(graph_mode, golden, variant):
    table = golden["trajectories"][ARCH][PEAK]
    losses, network, before, _ = run(VARIANTS[variant])
    wanted = table[variant]
    assert losses[:5] == pytest.approx(wanted["losses"][:5], abs=2e-5)
    assert losses == pytest.approx(wanted["losses"], abs=5e-4)
    moved = moved_norm(network, before)
    assert moved == pytest.approx(wanted["moved_norms"]["ALL"], rel=1e-4)
    # What plausible mistakes would give is far from it, so that this test can fail.
    others = [name for name in table if name != variant]
    assert all(abs(moved / table[name]["moved_norms"]["ALL"] - 1) > 1e-3 for name in others)


def test_without_gradient_only_decaying_parameters_shrink(graph_mode):
    """Gamma and beta stay as they are; the others shrink by exactly lr x wd."""
    import mindspore as ms

    from src.train.optimizer import optimizer

    network = golden_network(f"{ARCH}@64", 10)
    before = {p.name: p.asnumpy().copy() for p in network.trainable_params()}
    rate, decay = 0.5, 0.01
    update = optimizer(network, Training(wd=decay), Schedule((Segment("constant", 0, 1, rate),)), 1)
    update(tuple(ms.Tensor(np.zeros(p.shape, np.float32)) for p in network.trainable_params()))
    for p in network.trainable_params():
        kept = 1.0 if p.name.endswith(("gamma", "beta")) else 1 - rate * decay
        np.testing.assert_allclose(p.asnumpy(), before[p.name] * kept, rtol=1e-6, err_msg=p.name)


def test_the_sums_are_those_of_the_steps_and_start_anew(graph_mode):
    import mindspore as ms

    from src.train.step import SUMS

    _, step = build(Training())
    losses = []
    for i in range(3):
        images, labels = spec.step_batch(i)
        losses.append(float(step(ms.Tensor(images), ms.Tensor(labels.astype(np.int32))).asnumpy()))
    sums = dict(zip(SUMS, step.take_sums()))
    assert sums["loss"] == pytest.approx(sum(losses), rel=1e-6)
    assert sums["steps"] == 3
    assert 0 <= sums["top1"] <= sums["top5"] <= 24
    assert step.take_sums() == [0, 0, 0, 0]


def test_momentum_is_part_of_what_a_checkpoint_holds(graph_mode):
    _, step = build(Training())
    names = {p.name for p in step.get_parameters()}
    assert {"moments.conv1.weight", "global_step", "conv1.weight", "bn1.moving_mean"} <= names
    assert not any("learning_rate" in name for name in names), "a stored table would overwrite a new schedule"
