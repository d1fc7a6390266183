"""What the training step keeps, what it skips, and that its parts work together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from src.config import Training
from src.train.schedule import Schedule, Segment
from tests.golden import spec
from tests.models.test_resnet import golden_network

SIDE, BATCH = 16, 8


def golden_schedule(peak: float) -> Schedule:
    """The rates of the golden runs, with a step as an epoch."""
    warm = Segment("linear", 0.0, spec.WARMUP, peak, spec.WARMUP)
    return Schedule((warm, Segment("cosine", spec.WARMUP, spec.STEPS, peak)))


def build(training: Training, network=None, plan: Schedule | None = None):
    """A network, golden ResNet-18 unless given, and its training step."""
    from src.train.fit import training_step

    network = golden_network("resnet18_v1.5@64", 10) if network is None else network
    step = training_step(network, training, plan or golden_schedule(0.004), 1)
    step.set_train()
    return network, step


def small(training: Training, batch_norm: bool = True):
    """The smallest network with all kinds of parameters, drawn from one seed, at a constant rate."""
    import mindspore as ms
    from mindspore import nn

    ms.set_seed(3)
    norm = [nn.BatchNorm2d(6)] if batch_norm else []
    layers = [nn.Conv2d(3, 6, 3), *norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(6, 10)]
    return build(training, nn.SequentialCell(*layers), Schedule((Segment("constant", 0, 1, 0.1),)))


def batch(i: int = 0):
    images, labels = spec.step_batch(i, BATCH, SIDE)
    return images, labels.astype(np.int32)


def call(step, images, labels) -> float:
    import mindspore as ms

    return float(step(ms.Tensor(images), ms.Tensor(labels)).asnumpy())


def ms_tensor(array: np.ndarray):
    import mindspore as ms

    return ms.Tensor(array)


def state(cell) -> dict[str, np.ndarray]:
    return {p.name: p.asnumpy().copy() for p in cell.get_parameters()}


def changed(before: dict, cell) -> set[str]:
    return {name for name, value in state(cell).items() if value.tobytes() != before[name].tobytes()}


def with_infinity(images):
    broken = images.copy()
    broken[0, 0, 0, 0] = np.inf
    return broken


def test_the_sums_are_those_of_the_steps_and_start_anew(graph_mode):
    from src.train.step import SUMS

    _, step = small(Training())
    losses = [call(step, *batch(i)) for i in range(3)]
    sums = dict(zip(SUMS, step.take_sums()))
    assert sums["loss"] == pytest.approx(sum(losses), rel=1e-6)
    assert (sums["steps"], sums["counted"], sums["skipped"]) == (3, 24, 0)
    assert 0 <= sums["top1"] <= sums["top5"] <= 24
    assert step.take_sums() == [0] * len(SUMS)


def test_a_checkpoint_holds_all_that_the_next_step_needs(graph_mode):
    _, step = small(Training(ema=0.9, dtype="float16"))
    names = {p.name for p in step.get_parameters()}
    assert {"moments.0.weight", "global_step", "0.weight", "1.moving_mean"} <= names
    assert {"ema.0.weight", "ema.1.moving_mean", "loss_scale", "good_updates", "streak"} <= names
    assert not any("learning_rate" in name for name in names), "a stored table would overwrite a new schedule"


@pytest.mark.parametrize(
    "optimizer",
    ["sgd", "adamw", *(pytest.param(name, marks=pytest.mark.slow) for name in ("nag", "lars", "lamb"))],
)
def test_a_step_without_finite_gradients_leaves_everything_but_its_count(graph_mode, optimizer):
    _, step = small(Training(optimizer=optimizer, ema=0.9, mom=0.875))
    call(step, *batch(0))
    before = state(step)
    images, labels = batch(1)
    call(step, with_infinity(images), labels)
    assert changed(before, step) == {"global_step", "sums", "streak"}
    assert int(step.optimizer.global_step.asnumpy()[0]) == 2, "the schedule goes on"
    assert step.take_sums()[-1] == 1
    assert step.skipped_in_a_row() == 1
    call(step, images, labels)
    assert {"0.weight", "1.moving_mean", "ema.0.weight"} <= changed(before, step), "and the next one works"
    assert np.isfinite(np.concatenate([value.ravel() for value in state(step).values()])).all()


def test_a_loss_that_is_no_number_is_left_out_of_the_average(graph_mode):
    from src.train.assigning import assign
    from src.train.step import SUMS

    _, step = small(Training(), batch_norm=False)
    finite = call(step, *batch(0))
    assign(step.weights[-1], np.full(10, np.nan))
    assert math.isnan(call(step, *batch(1)))
    sums = dict(zip(SUMS, step.take_sums()))
    assert (sums["loss"], sums["steps"], sums["skipped"]) == (pytest.approx(finite, rel=1e-6), 1, 1)


def test_skipped_steps_are_counted_as_long_as_none_is_made_between_them(graph_mode):
    _, step = small(Training())
    images, labels = batch(0)
    found = []
    for broken in (True, True, False, True, True, True):
        call(step, with_infinity(images) if broken else images, labels)
        found.append(step.skipped_in_a_row())
    assert found == [1, 2, 0, 1, 2, 3]


def test_an_overflow_halves_the_scale_and_leaves_weights_and_momentum(graph_mode):
    _, step = small(Training(dtype="float16", loss_scale="dynamic"))
    call(step, *batch(0))
    before = state(step)
    images, labels = batch(1)
    call(step, with_infinity(images), labels)
    assert changed(before, step) == {"global_step", "sums", "loss_scale", "good_updates"}
    assert float(step.loss_scale.scale.asnumpy()) == before["loss_scale"] / 2
    assert step.skipped_in_a_row() == 0, "a scale that can still fall is no divergence"


def test_a_fixed_scale_stays_and_its_overflows_are_divergence(graph_mode):
    _, step = small(Training(dtype="float16", loss_scale=8.0))
    images, labels = batch(0)
    for _ in range(3):
        call(step, with_infinity(images), labels)
    assert float(step.loss_scale.scale.asnumpy()) == 8
    assert step.skipped_in_a_row() == 3


def test_batches_accumulated_equal_one_batch_of_all(graph_mode):
    """Without batch norm, whose statistics are those of each batch."""
    images, labels = batch(0)
    weights = []
    for k in (1, 2):
        network, step = small(Training(accumulation=k, ema=0.5), batch_norm=False)
        for _ in range(2):
            for part in range(k):
                rows = slice(part * BATCH // k, (part + 1) * BATCH // k)
                before = state(network)
                call(step, images[rows], labels[rows])
                assert bool(changed(before, network)) == (part == k - 1), (
                    "only a whole update changes weights"
                )
        assert int(step.optimizer.global_step.asnumpy()[0]) == 2
        weights.append(state(step))
    for accumulated in weights[1:]:
        for name, value in weights[0].items():
            if name not in ("sums", "streak"):
                np.testing.assert_allclose(accumulated[name], value, rtol=1e-5, atol=1e-7, err_msg=name)


def test_one_broken_batch_of_an_update_skips_it_and_does_not_reach_the_next(graph_mode):
    network, step = small(Training(accumulation=2))
    before, (images, labels) = state(network), batch(0)
    for broken in (True, False):
        call(step, with_infinity(images) if broken else images, labels)
    assert changed(before, network) == set()
    call(step, images, labels)
    call(step, images, labels)
    assert "0.weight" in changed(before, network)
    assert np.isfinite(state(network)["0.weight"]).all()
    assert step.take_sums()[-1] == 1


@pytest.mark.slow
def test_images_of_another_size_go_on_from_the_same_weights(graph_mode):
    """Each size is a graph of its own; a second step that always compiled anew is the measure."""
    sides = (16, 24, 16)
    _, going_on = small(Training(ema=0.9))
    for i, side in enumerate(sides):
        images, labels = spec.step_batch(i, BATCH, side)
        before = state(going_on)
        _, fresh = small(Training(ema=0.9))
        for p in fresh.get_parameters():
            p.set_data(ms_tensor(before[p.name]))
        losses = [call(step, images, labels.astype(np.int32)) for step in (going_on, fresh)]
        assert losses[0] == losses[1]
        for name, value in state(fresh).items():
            np.testing.assert_array_equal(state(going_on)[name], value, err_msg=f"{name}, {side} px")


def fifty_losses(**precision) -> list[float]:
    """Of a network of two residual blocks, whose loss falls."""
    import mindspore as ms
    from mindspore import nn

    from src.models.layers import ConvSpec, Norms
    from src.models.resnet import Residual

    ms.set_seed(4)
    norms = Norms(1e-5, 0.9)
    blocks = [Residual([ConvSpec(a, b, 3, 2), ConvSpec(b, b, 3)], norms) for a, b in ((3, 16), (16, 32))]
    network = nn.SequentialCell(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(32, 10))
    plan = Schedule((Segment("constant", 0, 1, 0.1),))
    _, step = build(Training(**precision, wd=5e-4), network, plan)
    losses = [call(step, *batch(i % 3)) for i in range(50)]  # few batches, so that it can learn them
    assert step.take_sums()[-1] == 0, "no step may be skipped"
    assert all(value.dtype != np.float16 for value in state(step).values())
    return losses


@pytest.mark.parametrize("amp", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_float16_follows_float32_within_2_percent_over_50_steps(graph_mode, amp):
    exact, half = fifty_losses(), fifty_losses(dtype="float16", amp=amp)
    assert exact[-1] < exact[0] * 0.7
    assert exact != half
    np.testing.assert_allclose(half, exact, rtol=0.02)
