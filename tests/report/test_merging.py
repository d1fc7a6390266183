"""One figure for all ranks."""

from __future__ import annotations

import pytest

from src.report.merging import TOLD, merged
from src.report.timing import StepTimes


def steps(wait: float, duration: float, number: int = 11) -> StepTimes:
    times = StepTimes()
    for _ in range(number):
        times.add(wait, duration, wait + duration + 0.1)
    return times


def told(times: StepTimes) -> list[float]:
    """What a rank with these times gives to `gather`."""
    given: list[list[float]] = []
    merged(times, "train", 8, lambda values: given.append(list(values)) or [list(values)])
    return given[0]


def test_alone_the_figures_are_ones_own():
    times = steps(0.1, 0.3)
    figures, ranks = merged(times, "train", 8, lambda values: [list(values)])
    assert figures["train.total_ips"] == pytest.approx(16.0)
    assert figures["train.data_time"] == pytest.approx(0.9)
    assert figures["train.compute_time"] == pytest.approx(2.7)
    assert figures["train.other_time"] == pytest.approx(0.9)
    assert figures["train.warmup_time"] == pytest.approx(1.0)
    assert ranks["train.ips"] == [pytest.approx(16.0)]


def test_the_slowest_rank_decides_and_the_one_that_waits_longest_tells_the_times():
    here, there = steps(0.1, 0.3), steps(0.5, 0.2)
    figures, ranks = merged(here, "train", 8, lambda values: [list(values), told(there)])
    assert figures["train.total_ips"] == pytest.approx(2 * 8 / 0.8)
    assert figures["train.data_time"] == pytest.approx(4.5)
    assert figures["train.compute_time"] == pytest.approx(1.8)
    assert figures["train.latency_50"] == pytest.approx(0.5), "latencies are this rank's"
    assert ranks["train.ips"] == pytest.approx([16.0, 10.0])
    assert ranks["train.compute_time"] == pytest.approx([2.7, 1.8])


def test_a_rank_without_a_steady_step_does_not_make_the_speed_0():
    figures, _ = merged(steps(0.1, 0.3), "val", 8, lambda values: [list(values), [0.0] * len(TOLD)])
    assert figures["val.total_ips"] == pytest.approx(32.0)
    nothing, _ = merged(StepTimes(), "val", 8, lambda values: [list(values)])
    assert nothing["val.total_ips"] is None
