"""Runs that are stopped or killed in the middle of an epoch end as unbroken ones, bit for bit."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from src.report import dllog
from src.weights import checkpoint
from tests.faults.runs import INJECTED
from tests.support import ROOT, command

SHORT = [
    *("--data-backend", "synthetic", "--num-classes", 10, "--image-shape", "3,32,32", "--num-layers", 18),
    *("-b", 8, "--num-examples", 150, "--warmup-epochs", 0, "--seed", 5, "--disp-batches", 4, "-e", 2),
]
EVERYTHING = ["--accumulation", 3, "--ema", 0.7, "--mixup", 0.2, "--dtype", "float16", "--optimizer", "lamb"]
TIMED = ("ips", "latency", "time")  # what no two runs have alike


def start(program: str, workspace: Path, *words: object) -> subprocess.Popen:
    line = [sys.executable, program, *SHORT, *words, "--workspace", workspace]
    with (workspace.parent / f"{workspace.name}.txt").open("w") as out:
        return subprocess.Popen(list(map(str, line)), cwd=ROOT, stdout=out, stderr=out)


def at_step(workspace: Path, epoch: int, step: int) -> None:
    """Return when the dllogger line of that step is there."""
    log, deadline = workspace / "dllogger_log.log", time.monotonic() + 300
    while time.monotonic() < deadline:
        if log.exists() and f'"step": [{epoch}, {step}]' in log.read_text():
            return
        time.sleep(0.005)
    raise AssertionError((workspace.parent / f"{workspace.name}.txt").read_text())


def lines(workspace: Path) -> list:
    """Steps and figures of the dllogger lines."""
    return [
        (record["step"], {k: v for k, v in record["data"].items() if not any(word in k for word in TIMED)})
        for record in dllog.read_lines(workspace / "dllogger_log.log")
        if record["type"] == "LOG" and record["step"] != "PARAMETER"
    ]


def same(one: Path, other: Path, loss_rel: float = 0.0) -> None:
    """All tensors bit for bit, and all figures but those of time.

    `loss_rel`: of two ranks the printed training loss was seen to differ in its last bit or two while every
    weight was the same; nothing but the print depends on it.
    """
    for which in ("last", "best"):
        a, b = (checkpoint.read(place / f"model_{which}.safetensors") for place in (one, other))
        assert [n for n in a.tensors if a.tensors[n].tobytes() != b.tensors[n].tobytes()] == []
        assert (a.meta["epochs_done"], a.meta["best"]) == (b.meta["epochs_done"], b.meta["best"])
    a, b = (json.loads((place / "report.json").read_text()) for place in (one, other))
    assert a["epochs"] == b["epochs"] == [0, 1]
    for name, values in a["metrics"].items():
        if not any(word in name for word in TIMED):
            rel = loss_rel if name == "train.loss" else 0.0
            assert values == pytest.approx(b["metrics"][name], rel=rel, abs=0), name
    assert [step for step, _ in lines(one)] == [step for step, _ in lines(other)], "none twice, none missing"
    for (step, figures), (_, others) in zip(lines(one), lines(other)):
        assert figures == pytest.approx(others, rel=loss_rel, abs=0), step


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [[], pytest.param(EVERYTHING, marks=pytest.mark.deep)], ids=["plain", "everything"]
)
def test_a_run_that_is_killed_and_one_that_is_stopped_end_as_an_unbroken_one(tmp_path, options):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert start("train.py", whole, *options).wait() == 0
    killed = start("train.py", broken, *options, "--save-every-steps", 3)
    at_step(broken, 0, 11)
    killed.kill()
    killed.wait()
    stopped = start("train.py", broken, *options, "--save-every-minutes", 1000)
    at_step(broken, 1, 7)
    os.kill(stopped.pid, signal.SIGTERM)
    assert stopped.wait() == 143
    report = json.loads((broken / "report.json").read_text())
    assert report["status"] == "interrupted"
    for name in ("report.json", "dllogger_log.log"):  # as after a kill in the middle of writing it
        (broken / f".{name}.1.0.tmp").touch()
    done = command("train.py", *SHORT, *options, "--workspace", broken)
    assert done.returncode == 0, done.stderr
    assert list(broken.glob(".*.tmp")) == []
    assert "of epoch 2" in done.stdout.splitlines()[0]
    same(whole, broken)


@pytest.mark.slow
@pytest.mark.deep
def test_two_ranks_that_are_stopped_within_an_epoch_end_as_unbroken_ones(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    two = ["-n", 2, "-b", 4, "--num-examples", 200]
    assert start("runner", whole, *two).wait() == 0
    stopped = start("runner", broken, *two)
    at_step(broken, 0, 11)
    os.kill(stopped.pid, signal.SIGTERM)
    assert stopped.wait() == 143
    kept = checkpoint.read(broken / "model_last.safetensors")
    assert kept.meta["progress"]["step"] == 20, "ranks ask each other every ten steps"
    name = "layer1.0.bn1.moving_mean"
    assert (kept.tensors[f"rank0.{name}"] != kept.tensors[f"rank1.{name}"]).any()
    assert start("runner", broken, *two).wait() == 0, (tmp_path / "broken.txt").read_text()
    same(whole, broken, loss_rel=1e-6)


@pytest.mark.slow
def test_sigusr1_saves_and_goes_on(tmp_path):
    run = start("train.py", tmp_path / "run")
    at_step(tmp_path / "run", 0, 3)
    os.kill(run.pid, signal.SIGUSR1)
    assert run.wait() == 0
    assert "saved at step" in (tmp_path / "run.txt").read_text()


@pytest.mark.slow
def test_a_run_goes_on_with_another_batch_size_where_the_images_add_up(tmp_path):
    begun = command("train.py", *SHORT, "--workspace", tmp_path, "--run-epochs", 1)
    assert begun.returncode == 0, begun.stderr
    words = ["--workspace", tmp_path, "--resume", tmp_path / "model_last.safetensors", "-b", 16, "-e", 3]
    done = command("train.py", *SHORT, *words)
    assert done.returncode == 0, done.stderr
    assert "--batch-size 8 there, 16 here" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["epochs"] == [0, 1, 2]
    assert report["config"]["batch-size"] == 16
    # 9 steps in an epoch; the last is 8/9 of the third of three epochs.
    peak = 0.256 * 16 / 256
    expected = peak / 2 * (1 + math.cos(math.pi * (2 + 8 / 9) / 3))
    assert report["metrics"]["train.lr"][-1] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_a_run_that_is_stopped_in_validation_ends_as_an_unbroken_one(n, digits, tmp_path, monkeypatch):
    """The first signal comes in the first epoch's, the second in that of the run that goes on with it."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    words = ["--data-root", digits / "records", "--num-examples", 128, "-n", n, "-b", 32 // n, "-e", 2]
    words += ["--num-layers", 18, "--image-shape", "3,16,16", "--warmup-epochs", 0, "--seed", 5]
    words += ["--ema", 0.9, "--disp-batches", 2, "--workspace", broken]
    monkeypatch.setenv("PYTHONPATH", str(INJECTED))
    monkeypatch.setenv("SMALL_NETWORK", "1")
    done = command("runner", *words, "--workspace", whole)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("FAULT", "rank=0 phase=validating step=2 kind=SIGTERM")
    for i in range(2):
        monkeypatch.setenv("FAULT_FILE", str(tmp_path / f"struck-{i}"))
        done = command("runner", *words)
        assert done.returncode == 143, done.stderr
        report = json.loads((broken / "report.json").read_text())
        assert (report["status"], report["epochs"]) == ("interrupted", [])
        assert not (broken / "model_best.safetensors").exists()
    assert "the end of epoch 1, which is still to be validated" in done.stdout
    monkeypatch.delenv("FAULT")
    done = command("runner", *words)
    assert done.returncode == 0, done.stderr
    same(whole, broken, loss_rel=1e-6 if n > 1 else 0.0)
