"""A request to stop, as a flag that is looked at between steps."""

from __future__ import annotations

import signal
from typing import Any


class StopFlag:
    """Set by SIGTERM and Ctrl-C; a second signal ends the process at once.

    Once a graph has run, MindSpore turns Ctrl-C into SIGTERM, so both are one request here.
    """

    def __init__(self) -> None:
        self.received: int | None = None  # by this process
        self.agreed = False  # by all ranks

    @property
    def is_set(self) -> bool:
        return self.received is not None

    def install(self) -> StopFlag:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: Any) -> None:
        self.received = number
        for again in (signal.SIGTERM, signal.SIGINT):
            signal.signal(again, signal.SIG_DFL)
