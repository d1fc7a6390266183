"""One run of `runner`, with an end: its own, a time limit, or a signal to this process."""

import dataclasses
import signal
import time
from pathlib import Path
from typing import List, Optional

from src.platform.child import Child, Process
from src.platform.orphans import Orphanage
from src.platform.signals import Requests

POLL_S = 0.05
# After the first SIGTERM runner lets its ranks finish their step, after the second one it kills them. What is
# measured here has nothing to save.
STOP_GRACE_S, KILL_GRACE_S = 5.0, 5.0
LAST_LINES = 100  # behind runner's own sentence stand the last lines of a rank
_TOLD_BY = ("runner: ", "train.py: ")  # how the sentence begins that says what was wrong


@dataclasses.dataclass(frozen=True)
class Ended:
    """How the run ended."""

    code: int
    """as subprocess counts: -n is death by signal n"""
    seconds: float
    timed_out: bool
    last_words: str
    """what it said of its end, or its last line"""


def run(
    command: List[str], log: Path, timeout_s: Optional[float], requests: Requests, orphanage: Orphanage
) -> Ended:
    """Run until it ends; when the time is over or a stop is requested, end it. No process of it stays.

    Raises OSError if it cannot be started.
    """
    begin, timed_out = time.monotonic(), False
    child = Child(Process("runner", command, log=log, service=True))
    try:
        while child.alive and not (requests.stop_asked or timed_out):
            time.sleep(POLL_S)
            child.poll()
            timed_out = child.alive and timeout_s is not None and time.monotonic() - begin > timeout_s
        for grace_s in (STOP_GRACE_S, KILL_GRACE_S):
            child.signal(signal.SIGTERM)
            _await(child, grace_s)
    finally:
        child.kill()
        orphanage.clear()
    assert child.code is not None
    return Ended(child.code, time.monotonic() - begin, timed_out, _last_words(child))


def _await(child: Child, seconds: float) -> None:
    end = time.monotonic() + seconds
    while child.alive and time.monotonic() < end:
        time.sleep(POLL_S)
        child.poll()


def _last_words(child: Child) -> str:
    lines = [line.strip() for line in child.tail(LAST_LINES) if line.strip()]
    told = [line for line in lines if line.startswith(_TOLD_BY)]
    return (told or lines or ["it said nothing"])[-1]
