"""Ranks that are killed, crash, exit or hang, at every phase of a run: how that ends, and what is left.

Each case is a run of two ranks. `make test-deep` runs them all, `make test` a few.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Callable

import pytest

from tests.faults.runs import SLACK_S, End, run

HANG_TIMEOUT_S = 10  # for hangs after start-up, and longer than ranks wait for each other at the start
OTHER_COMPILES_S = 15  # a rank that hangs there is waited for only once the other has compiled
START, LATER = ("start", "import"), ("compiling", "training", "validating", "saving")
CODES = {"SIGKILL": 137, "SIGFPE": 136, "exit": 7, "hang": 1}
ENDINGS = {
    "SIGKILL": "was killed by SIGKILL",
    "SIGFPE": "was killed by SIGFPE",
    "exit": "ended with code 7",
}


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str
    phase: str
    rank: int
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} of rank {self.rank} at {self.phase} {self.where}".strip()


DECISIVE = [
    Case("SIGKILL", "training", 1, "step=3"),
    Case("hang", "import", 1),
]
# Each kind at each phase, and each rank at each phase.
DEEP = [
    *(Case("SIGKILL", phase, 0) for phase in ("start", *LATER)),
    *(Case("SIGKILL", phase, 1) for phase in ("start", "compiling", "validating", "saving")),
    *(Case("SIGFPE", phase, 1) for phase in ("start", *LATER)),
    *(Case("exit", phase, 0) for phase in ("start", "compiling", "validating")),
    *(Case("exit", phase, 1) for phase in ("training", "saving")),
    *(Case("hang", phase, rank) for phase in ("start", "saving") for rank in (0, 1)),
    *(Case("hang", phase, 0) for phase in ("import", "compiling", "validating")),
    Case("hang", "training", 1, "step=3"),
    Case("exit", "saving", 0, "at=fsync"),  # while the checkpoint is being written
    Case("SIGSTOP", "joining", 1),
    Case("SIGKILL", "compiling", 1, "delay=0.3"),
]


def start(case: Case, folder: Path) -> End:
    fault = f"rank={case.rank} phase={case.phase} kind={case.kind} {case.where}"
    later = case.kind == "hang" and case.phase in LATER
    return run(folder, fault, "-n", 2, *(["--hang-timeout", HANG_TIMEOUT_S] if later else []))


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow, id=str(case)) for case in DECISIVE]
    + [pytest.param(case, marks=pytest.mark.deep, id=str(case)) for case in DEEP],
)
def test_a_rank_ends_the_run(case: Case, ends: Callable[[object], End]) -> None:
    end = ends(case)
    assert end.left == []
    assert end.code == CODES.get(case.kind, 1), end.err
    sentence = next(line for line in end.err.splitlines() if line.startswith("runner: "))
    if case.kind in ENDINGS:
        assert sentence.startswith(f"runner: rank {case.rank} {ENDINGS[case.kind]}")
    elif case.phase in LATER:
        assert f": no sign of life for {HANG_TIMEOUT_S} s (--hang-timeout)" in sentence
        assert f"rank {case.rank} {case.phase}" in sentence
    else:
        assert sentence.startswith(f"runner: rank {case.rank} hangs")
    # What a rank said last is on the console: rank 0's own, another's as the end of its log.
    if case.kind in ENDINGS:
        assert f"fault: {case.kind}" in end.err
    elif case.phase != "start":  # before it runs any code of ours it cannot be asked where it is
        assert "in strike" in end.err
    limit_s = 10
    if case.kind == "hang" and case.phase in LATER:
        limit_s += HANG_TIMEOUT_S + (OTHER_COMPILES_S if case.phase == "compiling" else 0)
    assert end.seconds is not None
    print(f"{case}: {end.seconds:.1f} s")
    assert end.seconds < limit_s + SLACK_S
    report = end.report
    assert report["status"] == "failed"
    assert report["status_reason"] == sentence[len("runner: ") :]
    assert report["ngpus"] == 2
