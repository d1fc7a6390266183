"""Processes that live and die together, played by small Python programs; no MindSpore."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

from src.errors import SuiteError
from src.platform.supervisor import Outcome, Process, supervise

FOREVER = "import time; time.sleep(60)"
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN); print("deaf", flush=True); time.sleep(60)
"""
TIDY = """
import signal, sys, time
def stop(number, frame): print("tidied up", flush=True); sys.exit(143)
signal.signal(signal.SIGTERM, stop); print("ready", flush=True); time.sleep(60)
"""


def process(name: str, program: str, folder: Path, service: bool = False) -> Process:
    """A small Python program that first notes its pid."""
    program = f"import os; open({str(folder / name)!r} + '.pid', 'w').write(str(os.getpid()))\n{program}"
    command = [sys.executable, "-c", program]
    return Process(name, command, log=folder / f"{name}.log", service=service)


def alive(folder: Path) -> "list[str]":
    """Names of the processes that noted their pid in `folder` and still run (a zombie does not)."""

    def runs(pid: str) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    return [path.stem for path in folder.glob("*.pid") if runs(path.read_text())]


def when(condition: Callable[[], bool], action: Callable[[], None]) -> None:
    """Have another thread act as soon as the condition holds."""

    def wait() -> None:
        end = time.monotonic() + 20
        while not condition() and time.monotonic() < end:
            time.sleep(0.02)
        action()

    threading.Thread(target=wait, daemon=True).start()


def wrote(path: Path, text: str) -> Callable[[], bool]:
    return lambda: path.exists() and text in path.read_text()


@pytest.fixture
def stopwatch() -> Callable[[], float]:
    start = time.monotonic()
    return lambda: time.monotonic() - start


def test_all_well(tmp_path: Path) -> None:
    plan = [process("a", "print('hello')", tmp_path), process("b", "", tmp_path)]
    assert supervise(plan) == Outcome(0, all_well=True)
    assert (tmp_path / "a.log").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("end", "code", "sentence"),
    [
        ("import sys; sys.exit(3)", 3, "rank 1 ended with code 3"),
        ("raise ValueError('broken pipe line')", 1, "rank 1 ended with code 1"),
        ("os.kill(os.getpid(), 9)", 137, "rank 1 was killed by SIGKILL"),
        ("os.kill(os.getpid(), 8)", 136, "rank 1 was killed by SIGFPE"),
    ],
)
def test_a_rank_that_fails_ends_the_run(
    end: str, code: int, sentence: str, tmp_path: Path, stopwatch: Callable[[], float]
) -> None:
    plan = [process("rank 0", FOREVER, tmp_path), process("rank 1", end, tmp_path)]
    outcome = supervise(plan)
    assert outcome.code == code
    assert outcome.message.startswith(sentence)
    assert stopwatch() < 5
    assert alive(tmp_path) == []


def test_the_end_of_a_failed_ranks_log_is_shown(tmp_path: Path) -> None:
    (tmp_path / "rank 1.log").write_text("from an earlier run\n")
    program = "for i in range(40): print('line', i)\nprint('[WARNING] noise')\nraise ValueError('the reason')"
    outcome = supervise([process("rank 1", program, tmp_path)])
    lines = outcome.message.splitlines()
    assert lines[0] == f"rank 1 ended with code 1; the end of {tmp_path / 'rank 1.log'}:"
    assert lines[-1] == "ValueError: the reason"
    assert len(lines) == 16
    assert "noise" not in outcome.message
    assert "earlier" not in outcome.message
    assert "earlier" in (tmp_path / "rank 1.log").read_text()


