"""What a person sees: lines in a file, a bar on a terminal, nothing from the other ranks."""

from __future__ import annotations

import io
import sys

import pytest

from src.report.console import Console
from src.report.logfile import open_log_file

UP, ERASE = "\x1b[1A", "\x1b[2K"  # what rich sends to take its lines away


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def terminal_of_100_columns(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def small_run(console):
    console.say("reading data")
    console.facts("training", {"network": "resnetv15", "seed": 1234567, "amp": False, "peak lr": 0.256})
    progress = console.epoch(2, 90, 40)
    console.waiting("compiling")
    for step in range(1, 41):
        console.clock.now += 1
        if step % 20 == 0:
            progress.line(step, loss=2.5, ips=1234.4, lr=0.25)
        else:
            progress.step(step)
    progress.close()
    console.epoch_summary(2, 90, METRICS, note="best")
    console.warn("odd")
    console.summary("completed", {"report": "report.json"}, ["python eval.py"])


METRICS = {
    "train.loss": 2.5,
    "train.top1": 0.452,
    "val.loss": 2.25,
    "val.top1": 0.5,
    "val.top5": None,
    "train.total_ips": 26674.2,
    "epoch_time": 3723.4,
}
EPOCH_LINE = (
    "epoch  3/90  loss 2.5000  top1  45.20 %  26,674 img/s  "
    "val loss 2.2500  val top1  50.00 %  top5      -    1:02:03"
)


def test_elsewhere_than_on_a_terminal_there_are_plain_lines():
    out = io.StringIO()
    small_run(Console(file=out, clock=Clock()))
    assert out.getvalue().splitlines() == [
        "reading data",
        "training",
        "  network  resnetv15",
        "  seed     1234567",
        "  amp      off",
        "  peak lr  0.256",
        "compiling ...",
        "epoch  3/90  step 20/40  loss 2.5000   1,234 img/s  lr 0.25000  left 0:20",
        "epoch  3/90  step 40/40  loss 2.5000   1,234 img/s  lr 0.25000  left 0:00",
        EPOCH_LINE + "  best",
        "warning: odd",
        "",
        "completed",
        "  report  report.json",
        "next",
        "  python eval.py",
    ]


def test_on_a_terminal_there_are_colours_and_a_bar_that_goes_away():
    out = io.StringIO()
    small_run(Console(file=out, terminal=True, clock=Clock()))
    text = out.getvalue()
    assert "\x1b[33mwarning: odd" in text
    assert 0 < text.rindex("compiling") < text.index("/40")  # the spinner gives way to the bar
    assert "compiling ..." not in text
    assert "20/40 loss 2.5000   1,234 img/s  lr 0.25000  left 0:20" in text
    assert "step 20/40" not in text  # the line for files
    after_bar = text[text.rindex("40/40") : text.index("loss 2.5000  top1")]
    assert f"{UP}{ERASE}" in after_bar


def test_a_narrow_terminal_breaks_the_epoch_where_validation_begins(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    Console(file=out, terminal=True).epoch_summary(2, 90, METRICS)
    first, second = out.getvalue().splitlines()
    assert first.endswith("loss 2.5000  top1  45.20 %  26,674 img/s")
    assert second == " " * 13 + EPOCH_LINE[EPOCH_LINE.index("val loss") :]


def test_no_color_is_respected(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    Console(file=out, terminal=True).warn("odd")
    assert "33m" not in out.getvalue()
    assert "warning: odd" in out.getvalue()


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    out = io.StringIO()
    small_run(Console(file=out, terminal=True, clock=Clock()))
    assert "\x1b" not in out.getvalue()
    assert "step 20/40" in out.getvalue()


def test_a_terminal_without_rich_gets_plain_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    out = io.StringIO()
    small_run(Console(file=out, terminal=True, clock=Clock()))
    assert "\x1b" not in out.getvalue()
    assert EPOCH_LINE in out.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_text_is_never_taken_for_markup(terminal):
    out = io.StringIO()
    Console(file=out, terminal=terminal).say("[bold]x[/] [0, 1] :smile:")
    assert out.getvalue() == "[bold]x[/] [0, 1] :smile:\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_long_paths_stay_in_one_piece(terminal):
    out = io.StringIO()
    Console(file=out, terminal=terminal).say("/data/" + "x" * 300)
    assert "x" * 300 in out.getvalue()


def test_other_ranks_are_silent(capsys):
    small_run(Console(enabled=False, clock=Clock()))
    small_run(Console(enabled=False, terminal=True, clock=Clock()))
    assert capsys.readouterr() == ("", "")


def test_errors_and_warnings_go_to_stderr(capsys):
    console = Console()
    console.say("said")
    console.warn("odd")
    console.error("wrong")
    assert capsys.readouterr() == ("said\n", "warning: odd\nerror: wrong\n")


@pytest.mark.parametrize(("enabled", "terminal"), [(True, False), (True, True), (False, False)])
def test_everything_lasting_is_in_the_log_as_plain_text(tmp_path, enabled, terminal):
    log = open_log_file(tmp_path / "log.log", append=False)
    small_run(Console(enabled, io.StringIO(), log=log, terminal=terminal, clock=Clock()))
    lines = [line[20:] for line in (tmp_path / "log.log").read_text().splitlines()]
    assert lines == [
        "INFO    reading data",
        "INFO    training",
        "INFO      network  resnetv15",
        "INFO      seed     1234567",
        "INFO      amp      off",
        "INFO      peak lr  0.256",
        "INFO    compiling ...",
        "INFO    epoch  3/90  step 20/40  loss 2.5000   1,234 img/s  lr 0.25000  left 0:20",
        "INFO    epoch  3/90  step 40/40  loss 2.5000   1,234 img/s  lr 0.25000  left 0:00",
        f"INFO    {EPOCH_LINE}  best",
        "WARNING odd",
        "INFO    completed",
        "INFO      report  report.json",
        "INFO    next",
        "INFO      python eval.py",
    ]


def test_a_percent_sign_is_no_format_in_the_log(tmp_path):
    Console(file=io.StringIO(), log=open_log_file(tmp_path / "log.log", False)).say("50 %s done")
    assert "50 %s done" in (tmp_path / "log.log").read_text()


def test_values_that_are_not_known():
    out = io.StringIO()
    console = Console(file=out)
    console.epoch_summary(0, 3, {"train.loss": float("nan"), "train.total_ips": None, "epoch_time": None})
    console.facts("facts", {"threads": None})
    assert out.getvalue().splitlines() == [
        "epoch 1/3  loss    nan       - img/s        -",
        "facts",
        "  threads  -",
    ]


def test_lines_of_different_epochs_are_aligned():
    out = io.StringIO()
    console = Console(file=out)
    console.epoch_summary(8, 90, {**METRICS, "val.top5": 1.0, "train.total_ips": 12.34, "epoch_time": 59})
    console.epoch_summary(9, 90, METRICS)
    first, second = out.getvalue().splitlines()
    assert len(first) == len(second)
    assert first.index("img/s") == second.index("img/s")
    assert "  12.3 img/s  val loss" in first
    assert first.endswith("     0:59")


def test_warnings_that_differ_only_in_numbers_are_shown_once_and_counted(tmp_path):
    out = io.StringIO()
    console = Console(file=out, log=open_log_file(tmp_path / "log.log", append=False))
    for row in (3, 17, 100):
        console.warn(f"row {row} is damaged")
    console.warn("odd")
    console.summary("done", {})
    assert out.getvalue().splitlines() == [
        "warning: row 3 is damaged",
        "warning: odd",
        "warning, 3 times, each in the log: row 3 is damaged",
        "",
        "done",
    ]
    log = (tmp_path / "log.log").read_text()
    assert all(f"WARNING row {row} is damaged" in log for row in (3, 17, 100))
    console.close()
    assert out.getvalue().count("3 times") == 1
