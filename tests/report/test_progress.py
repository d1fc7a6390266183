"""What moves: the bar of an epoch, and the spinner of a wait."""

from __future__ import annotations

import io

import pytest

from src.report.console import Console


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


def test_a_number_that_is_not_given_keeps_its_value():
    out = io.StringIO()
    clock = Clock()
    progress = Console(file=out, clock=clock).epoch(0, 1, 1000)
    progress.step(1, loss=6.9, lr=0.5)
    clock.now += 90
    progress.line(10, loss=float("nan"))
    assert out.getvalue() == "epoch 1/1  step   10/1000  loss    nan  lr 0.50000  left 2:45:00\n"


def test_the_first_step_alone_tells_nothing_about_the_time_left():
    """It compiles the graph."""
    out = io.StringIO()
    Console(file=out, clock=Clock()).epoch(0, 1, 1000).line(1, loss=6.9)
    assert out.getvalue() == "epoch 1/1  step    1/1000  loss 6.9000\n"


def test_the_learning_rate_gives_way_on_a_narrow_terminal(monkeypatch):
    for columns, shown in (("100", True), ("80", False)):
        monkeypatch.setenv("COLUMNS", columns)
        out = io.StringIO()
        Console(file=out, terminal=True).epoch(0, 90, 5004).step(1, loss=6.9, ips=26000.0, lr=0.25)
        assert ("lr 0.25000" in out.getvalue()) == shown
        assert "26,000 img/s" in out.getvalue()


def test_the_bar_is_not_redrawn_at_every_step():
    out = io.StringIO()
    clock = Clock()
    progress = Console(file=out, terminal=True, clock=clock).epoch(0, 1, 100000)
    for step in range(1, 5000):
        clock.now += 0.001
        progress.step(step)
    progress.close()
    assert 20 <= out.getvalue().count("/100000") <= 30


def test_the_next_output_ends_the_waiting():
    out = io.StringIO()
    console = Console(file=out, terminal=True)
    waiting = console.waiting("compiling")
    console.say("compiled")
    shown = len(out.getvalue())
    waiting.close()
    assert len(out.getvalue()) == shown  # it had ended
    with console.waiting("validating"):
        pass
    assert out.getvalue().endswith("\x1b[2K")  # erased


def test_waiting_under_a_bar_is_a_line_above_it():
    out = io.StringIO()
    console = Console(file=out, terminal=True)
    progress = console.epoch(0, 1, 10)
    progress.step(1)
    with console.waiting("saving"):
        progress.step(10)
    progress.close()
    assert "saving ...\n" in out.getvalue()


def test_an_epoch_left_open_is_closed_by_its_summary():
    out = io.StringIO()
    console = Console(file=out, terminal=True)
    console.epoch(0, 2, 10).step(1)
    console.epoch_summary(0, 2, {})
    before = len(out.getvalue())
    console.say("next")
    assert out.getvalue()[before:] == "next\n"  # and no bar drawn again
    console.epoch(1, 2, 10).step(1)
    console.close()
    assert out.getvalue().count("\x1b[?25l") == 2
