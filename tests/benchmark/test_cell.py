"""What is read from the report of a run, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from src.benchmark.cell import Cell, mean, metric_keys, read
from src.benchmark.running import Ended
from src.config.benchmark import Benchmark

BENCHMARK = Benchmark(num_devices=(2,), batch_size=(4,), epochs=3, warmup=1, mode="train")
KEYS = metric_keys(["train"])


def document(**changes: Any) -> dict[str, Any]:
    times = {key: [9.0, 1.0, 2.0] for key in KEYS if "latency" in key}
    return {
        "schema_version": 1,
        "status": "completed",
        "model": "resnetv15",
        "ngpus": 2,
        "total_duration": 1.0,
        "cmd": [],
        "metrics": {"train.total_ips": [1.0, 100.0, 300.0], **times},
        "epochs": [0, 1, 2],
        "config": {"batch-size": 4},
        **changes,
    }


def result(folder: Path, report: Any, code: int = 0, timed_out: bool = False) -> Any:
    if report is not None:
        (folder / "report.json").write_text(report if isinstance(report, str) else json.dumps(report))
    return read(Cell(2, 4, folder), Ended(code, 1.0, timed_out, "its last words"), BENCHMARK, "report.json")


def test_rates_have_the_harmonic_mean_and_times_the_arithmetic_one_without_warm_up(tmp_path: Path) -> None:
    found = result(tmp_path, document())
    assert found.state == "completed"
    assert found.metrics == {"train.total_ips": 150.0, **dict.fromkeys(KEYS[1:], 1.5)}
    assert found.epochs["train.total_ips"] == [1.0, 100.0, 300.0]
    assert found.reasons == {}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ngpus": 1}, "the report tells of devices 1, not 2"),
        ({"config": {"batch-size": 8}}, "the report tells of batch size 8, not 4"),
        ({"status": "interrupted"}, "the report tells of status interrupted, not completed"),
        (
            {"epochs": [0, 1], "metrics": {key: [1.0, 2.0] for key in KEYS}},
            "the report tells of epochs 2, not 3",
        ),
        ({"metrics": {}}, "train.total_ips: the run did not report it"),
    ],
)
def test_another_run_or_half_a_run_does_not_count(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    found = result(tmp_path, document(**changes))
    assert set(found.metrics.values()) == {None}
    assert found.reason == reason


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"schema_version": 1}'])
def test_an_absent_or_damaged_report(text: Any, tmp_path: Path) -> None:
    found = result(tmp_path, text)
    assert (found.state, set(found.metrics.values())) == ("failed", {None})
    assert "report" in found.reason


def test_a_missing_figure_is_null_with_the_runs_own_reason_and_the_others_stay(tmp_path: Path) -> None:
    report = document(null_reasons={"train.latency_50": "no step is steady"})
    report["metrics"]["train.latency_50"] = [1.0, None, 2.0]
    found = result(tmp_path, report)
    assert found.state == "incomplete"
    assert found.reasons == {"train.latency_50": "train.latency_50: no step is steady"}
    assert (found.metrics["train.latency_50"], found.metrics["train.latency_90"]) == (None, 1.5)


def test_of_the_warm_up_nothing_need_be_there(tmp_path: Path) -> None:
    report = document()
    report["metrics"]["train.total_ips"][0] = None
    assert result(tmp_path, report).metrics["train.total_ips"] == 150


def test_a_failure_is_told_by_the_report_or_else_by_the_last_words(tmp_path: Path) -> None:
    found = result(
        tmp_path, document(status="failed", status_reason="rank 1 was killed by SIGKILL"), code=137
    )
    assert found.reason == "runner ended with code 137: rank 1 was killed by SIGKILL"
    (tmp_path / "report.json").unlink()
    found = result(tmp_path, None, code=-9)
    assert found.reason == "runner was killed by SIGKILL: its last words"
    assert found.exit_code == -9


def test_a_run_over_its_time_has_no_figures_even_if_it_ended_well_at_last(tmp_path: Path) -> None:
    found = result(tmp_path, document(), timed_out=True)
    assert set(found.metrics.values()) == {None}
    assert "--timeout" in found.reason


def test_means() -> None:
    assert mean("val.total_ips", [1.0, 3.0]) == pytest.approx(1.5)
    assert mean("val.latency_100", [1.0, 3.0]) == 2
    assert mean("val.total_ips", [1.0, None]) is None
    assert mean("val.total_ips", []) is None
