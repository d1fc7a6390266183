"""One call tells the console, the log, the dllogger lines and the report."""

from __future__ import annotations

import json

import pytest

from src.report.dllog import read_lines
from src.report.journal import Journal
from src.report.report import Report


def open_journal(tmp_path) -> Journal:
    about = {"cmd": [], "config": {}, "environment": {}, "dataset": {}}
    report = Report(tmp_path / "report.json", model="resnetv15", num_devices=1, **about)
    files = {"log": tmp_path / "log.log", "dllogger": tmp_path / "dll.log"}
    return Journal.open(**files, report=report, append=False)


def run(journal: Journal) -> None:
    journal.start("training", {"seed": 3}, {"lr": 0.1})
    journal.begin_epoch(0, 2, 4)
    journal.step(1)
    journal.window(0, 4, {"train.loss": 1.5, "train.ips": 10.0, "train.lr": 0.1})
    journal.end_epoch(0, 2, {"train.loss": 1.5, "val.top1": 0.5, "val.total_ips": None}, 3.0)


def test_every_file_tells_the_same(tmp_path, capsys):
    journal = open_journal(tmp_path)
    run(journal)
    journal.finish("done", {"top-1": "50 %"})
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["status"] == "completed"
    assert report["metrics"]["val.top1"] == [0.5]
    lines = [line for line in read_lines(tmp_path / "dll.log") if line["type"] == "LOG"]
    assert [line["step"] for line in lines] == ["PARAMETER", [0, 3], [0], []]
    assert lines[2]["data"]["val.accuracy"] == lines[3]["data"]["val.accuracy"] == 0.5
    console, log = capsys.readouterr().out, (tmp_path / "log.log").read_text()
    for word in ("seed", "epoch 1/2", "loss 1.5", "top-1", "report.json"):
        assert word in console
        assert word in log


def test_a_missing_number_has_its_reason(tmp_path):
    journal = open_journal(tmp_path)
    run(journal)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["metrics"]["val.total_ips"] == [None]
    assert "steady" in report["null_reasons"]["val.total_ips"]
    assert "val.top1" not in report["null_reasons"]


@pytest.mark.parametrize(("end", "status"), [("interrupted", "interrupted"), ("failed", "failed")])
def test_other_ends_are_told_as_such(tmp_path, end, status):
    journal = open_journal(tmp_path)
    run(journal)
    if end == "interrupted":
        journal.interrupted(15, "continue with the same command")
    else:
        journal.failed("the disk is full")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["status"] == status
    assert report["status_reason"] == {"interrupted": "stopped by SIGTERM", "failed": "the disk is full"}[end]


def test_a_silent_journal_writes_and_says_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    journal = Journal.silent()
    run(journal)
    journal.note(best=None)
    journal.finish("done", {})
    assert capsys.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_the_line_of_an_epoch_tells_skipped_updates_and_the_average_only_where_there_are_any():
    from src.report.journal import remarks

    assert remarks({"train.loss": 1.0, "train.skipped_steps": 0.0, "train.loss_scale": 65536.0}) == ""
    one = {"train.skipped_steps": 1.0, "val.ema_top1": 0.5}
    assert remarks(one) == "ema top1 50.00 %, 1 update skipped: gradients not finite"
    several = {"train.skipped_steps": 3.0, "train.loss_scale": 8192.0}
    assert remarks(several) == "3 updates skipped: gradients not finite, loss scale now 8192"


@pytest.mark.parametrize(("to_come", "told"), [(3, "run left 3:06"), (1, "run left 1:02"), (0, None)])
def test_the_time_left_is_told_after_every_epoch_but_the_last(tmp_path, capsys, to_come, told):
    open_journal(tmp_path).end_epoch(2, 90, {"train.loss": 1.0, "train.skipped_steps": 1.0}, 62.0, to_come)
    line = capsys.readouterr().out
    assert "1 update skipped" in line
    assert (told in line) if told else ("left" not in line)


def test_an_epoch_is_recorded_once_whenever_the_run_was_killed(tmp_path):
    """Between its checkpoint and its record: the checkpoint has the figures."""
    journal = open_journal(tmp_path)
    for epoch in (0, 1):
        journal.end_epoch(epoch, 3, {"train.loss": 2.0 - epoch}, 1.0)
    finished = {"epoch": 0, "metrics": {"train.loss": 2.0}, "seconds": 1.0}
    for epoch, step, expected in ((1, 0, [2.0]), (0, 3, []), (1, 2, [2.0])):
        journal.go_on(epoch, step, 3, finished if epoch else None)
        lines = [r for r in read_lines(tmp_path / "dll.log") if len(r.get("step", [])) == 1]
        assert [r["data"]["train.loss"] for r in lines] == expected
        assert journal.report.as_dict()["metrics"].get("train.loss", []) == expected
    assert journal.report.as_dict()["continued_within"] == [{"epoch": 0, "step": 3}, {"epoch": 1, "step": 2}]


@pytest.mark.parametrize("epoch", [0, 1])
def test_metrics_are_announced_once_in_a_new_and_in_a_continued_run(tmp_path, epoch):
    open_journal(tmp_path).go_on(epoch, 0, 3, None)
    announced = [r["metric"] for r in read_lines(tmp_path / "dll.log") if r["type"] == "METADATA"]
    assert len(announced) == len(set(announced)) > 0
