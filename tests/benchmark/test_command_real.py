"""benchmark.py with the real runner: small networks on records and on made-up images."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from tests.support import command

SMALL = ("-n", 1, "-b", 8, "-i", 4, "-e", 2, "-w", 1, "--num-layers", 18, "--image-shape", "3,32,32")


@pytest.mark.slow
def test_training_and_validation_from_records(digits: Path, tmp_path: Path) -> None:
    done = command("benchmark.py", *SMALL, "--data-root", digits / "records", "-o", "b.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"b.json", "b.md", "b.csv", "b_runs"}
    found = json.loads((tmp_path / "b.json").read_text())
    workspace = tmp_path / found["cells"]["1"]["8"]["workspace"]
    names = {"console.log", "report.json", "log.log", "dllogger_log.log"}
    assert names <= {path.name for path in workspace.iterdir()}
    assert not list(workspace.glob("*.safetensors"))
    report = json.loads((workspace / "report.json").read_text())
    assert report["num_samples"] == 4 * 8, "of the 360 images only so many steps were validated"
    assert len(found["metric_keys"]) == 14
    for key in found["metric_keys"]:
        assert found["metrics"]["1"]["8"][key] == pytest.approx(report["metrics"][key][1])
        assert found["metrics"]["1"]["8"][key] > 0
    assert "train.top1" not in report["metrics"]
    assert found["environment"]["mindspore"] == report["environment"]["mindspore"]


@pytest.mark.slow
def test_validation_needs_no_checkpoint_and_is_repeated(tmp_path: Path) -> None:
    options = ("--mode", "val", "--data-backend", "synthetic", "--num-classes", 10, "-w", 0, "-o", "b.json")
    done = command("benchmark.py", *SMALL, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "b.json").read_text())
    cell = found["cells"]["1"]["8"]
    rates = cell["epochs"]["val.total_ips"]
    assert len(rates) == 2
    assert found["metrics"]["1"]["8"]["val.total_ips"] == pytest.approx(statistics.harmonic_mean(rates))
    assert "figures of speed only" in (tmp_path / cell["workspace"] / "console.log").read_text()
