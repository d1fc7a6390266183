"""Throughput is that of the steady steps."""

from __future__ import annotations

import pytest

from src.report.timing import StepTimes


def times(durations, wait=0.0):
    found = StepTimes()
    for duration in durations:
        found.add(wait, duration)
    return found


@pytest.mark.parametrize(("steps", "left_out"), [(1, 1), (10, 1), (11, 2), (100, 10), (200, 20), (1000, 20)])
def test_the_first_steps_are_left_out(steps, left_out):
    assert times([1.0] * steps).num_warmup == left_out


def test_compilation_does_not_count_and_waiting_does():
    metrics = times([60.0] + [0.5] * 9, wait=0.5).metrics("train", 32)
    assert metrics["train.total_ips"] == pytest.approx(32.0)
    assert metrics["train.latency_avg"] == metrics["train.latency_50"] == metrics["train.latency_100"] == 1.0


def test_what_is_done_between_steps_counts_in_the_rate_but_not_as_waiting():
    found = StepTimes()
    for _ in range(10):
        found.add(0.1, 0.4, 1.0)
    assert found.metrics("train", 32)["train.total_ips"] == pytest.approx(32.0)
    assert sum(found.waits) == pytest.approx(1.0)


def test_percentiles_are_of_the_steps():
    metrics = times([9.0] + [0.1] * 8 + [0.9]).metrics("val", 1)
    assert metrics["val.latency_50"] == pytest.approx(0.1)
    assert metrics["val.latency_100"] == 0.9
    assert 0.1 < metrics["val.latency_95"] < 0.9


def test_without_a_steady_step_there_is_no_figure_rather_than_0():
    assert set(times([1.0]).metrics("val", 8).values()) == {None}
    assert "val.total_ips" in times([]).metrics("val", 8)


def test_compiling_is_what_the_first_step_took_beyond_a_steady_one():
    assert times([9.0] + [0.5] * 9).compile_s == pytest.approx(8.5)
    assert times([0.4] + [0.5] * 9).compile_s == 0.0
    assert times([9.0]).compile_s is None
    assert times([]).compile_s is None
