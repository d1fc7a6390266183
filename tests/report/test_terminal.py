"""No stream, however odd or gone, stops a run."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from src.report.console import Console
from src.report.logfile import open_log_file

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def terminal_of_100_columns(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def small_run(console):
    progress = console.epoch(0, 1, 2)
    console.waiting("compiling")
    progress.step(1, loss=2.5)
    progress.line(2, loss=2.5)
    console.error("wrong")
    console.summary("completed", {"report": "report.json"})


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_stream_that_lacks_characters_prints_what_it_can(terminal, encoding):
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding=encoding), terminal=terminal)
    console.say("class \u732b \udce9")
    small_run(console)
    assert b"class " in raw.getvalue()
    assert b"completed" in raw.getvalue()
    if encoding == "ascii":
        assert b"class ? ?\n" in raw.getvalue()
        assert raw.getvalue().count(b"?") - raw.getvalue().count(b"[?25") == 2  # ours is ASCII, spinner too


@pytest.mark.parametrize("terminal", [False, True])
def test_a_closed_stream_does_not_stop_the_run(terminal, tmp_path):
    out = io.StringIO()
    console = Console(file=out, terminal=terminal, log=open_log_file(tmp_path / "log.log", False))
    out.close()
    small_run(console)
    assert "completed" in (tmp_path / "log.log").read_text()


def test_a_reader_who_goes_away_does_not_stop_the_run(tmp_path):
    code = (
        "import sys, os; from src.report.console import Console\n"
        "console = Console()\n"
        "console.say('first'); sys.stdin.readline()\n"
        "[console.say('more' * 1000) for _ in range(50)]\n"
        "print('others may print too')\n"
        "open(sys.argv[1], 'w').write('trained')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "end")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"first\n"
        process.stdout.close()
        _, errors = process.communicate(b"\n", timeout=30)
    assert errors == b""
    assert process.returncode == 0
    assert (tmp_path / "end").read_text() == "trained"


def test_a_real_terminal_is_recognised_and_keeps_its_cursor_when_the_run_is_killed():
    code = (
        "from src.report.console import Console\n"
        "console = Console(); progress = console.epoch(0, 1, 2)\n"
        "progress.step(1, loss=1.5); progress.step(2)\n"
        "console.error('wrong'); import os; os.kill(os.getpid(), 9)"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not chunk:
            break
        text += chunk
    os.close(ours)
    assert process.wait(timeout=30) == -9
    assert b"2/2" in text
    assert b"\x1b[1;31merror: wrong" in text
    assert text.rindex(b"\x1b[?25h") > text.rindex(b"\x1b[?25l")
