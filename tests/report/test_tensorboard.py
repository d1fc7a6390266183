"""Event files, read back by hand: records of length, checksum, message and checksum."""

from __future__ import annotations

import struct

import pytest

from src import cli
from src.errors import OptionError
from src.report.tensorboard import Events
from tests.report.test_journal import open_journal, run

event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2", reason="tensorboardX is not installed")


def scalars(folder) -> list[tuple[str, int, float]]:
    """(metric, number, value) of all event files, in order; what a later file purges is left out."""
    found: list[tuple[str, int, float]] = []
    for path in sorted(folder.glob("events.*"), key=lambda p: p.stat().st_mtime_ns):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = event_pb2.Event.FromString(content[12 : 12 + length])
            content = content[16 + length :]
            if event.HasField("session_log") and event.session_log.status == 1:  # START
                found = [row for row in found if row[1] < event.step]
            found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
    return found


def test_steps_and_epochs_are_read_back(tmp_path):
    events = Events(tmp_path)
    for epoch in (0, 1):
        events.begin_epoch(8)
        for step in (4, 8):
            events.window(epoch, step, {"train.loss": epoch + step, "train.lr": None})
        events.end_epoch(epoch, {"val.top1": 0.25 * (epoch + 1), "val.loss": None})
    events.close()
    assert scalars(tmp_path / "epochs") == [("val.top1", 1, 0.25), ("val.top1", 2, 0.5)]
    expected = [(4, 4.0), (8, 8.0), (12, 5.0), (16, 9.0)]
    assert scalars(tmp_path / "steps") == [("train.loss", number, value) for number, value in expected]


def test_what_a_resumed_run_makes_again_stands_there_once(tmp_path):
    for resumed in (False, True):
        events = Events(tmp_path)
        if resumed:
            events.go_on(1, 4)
        events.begin_epoch(8)
        for epoch, step in ((1, 8),) if resumed else ((0, 8), (1, 4), (1, 8)):
            events.window(epoch, step, {"train.loss": 1.0 + resumed})
        for epoch in (1,) if resumed else (0, 1):
            events.end_epoch(epoch, {"val.top1": 1.0 + resumed})
        events.close()
    assert [row[1:] for row in scalars(tmp_path / "steps")] == [(8, 1.0), (12, 1.0), (16, 2.0)]
    assert [row[1:] for row in scalars(tmp_path / "epochs")] == [(1, 1.0), (2, 2.0)]


def test_a_run_writes_them_only_where_it_is_asked_to(tmp_path):
    journal = open_journal(tmp_path)
    run(journal)
    assert not (tmp_path / "tensorboard").exists()
    journal.events = Events(tmp_path / "tensorboard")
    run(journal)
    journal.finish("done", {})
    assert ("train.loss", 4, 1.5) in scalars(tmp_path / "tensorboard" / "steps")
    assert ("val.top1", 1, 0.5) in scalars(tmp_path / "tensorboard" / "epochs")


def test_without_the_library_the_option_is_refused(monkeypatch):
    assert cli.parse(["--tensorboard"], "test").output.tensorboard
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OptionError, match="pip install tensorboardX"):
        cli.parse(["--tensorboard"], "test")
