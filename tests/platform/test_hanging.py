"""Ranks that hang are found, those that are slow or wait are left alone. Small Python programs."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from src.platform import hanging
from src.platform.child import Child, Process
from src.platform.hanging import Watch
from src.platform.pulse import Phase, Sign
from src.platform.supervisor import Outcome, supervise
from tests.support import ROOT

LIMIT_S = 1.0
BEGIN = """
import os, signal, subprocess, sys, threading, time
from src.platform.pulse import Phase, answer_for_stacks, give
def wait(seconds):
    time.sleep(seconds)
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
answer_for_stacks()
give(Phase.STARTING)
"""
LITTLE_WORK = "for _ in range(10): work(0.03); wait(0.25)"
SLOW = {
    "a little work": LITTLE_WORK,
    "a little output": "for i in range(10): print(i, flush=True); wait(0.25)",
    "another process": f"subprocess.run([sys.executable, '-c', {BEGIN + LITTLE_WORK!r}])",
    "bringing data": "give(Phase.STAGING); wait(2.5)",
    "opening the device": "give(Phase.OPENING); wait(2.5)",
    "waiting for others": "give(Phase.JOINING); wait(2.5)",
    "training": "give(Phase.TRAINING); wait(2.5)",
    "signs": "for _ in range(10): give(Phase.STARTING); wait(0.25)",
}


def rank(number: int, program: str, folder: Path) -> Process:
    return Process(
        f"rank {number}", [sys.executable, "-c", program], log=folder / f"rank_{number}.log", cwd=ROOT
    )


def supervised(folder: Path, *programs: str, start_hang_s: float = LIMIT_S, hang_s: float = 0.0) -> Outcome:
    plan = [rank(i, program, folder) for i, program in enumerate(programs)]
    return supervise(plan, start_hang_s=start_hang_s, hang_s=hang_s)


def test_slow_ranks_and_those_that_wait_are_left_alone(tmp_path: Path) -> None:
    assert supervised(tmp_path, *(BEGIN + program for program in SLOW.values())) == Outcome(0, all_well=True)


@pytest.mark.parametrize("phase", ["STARTING", pytest.param("JOINING", marks=pytest.mark.slow)])
def test_a_rank_that_hangs_in_start_up_is_told_with_its_stacks(phase: str, tmp_path: Path) -> None:
    waits = f"{BEGIN}give(Phase.JOINING); wait(60)"
    stops = "os.kill(os.getpid(), signal.SIGSTOP)\n" if phase == "JOINING" else ""
    begin = time.monotonic()
    outcome = supervised(tmp_path, waits, f"{BEGIN}give(Phase.{phase})\n{stops}wait(60)")
    assert time.monotonic() - begin < 6
    assert (outcome.code, outcome.interrupted) == (1, False)
    first, *rest = outcome.message.splitlines()
    how = "a signal stopped it 1 s ago" if stops else "no processor time, input or output for 1 s"
    assert first.startswith("rank 1 hangs")
    assert f"{how}; its last sign of life: {phase.lower()}" in first
    assert rest[0] == f"Python stacks of rank 1, as in {tmp_path / 'rank_1.log'}:"
    assert any('File "<string>"' in line for line in rest)
    assert stops or any(line.endswith("in wait") for line in rest)


def test_a_rank_that_hangs_before_any_sign_is_not_asked(tmp_path: Path) -> None:
    outcome = supervised(tmp_path, "import time; time.sleep(60)")
    told = "no processor time, input or output for 1 s; it never gave a sign of life"
    assert outcome == Outcome(1, f"rank 0 hangs in start-up: {told}")


def test_all_ranks_that_hang_are_told_and_the_one_that_came_least_far_is_named(tmp_path: Path) -> None:
    sign = "give(Phase.TRAINING, 0, {})\nwait(60)"
    programs = [f"{BEGIN}wait(0.5)\n{sign.format(4)}", f"{BEGIN}{sign.format(3)}"]
    begin = time.monotonic()
    outcome = supervised(tmp_path, *programs, hang_s=LIMIT_S)
    assert time.monotonic() - begin < 8
    first, *rest = outcome.message.splitlines()
    assert outcome.code == 1
    signs = "rank 0 training in epoch 1 after step 4, rank 1 training in epoch 1 after step 3"
    assert first.startswith("rank 1 hangs: no sign of life for 1 s (--hang-timeout), and no core kept busy")
    assert first.endswith(f"last signs: {signs}")
    assert [line for line in rest if line.startswith("Python stacks of")] == [
        f"Python stacks of rank 1, as in {tmp_path / 'rank_1.log'}:"
    ]
    assert any(line.endswith("in wait") for line in rest)


@pytest.mark.slow
def test_of_ranks_that_came_as_far_none_is_accused(tmp_path: Path) -> None:
    outcome = supervised(tmp_path, *[f"{BEGIN}give(Phase.SAVING, 0, 4)\nwait(60)"] * 2, hang_s=LIMIT_S)
    first, *rest = outcome.message.splitlines()
    assert first.startswith("rank 0, rank 1 hang, or wait for the one that does: no sign of life for 1 s")
    assert len([line for line in rest if line.startswith("Python stacks of")]) == 2
    assert len([line for line in rest if line.endswith("in wait")]) == 2


@pytest.mark.slow
def test_a_rank_that_moves_excuses_one_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hanging, "IDLE_SHARE", 0.05)  # the machine may be busy with others
    waits = f"{BEGIN}give(Phase.TRAINING); wait(2.5)"
    moves = f"{BEGIN}for _ in range(10): give(Phase.COMPILING); wait(0.25)"
    works = (
        f"{BEGIN}give(Phase.COMPILING); thread = threading.Thread(target=work, args=(2.5,)); thread.start()"
    )
    works += "; thread.join()"
    for other in (moves, works):
        assert supervised(tmp_path, waits, other, hang_s=LIMIT_S) == Outcome(0, all_well=True)


@pytest.mark.slow
def test_threads_that_keep_in_touch_do_not_hide_a_hang(tmp_path: Path) -> None:
    chatter = "threading.Thread(target=lambda: [(work(0.03), wait(0.07)) for _ in range(600)], daemon=True)"
    outcome = supervised(
        tmp_path, f"{BEGIN}give(Phase.TRAINING)\n{chatter}.start()\nwait(60)", hang_s=LIMIT_S
    )
    assert outcome.message.startswith("rank 0 hangs: ")


@pytest.mark.slow
def test_no_limit(tmp_path: Path) -> None:
    assert supervised(tmp_path, f"{BEGIN}wait(2)", start_hang_s=0) == Outcome(0, all_well=True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_time_in_which_the_supervisor_itself_stood_still_does_not_count(tmp_path: Path) -> None:
    child, clock = Child(rank(0, "import time; time.sleep(60)", tmp_path)), Clock()
    try:
        watch = Watch(start_limit_s=7, limit_s=0, clock=clock)
        time.sleep(0.3)  # it has come to its sleep
        for clock.now in (1, 2, 3, 3600, 3601):
            assert watch.find([child]) is None
        found = None
        while found is None and clock.now < 3700:
            clock.now += 1
            found = watch.find([child])
        assert found is not None
        assert found.children == [child]
        assert clock.now < 3610
    finally:
        child.kill()


@pytest.mark.slow
def test_what_cannot_be_told_is_no_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging, "activity", lambda pid: None)
    assert supervised(tmp_path, "import time; time.sleep(2)") == Outcome(0, all_well=True)


def test_signs_are_named_in_words() -> None:
    assert [str(Sign(1, phase)) for phase in (Phase.STARTING, Phase.STAGING, Phase.OPENING)] == [
        "starting",
        "bringing data",
        "opening the device",
    ]
