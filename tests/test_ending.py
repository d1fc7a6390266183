"""The report of a run whose end rank 0 did not record itself, where even that cannot be written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from src.ending import Ending
from src.errors import SuiteError
from src.report.report import Report
from tests.support import files_of_at_most


def running(path: Path) -> Report:
    words = {
        "model": "resnetv15",
        "num_devices": 2,
        "cmd": [],
        "config": {},
        "environment": {},
        "dataset": {},
    }
    return Report(path, **words)


def test_the_signal_that_runner_was_sent_is_told_not_the_one_that_ranks_were(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    running(path).finish("interrupted", "stopped by SIGTERM")
    ending = Ending(path, None, False, lambda: running(path))
    ending.write("interrupted", "stopped by SIGINT")
    assert json.loads(path.read_text())["status_reason"] == "stopped by SIGINT"
    ending.write("failed", "another rank")  # what went wrong is known best by who wrote it
    assert json.loads(path.read_text())["status"] == "interrupted"


@pytest.mark.parametrize("continues", [False, True])
def test_an_end_that_the_disk_does_not_take_is_told(continues: bool, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    running(path).write()
    found = path.stat()
    before = (found.st_ino, found.st_mtime_ns) if continues else None
    ending = Ending(path, before, continues, lambda: running(path))
    with files_of_at_most(100), pytest.raises(SuiteError, match="could not be given this end"):
        ending.write("failed", "rank 1 ended with code 5")
    assert json.loads(path.read_text())["status"] == "running"
    ending.write("failed", "rank 1 ended with code 5")
    assert json.loads(path.read_text())["status_reason"] == "rank 1 ended with code 5"
    ending.write("failed", "again")  # nothing to do is no failure
