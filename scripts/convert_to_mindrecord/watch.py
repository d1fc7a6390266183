"""Notices a worker that hangs: a decoder in an endless loop, a disk or network that does not answer."""

from __future__ import annotations

import mmap
import time
from pathlib import Path
from typing import Any, Iterator, Optional

IMAGE_TIMEOUT_S = 300  # the largest image that can be stored, 256 MiB, is decoded in a tenth of that
LONGEST_ROUND_S = 1.0  # the time of a stop by Ctrl-Z, or of a laptop that sleeps, is nobody's fault
STATES = {"R": "it computes", "S": "it waits", "D": "it waits for a disk or a network folder"}


class RowAtHand:
    """Tells the main process, through shared memory, which row a worker is busy with, in case it dies."""

    def __init__(self) -> None:
        self.memory = memoryview(mmap.mmap(-1, 24)).cast("q")  # busy, task, row

    def begin(self, task: int, row: int) -> None:
        self.memory[1], self.memory[2] = task, row
        self.memory[0] = 1

    def end(self) -> None:
        self.memory[0] = 0

    @property
    def pending(self) -> Optional[tuple[int, int]]:
        """(task, row), or None between two rows."""
        return (self.memory[1], self.memory[2]) if self.memory[0] else None


class WatchedPlugIn:
    """The same plug-in, which says when it has been asked for a row and when it has given it."""

    def __init__(self, plugin: Any, at_hand: RowAtHand) -> None:
        self.plugin, self.at_hand = plugin, at_hand

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plugin, name)

    def rows(self, task_id: int) -> Iterator[dict]:
        number = 0
        self.at_hand.begin(task_id, number)
        try:
            for row in self.plugin.rows(task_id):
                self.at_hand.end()
                yield row
                number += 1
                self.at_hand.begin(task_id, number)
        finally:
            self.at_hand.end()


class Patience:
    """For how long something has been the same."""

    def __init__(self) -> None:
        self.state: Any = None
        self.seconds = 0.0
        self.last = time.monotonic()

    def with_state(self, state: Any) -> float:
        """To be asked again and again; seconds since the state was another."""
        now = time.monotonic()
        self.seconds = self.seconds + min(now - self.last, LONGEST_ROUND_S) if state == self.state else 0.0
        self.state, self.last = state, now
        return self.seconds


def what_it_does(process: Optional[int]) -> str:
    """By the kernel's account; "" where there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("ascii", "replace")
    except OSError:
        return ""
    state = STATES.get(stat.rpartition(")")[2].split()[0])
    return f" ({state})" if state else ""
