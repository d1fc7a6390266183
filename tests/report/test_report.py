"""report.json: complete, strict, whole at every moment, and continued by a resumed run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from src.errors import SuiteError
from src.report import report as report_module
from src.report.report import Report, load, mark_ended, remove_unfinished, write_atomically
from tests.support import ROOT


class Clock:
    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def path(tmp_path):
    return tmp_path / "report.json"


def new_report(path, **changes):
    arguments = {
        "model": "resnetv15-50",
        "num_devices": 8,
        "cmd": ["train.py", "-n", "8"],
        "config": {"lr": 0.256, "data_root": Path("/data")},
        "environment": {"mindspore": "2.6"},
        "dataset": {"num_images": 1281167},
    }
    return Report(path, **{**arguments, **changes})


def read_strictly(path):
    return json.loads(path.read_text(), parse_constant=pytest.fail)  # NaN, Infinity


def test_the_published_keys_and_ours_are_there_from_the_start(path):
    new_report(path, fields={"seed": 42}).write()
    document = read_strictly(path)
    published = {"model": "resnetv15-50", "ngpus": 8, "cmd": ["train.py", "-n", "8"], "metrics": {}}
    assert published.items() <= document.items()
    assert document.pop("total_duration") >= 0
    assert "steady steps" in document.pop("throughput_definition")
    assert {name: value for name, value in document.items() if name not in published} == {
        "schema_version": 1,
        "status": "running",
        "status_reason": None,
        "epochs": [],
        "best": None,
        "num_samples": None,
        "config": {"lr": 0.256, "data_root": "/data"},
        "environment": {"mindspore": "2.6"},
        "dataset": {"num_images": 1281167},
        "seed": 42,
    }


def test_every_metric_has_one_value_per_epoch(path):
    report = new_report(path)
    report.add_epoch(0, {"train.loss": 6.9, "val.top1": 0.1})
    report.add_epoch(1, {"train.loss": 5.5})
    report.add_epoch(2, {"train.loss": 4.4, "val.top1": 0.3, "train.top1": np.float32(0.25)})
    document = read_strictly(path)  # written without being asked
    assert document["epochs"] == [0, 1, 2]
    assert document["metrics"] == {
        "train.loss": [6.9, 5.5, 4.4],
        "val.top1": [0.1, None, 0.3],
        "train.top1": [None, None, 0.25],
    }


def test_an_epoch_given_again_replaces_all_its_values(path):
    report = new_report(path)
    report.add_epoch(0, {"train.loss": 6.9})
    report.add_epoch(1, {"train.loss": 5.5, "val.top1": 0.2})
    report.add_epoch(1, {"train.loss": 5.0})
    assert report.as_dict()["epochs"] == [0, 1]
    assert report.as_dict()["metrics"] == {"train.loss": [6.9, 5.0], "val.top1": [None, None]}


def test_epochs_stay_in_order(path):
    report = new_report(path)
    for epoch in (5, 3, 4):
        report.add_epoch(epoch, {"n": epoch})
    assert report.as_dict()["epochs"] == [3, 4, 5]
    assert report.as_dict()["metrics"]["n"] == [3, 4, 5]


def test_nan_and_infinity_are_null(path):
    report = new_report(path)
    report.add_epoch(0, {"train.loss": float("nan"), "train.total_ips": np.float64("inf")})
    report.set(best={"top1": float("nan")})
    report.write()
    document = read_strictly(path)
    assert document["metrics"] == {"train.loss": [None], "train.total_ips": [None]}
    assert document["best"] == {"top1": None}


def test_a_metric_is_one_line_of_the_file(path):
    report = new_report(path)
    for epoch in range(3):
        report.add_epoch(epoch, {"train.loss": epoch})
    assert '    "train.loss": [0, 1, 2]' in path.read_text().splitlines()


@pytest.mark.parametrize("status", ["completed", "interrupted", "failed"])
def test_finish_writes_how_it_ended(path, status):
    new_report(path).finish(status, "because")
    assert read_strictly(path)["status"] == status
    assert read_strictly(path)["status_reason"] == "because"
    assert load(path)["status"] == status  # it only looks; Report.read begins again


def test_only_known_ends_and_free_fields(path):
    report = new_report(path)
    with pytest.raises(AssertionError):
        report.finish("running")
    with pytest.raises(AssertionError, match="metrics"):
        report.set(metrics={})


def test_a_resumed_run_counts_its_time_on_and_trains_later_epochs_again(path):
    clock = Clock()
    report = new_report(path, clock=clock)
    for epoch in range(3):
        clock.now += 10
        report.add_epoch(epoch, {"train.loss": float(epoch)})
    report.finish("interrupted", "SIGTERM")

    clock.now += 5000  # the machine was off
    report = Report.read(path, clock=clock)
    assert report.as_dict()["status"] == "running"
    assert report.as_dict()["status_reason"] is None
    report.drop_epochs_from(2)
    clock.now += 7
    report.add_epoch(2, {"train.loss": 9.0, "val.loss": 1.0})
    document = read_strictly(path)
    assert document["total_duration"] == 37.0
    assert document["epochs"] == [0, 1, 2]
    assert document["metrics"] == {"train.loss": [0.0, 1.0, 9.0], "val.loss": [None, None, 1.0]}
    assert document["config"]["lr"] == 0.256


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_error_while_writing_leaves_the_old_file_whole(path, monkeypatch, function, error):
    report = new_report(path)
    report.add_epoch(0, {"train.loss": 6.9})
    before = path.read_text()

    def fail(*_):
        raise error

    monkeypatch.setattr(os, function, fail)
    with pytest.raises((SuiteError, KeyboardInterrupt)) as caught:
        report.add_epoch(1, {"train.loss": 5.0})
    if isinstance(error, OSError):
        assert str(caught.value) == f"cannot write the report {path}: No space left on device"
    assert path.read_text() == before
    assert os.listdir(path.parent) == ["report.json"]  # nor is anything left lying about


def test_a_write_in_the_middle_of_a_write_harms_neither(path, monkeypatch):
    """A signal handler finishes the report while the epoch's write is under way."""
    fsync = os.fsync

    def interrupted(descriptor):
        monkeypatch.setattr(os, "fsync", fsync)
        write_atomically(path, "from the handler, and longer")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    write_atomically(path, "from the epoch")
    assert path.read_text() == "from the epoch"


