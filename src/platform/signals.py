"""What a person or a system asks of a running process by signals, looked at between steps."""

from __future__ import annotations

import signal
from typing import Any

SAVE = signal.SIGUSR1  # asks to save now, and to go on


def ignore_save_requests() -> None:
    """For a process with nothing to save, or not yet: SIGUSR1 would kill it. Its children inherit that."""
    signal.signal(SAVE, signal.SIG_IGN)


class Requests:
    """To stop, by SIGTERM and Ctrl-C (a second signal ends the process at once); to save now, by SIGUSR1.

    Once a graph has run, MindSpore turns Ctrl-C into SIGTERM, so both are one request here.
    """

    def __init__(self) -> None:
        self.stop_signal: int | None = None  # that this process was sent
        self.stop_agreed = False  # by all ranks
        self.save_asked = False  # of this process
        self.save_agreed = False  # by all ranks, and not done yet

    @property
    def stop_asked(self) -> bool:
        return self.stop_signal is not None

    def install(self) -> Requests:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)
        signal.signal(SAVE, self._note_save)
        return self

    def _note_save(self, number: int, frame: Any) -> None:
        self.save_asked = True

    def _note(self, number: int, frame: Any) -> None:
        self.stop_signal = number
        for again in (signal.SIGTERM, signal.SIGINT):
            signal.signal(again, signal.SIG_DFL)
