"""Of several ranks that failed, the one that failed first is named, not those that followed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from src.platform.child import Process
from src.platform.culprit import exit_code, first_to_fail, told
from src.platform.pulse import Phase, Sign
from src.platform.supervisor import supervise
from tests.support import ROOT


def child(
    code: int | None, ended_at: float | None, failing_at: float | None = None, service: bool = False
) -> Any:
    sign = Sign(3, Phase.TRAINING, 0, 5, 1.0)
    if failing_at is not None:
        sign = Sign(4, Phase.FAILING, 0, 5, failing_at)
    return SimpleNamespace(code=code, ended_at=ended_at, sign=sign, process=SimpleNamespace(service=service))


@pytest.mark.parametrize(
    ("first", "others"),
    [
        (child(3, 10.0), [child(1, 10.2)]),  # seen earlier
        (child(3, 12.0, failing_at=9.0), [child(1, 11.0, failing_at=10.0)]),  # said so earlier, ended later
        (child(None, None, failing_at=9.0), [child(1, 11.0, failing_at=10.0)]),  # has not ended yet
        (child(4, 10.0, failing_at=9.5), [child(-6, 10.0)]),  # a crash that followed
        (child(-9, 10.0), [child(1, 10.0, failing_at=9.92)]),  # at the same time: a signal explains most
        (child(-9, 10.0), [child(1, 10.0), child(1, 10.0, service=True)]),
        (child(1, 10.0), [child(1, 10.0, service=True)]),  # the scheduler missed a rank that had failed
    ],
)
def test_the_first(first: Any, others: list[Any]) -> None:
    assert first_to_fail([first, *others]) is first
    assert first_to_fail([*others, first]) is first


def test_of_equals_the_one_on_the_console() -> None:
    ranks = [child(4, 10.0, failing_at=9.51), child(4, 10.0, failing_at=9.50)]  # both diverged
    assert first_to_fail(ranks) is ranks[0]


BEGIN = "import os, sys, time; from src.platform.pulse import Phase, give\n"
FOLLOWS = "while not os.path.exists({go!r}): time.sleep(0.01)\ntime.sleep(0.2)\nsys.exit(1)"
LEADS = "give(Phase.FAILING)\nopen({go!r}, 'w').close()\ntime.sleep({seconds})\nprint('why')\nsys.exit(4)"


@pytest.mark.parametrize(
    ("seconds", "code", "sentence"),
    [(0.7, 4, "rank 1 ended with code 4"), (60, 1, "rank 1 failed, and did not end by itself")],
)
def test_a_rank_that_is_slow_to_end_is_named_before_those_that_followed_it(
    seconds: float, code: int, sentence: str, tmp_path: Path
) -> None:
    go = str(tmp_path / "go")
    programs = [FOLLOWS.format(go=go), LEADS.format(go=go, seconds=seconds)]
    plan = [
        Process(
            f"rank {i}", [sys.executable, "-c", BEGIN + program], log=tmp_path / f"rank_{i}.log", cwd=ROOT
        )
        for i, program in enumerate(programs)
    ]
    outcome = supervise(plan, failure_grace_s=1.5)
    assert outcome.code == code
    assert outcome.message.startswith(sentence)
    assert outcome.message.endswith("why") == (seconds < 1)


def test_ends_in_words(tmp_path: Path) -> None:
    found: Any = SimpleNamespace(
        code=-250, process=SimpleNamespace(name="rank 1", log=tmp_path), tail=lambda: ["last"]
    )
    assert told(found, was_ended=False) == [
        f"rank 1 was killed by signal 250; the end of {tmp_path}:",
        "last",
    ]
    assert [exit_code(code) for code in (0, 7, -9)] == [0, 7, 137]