def test_a_rank_deaf_to_sigterm_is_killed(tmp_path: Path, stopwatch: Callable[[], float]) -> None:
    waiting = f"import time\nwhile not os.path.exists({str(tmp_path / 'deaf.log')!r}) or not open("
    waiting += f"{str(tmp_path / 'deaf.log')!r}).read(): time.sleep(0.02)\nos._exit(3)"
    outcome = supervise(
        [process("deaf", DEAF, tmp_path), process("b", waiting, tmp_path)], failure_grace_s=0.5
    )
    assert outcome.code == 3
    assert stopwatch() < 5
    assert alive(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_lets_the_ranks_tidy_up(number: signal.Signals, code: int, tmp_path: Path) -> None:
    when(wrote(tmp_path / "b.log", "ready"), lambda: os.kill(os.getpid(), number))
    before = signal.getsignal(number)
    # a is ready before b is started
    plan = [process("a", TIDY, tmp_path), process("b", "import time; time.sleep(0.4)" + TIDY, tmp_path)]
    outcome = supervise(plan)
    assert outcome == Outcome(code, f"stopped by {number.name}", interrupted=True)
    assert (tmp_path / "a.log").read_text() == "ready\ntidied up\n"  # once
    assert (tmp_path / "b.log").read_text() == "ready\ntidied up\n"
    assert signal.getsignal(number) == before


def test_ranks_that_do_not_stop_in_time_are_killed(tmp_path: Path, stopwatch: Callable[[], float]) -> None:
    when(wrote(tmp_path / "deaf.log", "deaf"), lambda: os.kill(os.getpid(), signal.SIGTERM))
    outcome = supervise([process("deaf", DEAF, tmp_path)], stop_grace_s=0.5)
    told = "stopped by SIGTERM; deaf had to be killed"
    assert outcome == Outcome(143, told, interrupted=True)
    assert stopwatch() < 5


def test_ranks_that_had_ended_well_are_told_from_those_that_were_stopped(tmp_path: Path) -> None:
    ends = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: os._exit(0))"
    ends += "; print('ready', flush=True)"
    when(wrote(tmp_path / "a.log", "ready"), lambda: os.kill(os.getpid(), signal.SIGTERM))
    outcome = supervise([process("a", f"{ends}; time.sleep(60)", tmp_path)])
    assert outcome == Outcome(143, "stopped by SIGTERM", interrupted=True, all_well=True)


def test_a_second_signal_kills_at_once(tmp_path: Path, stopwatch: Callable[[], float]) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    when(wrote(tmp_path / "deaf.log", "deaf"), twice)
    outcome = supervise([process("deaf", DEAF, tmp_path)])
    assert outcome.code == 130
    assert stopwatch() < 5
    assert alive(tmp_path) == []


def test_a_service_ends_after_the_ranks(tmp_path: Path, stopwatch: Callable[[], float]) -> None:
    plan = [
        process("service", DEAF, tmp_path, service=True),
        process("a", "import time; time.sleep(0.3)", tmp_path),
    ]
    assert supervise(plan) == Outcome(0, all_well=True)
    assert stopwatch() < 5
    assert alive(tmp_path) == []


def test_a_service_that_fails_ends_the_run(tmp_path: Path) -> None:
    plan = [
        process("service", "import sys; sys.exit(1)", tmp_path, service=True),
        process("a", FOREVER, tmp_path),
    ]
    outcome = supervise(plan)
    assert (outcome.code, outcome.message) == (1, "service ended with code 1")
    assert alive(tmp_path) == []


def test_a_process_that_cannot_start_ends_the_others(tmp_path: Path) -> None:
    missing = Process("rank 1", [str(tmp_path / "no such program")])
    with pytest.raises(SuiteError, match=r"rank 1 cannot be started: .*no such program"):
        supervise([process("a", FOREVER, tmp_path), missing])
    assert alive(tmp_path) == []


JOINS_LATE = """
import signal, time
from src.platform.pulse import Phase, give
give(Phase.JOINING); print("joining", flush=True)
def save(number, frame): print("saving", flush=True)
while not os.path.exists({asked!r}): time.sleep(0.02)
time.sleep(0.3)
signal.signal(signal.SIGUSR1, save)
give(Phase.JOINED)
end = time.monotonic() + {seconds}
while time.monotonic() < end: time.sleep(0.02)
"""


def test_a_wish_to_save_goes_to_one_rank_once_that_can_hear_it(tmp_path: Path) -> None:
    asked = tmp_path / "asked"

    def ask() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        asked.touch()

    when(wrote(tmp_path / "a.log", "joining"), ask)
    program = JOINS_LATE.format(asked=str(asked), seconds=1)
    plan = [process("a", program, tmp_path), process("b", program, tmp_path)]
    assert supervise(plan) == Outcome(0, all_well=True)
    logs = [(tmp_path / f"{name}.log").read_text() for name in ("a", "b")]
    assert sorted(logs) == ["joining\n", "joining\nsaving\n"]
