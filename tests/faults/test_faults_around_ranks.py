"""What comes from outside while a run goes on: signals to runner and its death, a taken port, a disk.

The signals are sent by a rank, from the very phase that is meant (injected/sitecustomize.py).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import signal
import socket
import subprocess
from pathlib import Path
from typing import Callable

import pytest

from tests.faults.runs import SLACK_S, End, run

CONTINUES = "the same command continues from"


@dataclasses.dataclass(frozen=True)
class Case:
    signals: str
    phase: str
    where: str = ""
    code: int = 143
    told: str = "stopped by SIGTERM"
    status: str = "interrupted"
    checkpoint: bool = True
    """the run can be continued from where it was"""
    limit_s: float = 10

    def __str__(self) -> str:
        return f"{self.signals} at {self.phase} {self.where}".strip()


# Once ranks wait for each other, they go on to the first step at which they ask whether to stop.
START_S = 30
DECISIVE = [
    Case("SIGTERM", "compiling", limit_s=START_S),
    # Before the rank can hear it: kept until then, and the run goes on to its end.
    Case(
        "SIGUSR1", "starting", code=0, told="saved at step 10 of epoch 1", status="completed", limit_s=START_S
    ),
    Case("SIGKILL", "training", "step=3", -9, "", "running", checkpoint=False, limit_s=1),
]
DEEP = [
    Case("SIGTERM", "start", told="stopped by SIGTERM", checkpoint=False),
    Case("SIGTERM", "joining", limit_s=START_S),
    Case("SIGTERM", "training", "step=3"),
    Case("SIGTERM", "validating"),
    Case("SIGTERM", "saving"),
    Case("SIGINT", "training", "step=11", 130, "stopped by SIGINT"),
    Case("SIGTERM,SIGTERM", "compiling", told="rank 0, rank 1 had to be killed", checkpoint=False, limit_s=2),
    Case("SIGUSR1", "training", "step=3", 0, "saved at step 10 of epoch 1", "completed", limit_s=START_S),
]


def start(case: Case, folder: Path) -> End:
    return run(folder, f"rank=1 phase={case.phase} kind=to-runner:{case.signals} {case.where}", "-n", 2)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow, id=str(case)) for case in DECISIVE]
    + [pytest.param(case, marks=pytest.mark.deep, id=str(case)) for case in DEEP],
)
def test_signals_to_runner(case: Case, ends: Callable[[object], End]) -> None:
    end = ends(case)
    assert end.left == []
    assert end.code == case.code, end.err
    assert case.told in end.out + end.err
    assert end.seconds is not None
    print(f"{case}: {end.seconds:.1f} s")
    assert end.seconds < case.limit_s + SLACK_S
    report = end.report
    assert report["status"] == case.status
    if case.status == "interrupted":
        assert signal.Signals(case.code - 128).name in report["status_reason"]
        assert (CONTINUES in end.out + end.err) == case.checkpoint
    assert (end.workspace / "model_last.safetensors").exists() == case.checkpoint


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        end = run(tmp_path, "", "-n", 2, "--master-port", port)
    assert (end.code, end.left) == (2, [])
    assert end.err.startswith(f"runner: --master-port {port}")
    assert end.err.count("\n") == 1
    assert not end.workspace.exists()


# A file system of a few bytes on the workspace, seen by the run alone; what was written on it is kept.
MOUNT = 'mount -t tmpfs -o "$1" tmpfs "$0" && shift && "$@"; code=$?; cp -r "$0"/. "$0.kept"; exit $code'


@functools.cache
def obstacle() -> str:
    probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    return probe.stderr.decode().strip()


def run_on(options: str, folder: Path, *words: object, small: bool = True) -> tuple[End, dict]:
    """Run on a workspace that is mounted with `options`; its report, or nothing."""
    if obstacle():
        pytest.skip(f"nothing can be mounted here: {obstacle()}")
    workspace, kept = folder / "run", folder / "run.kept"
    workspace.mkdir()
    kept.mkdir()
    before = ["unshare", "-rm", "sh", "-c", MOUNT, str(workspace), options]
    end = run(folder, "", *words, small=small, before=before)
    report = kept / "report.json"
    return end, json.loads(report.read_text()) if report.exists() else {}


@pytest.mark.slow
def test_a_disk_too_small_for_a_checkpoint(tmp_path: Path) -> None:
    end, report = run_on("size=20m", tmp_path, small=False)  # one takes 90 MB
    assert (end.code, end.left) == (5, [])
    *_, sentence, last = end.err.splitlines()
    assert sentence.startswith("train.py: ")
    assert "model_last.safetensors could not be written" in sentence
    assert "No space left on device" in sentence
    assert last == "runner: rank 0 ended with code 5"
    assert "Traceback" not in end.err
    assert report["status"] == "failed"
    assert "No space left" in report["status_reason"]


@pytest.mark.slow
def test_a_disk_too_small_for_anything(tmp_path: Path) -> None:
    end, report = run_on("size=4k", tmp_path)
    assert (end.code, end.left, report) == (2, [], {})
    assert "cannot be written: No space left on device" in end.err


@pytest.mark.parametrize("n", [1, 2])
def test_a_read_only_workspace_is_told_before_anything_starts(n: int, tmp_path: Path) -> None:
    end, report = run_on("ro", tmp_path, "-n", n)
    assert (end.code, end.left, report) == (2, [], {})
    assert end.err.startswith(f"runner: --workspace {tmp_path / 'run'} cannot be written: ")
    assert end.err.count("\n") == 1
    assert end.out == ""
