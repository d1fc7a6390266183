"""Where the time went, and what bounds training."""

from __future__ import annotations

import pytest

from src.report.breakdown import REST, bound_by, breakdown


def seconds(data, compute, other=0.0):
    return {"train.data_time": [data], "train.compute_time": [compute], "train.other_time": [other]}


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        (seconds(1, 99), "compute: 1% of the time of steady steps is waiting for data"),
        (seconds(10, 90), "compute, though 10% of the time"),
        (seconds(20, 80), "data: 20% of the time"),
        (seconds(80, 20), "data: 80% of the time"),
        (seconds(1, 49, 50), "neither data nor compute: 50% of the time passes between the steps"),
        (seconds(60, 10, 30), "data: 60%"),
    ],
)
def test_one_sentence_says_what_bounds_training(metrics, told):
    assert bound_by(metrics).startswith(told)


def test_nothing_is_said_where_nothing_was_measured():
    assert bound_by({}) is None
    assert bound_by({"train.data_time": [None], "train.compute_time": [None]}) is None


def test_the_parts_make_up_the_whole():
    metrics = {
        "epoch_time": [100.0, 50.0, None],
        "train.compute_time": [40.0, 30.0, None],
        "train.data_time": [2.0, 1.0, None],
        "train.other_time": [1.0, 1.0, None],
        "train.warmup_time": [20.0, 5.0, None],
        "train.compile_time": [15.0, 0.0, None],
        "val.time": [12.0, 8.0, None],
        "val.compile_time": [4.0, 0.0, None],
        "checkpoint_time": [3.0, 2.0, None],
    }
    parts = breakdown(metrics)
    assert parts == {
        "computing": 70.0,
        "waiting for data": 3.0,
        "between steps": 2.0,
        "compiling": 19.0,
        "first steps": 10.0,
        "validation": 16.0,
        "checkpoints": 5.0,
        REST: 25.0,
    }
    assert sum(parts.values()) == 150.0


def test_an_older_report_and_one_without_training_have_less_to_tell():
    assert breakdown({"epoch_time": [5.0], "val.time": [5.0]}) == {}
    older = breakdown({"epoch_time": [9.0], "train.compute_time": [5.0], "train.data_time": [1.0]})
    assert (older["computing"], older[REST]) == (5.0, 3.0)