def test_the_text_is_on_the_disk_before_it_takes_the_name(path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, f=original: (calls.append(name), f(*a)))
    write_atomically(path, "text")
    assert calls == ["fsync", "replace"]


KILLED = """
import os, sys
from src.report.report import write_atomically
os.fsync = lambda descriptor: os._exit(9)
write_atomically(sys.argv[1], "text")
"""


def test_what_a_kill_left_half_written_is_removed_and_nothing_else(path):
    path.write_text("whole")
    other = path.with_name(".report-val.json.1.0.tmp")  # of a scoring beside the run
    other.touch()
    assert subprocess.run([sys.executable, "-c", KILLED, path], cwd=ROOT).returncode == 9
    assert len(list(path.parent.iterdir())) == 3
    remove_unfinished(path)
    assert sorted(path.parent.iterdir()) == [other, path]
    assert path.read_text() == "whole"


GOOD = (
    '{"schema_version": 1, "model": "m", "ngpus": 1, "total_duration": 1.0, "cmd": [], "epochs": [0], '
    '"metrics": {"train.loss": [1.0]}}'
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged"),
        ('{"model": "m", ', "damaged"),
        ("[]", "damaged"),
        ("{}", "schema_version is missing"),
        (GOOD.replace("[1.0]", "[1.0, 2.0]"), r"train\.loss does not have one value per epoch"),
        (GOOD.replace("[0]", "null"), "epochs is missing or of the wrong type"),
        (GOOD.replace("1", "99", 1), "schema version 99, newer than this suite's"),
    ],
)
def test_a_damaged_report_is_refused_in_one_sentence(path, text, words):
    path.write_text(text)
    with pytest.raises(SuiteError, match=words) as caught:
        Report.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_binary_rubbish_and_a_missing_file_are_refused_too(path):
    with pytest.raises(SuiteError, match="No such file"):
        Report.read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SuiteError, match="damaged"):
        Report.read(path)


def test_mark_ended_speaks_for_a_rank_that_died(path):
    new_report(path).add_epoch(0, {"train.loss": 6.9})
    assert mark_ended(path, "failed", "rank 3 was killed by SIGKILL")
    document = read_strictly(path)
    assert document["status"] == "failed"
    assert document["status_reason"] == "rank 3 was killed by SIGKILL"
    assert document["metrics"] == {"train.loss": [6.9]}


def test_mark_ended_leaves_an_end_that_was_written(path):
    new_report(path).finish("interrupted", "SIGINT")
    assert not mark_ended(path, "failed", "rank 0 died")
    assert read_strictly(path)["status_reason"] == "SIGINT"


def test_mark_ended_never_raises(path, monkeypatch):
    assert not mark_ended(path, "failed", "x")
    assert not path.exists()
    path.write_text("{")
    assert not mark_ended(path, "failed", "x")
    new_report(path).write()
    monkeypatch.setattr(report_module, "write_atomically", lambda *_: (_ for _ in ()).throw(OSError("full")))
    assert not mark_ended(path, "failed", "x")
