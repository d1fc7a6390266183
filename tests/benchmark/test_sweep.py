"""What a sweep makes of the figures of its cells."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from src.benchmark import tables
from src.benchmark.cell import Cell, Result, without
from src.benchmark.sweep import Sweep
from src.config.benchmark import Benchmark


def sweep(rates: dict[int, list[float]], warmup: int = 0) -> Sweep:
    """Training at batch size 3, with these images/s by epoch for each number of devices."""
    num_epochs = max(map(len, rates.values()))
    benchmark = Benchmark(tuple(rates), (3,), epochs=num_epochs, warmup=warmup, mode="train")
    found = Sweep(
        benchmark, "resnetv15", ["benchmark.py", "a b"], [Cell(n, 3, Path(f"n{n}")) for n in rates], []
    )
    for cell in found.cells:
        values = rates[cell.num_devices]
        if values:
            metrics = dict.fromkeys(found.keys, 0.0123456) | {"train.total_ips": values[-1]}
            found.results[cell.key] = Result(
                "completed", metrics, {}, {"train.total_ips": list(values)}, 0, 2.0
            )
        else:
            found.results[cell.key] = without("failed", found.keys, "rank `0` was *killed* | by a_signal")
    return found


def test_scaling_is_against_the_smallest_number_of_devices_wherever_it_stands() -> None:
    found = sweep({4: [150.0], 2: [100.0], 8: [400.0]}).as_dict()
    assert found["scaling_base"] == 2
    assert found["scaling"] == {
        "train.total_ips": {
            "4": {"3": {"speedup": 1.5, "efficiency": 0.75}},
            "2": {"3": {"speedup": 1.0, "efficiency": 1.0}},
            "8": {"3": {"speedup": 4.0, "efficiency": 1.0}},
        }
    }


def test_without_the_smallest_number_there_is_no_scaling() -> None:
    found = sweep({1: [], 2: [100.0]}).as_dict()
    assert found["metrics"]["2"]["3"]["train.total_ips"] == 100
    assert found["scaling"]["train.total_ips"]["2"]["3"] == {"speedup": None, "efficiency": None}
    assert found["scaling_base"] == 1


def test_spread_is_that_of_the_measured_epochs() -> None:
    found = sweep({1: [500.0, 100.0, 120.0], 2: [1.0, 2.0, 2.0]}, warmup=1)
    assert [found.spread(cell, "train.total_ips") for cell in found.cells] == [pytest.approx(20 / 120), 0]
    alone = sweep({1: [100.0]})
    assert alone.spread(alone.cells[0], "train.total_ips") is None


def test_the_document_is_strict_json_also_before_anything_was_measured() -> None:
    waiting = sweep({1: [1.0]})
    waiting.results.clear()
    found = json.loads(json.dumps(waiting.as_dict(), allow_nan=False))
    assert found["cells"]["1"]["3"]["state"] == "waiting"
    assert (found["model"], found["environment"]) == ("resnetv15", None)
    assert set(found["metrics"]["1"]["3"].values()) == {None}


class TestTables:
    FOUND = sweep({1: [80.0, 100.0], 2: [], 4: [2500.5, 2500.5]})

    def test_text_is_aligned_and_says_what_is_missing(self) -> None:
        lines = tables.as_text(self.FOUND).splitlines()
        assert lines[0] == "training, resnetv15: 2 epochs of 100 steps at most"
        assert len({len(line) for line in lines[1:5]}) == 1
        assert " ".join(lines[2].split()) == "1 3 100.0 20.0 % 1.00 100 %" + 6 * " 12.35"
        assert lines[3].split() == ["2", "3", *["-"] * 10]
        assert " ".join(lines[4].split()).startswith("4 3 2500 0.0 % 25.00 625 % ")
        assert lines[-1] == "no figures of 2 devices, batch size 3: rank `0` was *killed* | by a_signal"

    def test_markdown_shows_reasons_as_they_are(self) -> None:
        text = tables.as_markdown(self.FOUND)
        assert r"* 2 devices, batch size 3: rank \`0\` was \*killed\* \| by a\_signal" in text
        assert "    benchmark.py 'a b'" in text
        assert "| 4 | 3 | 2500 | 0.0 % | 25.00 | 625 % |" in text

    def test_csv_holds_every_figure_in_full(self) -> None:
        lines = list(csv.DictReader(io.StringIO(tables.as_csv(self.FOUND))))
        assert [line["ngpus"] for line in lines] == ["1", "2", "4"]
        assert lines[0]["train.latency_avg"] == "0.0123456"
        assert float(lines[0]["train.total_ips.spread"]) == pytest.approx(0.2)
        assert (lines[2]["train.total_ips"], lines[2]["train.total_ips.speedup"]) == ("2500.5", "25.005")
        assert (lines[2]["state"], lines[2]["exit_code"], lines[2]["seconds"]) == ("completed", "0", "2.0")
        assert (lines[1]["train.total_ips"], lines[1]["state"]) == ("", "failed")
        assert lines[1]["reason"] == "rank `0` was *killed* | by a_signal"
