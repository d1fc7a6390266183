"""Who of several processes that failed is to blame, and how its end is told."""

import math
import signal
from typing import List, Sequence

from src.platform.child import Child
from src.platform.pulse import Phase

TOGETHER_S = 0.05  # ends so close cannot be told apart: the supervisor looks as often


def is_failing(child: Child) -> bool:
    """Whether it said that it fails; its end follows."""
    return child.sign.phase is Phase.FAILING


def first_to_fail(children: Sequence[Child]) -> Child:
    """The one that failed first: the others' ends may follow from it. `children`: those that failed.

    A rank that raised says so before it writes its traceback, which takes longer than for another to follow.
    Of ends at the same time, a death by a signal explains the most.
    """
    first_s = min(map(_failed_at, children))
    together = [child for child in children if _failed_at(child) <= first_s + TOGETHER_S]
    return min(together, key=lambda child: (child.code is None or child.code >= 0, child.process.service))


def _failed_at(child: Child) -> float:
    """On the monotonic clock; of an end without a word, the earliest that it can have been."""
    noticed = math.inf if child.ended_at is None else child.ended_at
    return min(child.sign.time, noticed) if is_failing(child) else noticed - TOGETHER_S


def told(child: Child, was_ended: bool) -> List[str]:
    """A sentence and the last lines of its log. `was_ended`: it was failing, and the supervisor ended it."""
    how = "failed, and did not end by itself" if was_ended else ending(child.code or 0)
    lines = [f"{child.process.name} {how}", *child.tail()]
    if len(lines) > 1:
        lines[0] += f"; the end of {child.process.log}:"
    return lines


def ending(code: int) -> str:
    """What is said of a process's end; -n is death by signal n."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def exit_code(code: int) -> int:
    """As a shell says it: 128 + n for signal n."""
    return code if code >= 0 else 128 - code
