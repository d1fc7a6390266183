"""Where training begins again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from src.errors import OptionError
from src.train import snapshot
from src.train.continuing import Beginning, first_step
from src.train.record import EpochRecord
from src.weights.checkpoint import Checkpoint


def at_step(step: int, batch_size: int = 64, world_size: int = 1) -> Checkpoint:
    meta = {"config": {"batch-size": batch_size}, "world_size": world_size, "progress": {"step": step}}
    return Checkpoint(Path("model_last.safetensors"), {}, meta)


@pytest.mark.parametrize(
    ("images_per_step", "accumulation", "expected"), [(64, 1, 12), (32, 1, 24), (128, 1, 6), (64, 4, 12)]
)
def test_as_many_images_are_behind_it(images_per_step, accumulation, expected):
    record = EpochRecord(1000, accumulation)
    assert first_step(at_step(12), record, images_per_step) == expected
    assert first_step(at_step(6, 32, 4), record, images_per_step) == expected


def test_of_an_epoch_whose_steps_were_all_made_only_the_validation_is_left():
    saved = at_step(12)
    saved.meta["steps_per_epoch"] = 12
    assert first_step(saved, EpochRecord(5), images_per_step=150) == 5


def test_such_an_epoch_keeps_its_figures_and_its_time():
    record = EpochRecord(2)
    record.restart(1)
    for _ in range(2):
        record.times.add(0.0, 0.1)
    record.metrics = {"train.loss": 1.5, "train.total_ips": None}
    record.begun -= 100
    progress = json.loads(json.dumps(record.progress()))
    other = EpochRecord(2)
    other.restart(1)
    other.go_on_from(progress)
    assert other.complete
    assert other.metrics == record.metrics
    assert other.begun == pytest.approx(record.begun, abs=1)
    elsewhere = snapshot.folded(progress, [0.0] * 6, 1, 1, 5)
    assert (elsewhere["step"], elsewhere["metrics"]) == (5, record.metrics)


@pytest.mark.parametrize(
    ("images_per_step", "accumulation", "steps"), [(100, 1, 99), (64, 5, 99), (64, 1, 12)]
)
def test_steps_that_cannot_begin_there_are_refused_with_the_arithmetic(images_per_step, accumulation, steps):
    with pytest.raises(OptionError, match=f"768 images.*{images_per_step * accumulation} images"):
        first_step(at_step(12), EpochRecord(steps, accumulation), images_per_step)


def test_an_epoch_that_was_begun_keeps_its_sums():
    record = EpochRecord(10)
    record.restart(2)
    for _ in range(4):
        record.times.add(0.0, 0.1)
    record.add([8.0, 4, 3, 4, 32, 0], 1)
    record.times.add(0.0, 0.1)
    other = EpochRecord(10)
    other.restart(2)
    other.go_on_from(record.progress())
    assert (other.steps_done, other.first_step, other.loss, other.summed_steps) == (5, 5, 8.0, 4)
    assert other.progress() == record.progress()
    assert Beginning(2, record.progress()).step == 5
    other.restart(3)
    assert (other.first_step, other.steps_done, other.loss) == (0, 0, 0.0)
