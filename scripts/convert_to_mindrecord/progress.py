"""One line that is rewritten on a terminal; a line every ten seconds anywhere else."""

from __future__ import annotations

import sys
import time

TERMINAL_EVERY_S, LOG_EVERY_S = 0.5, 10.0


class Progress:
    def __init__(self, title: str, num_tasks: int, unit: str) -> None:
        self.title, self.num_tasks, self.unit = title, num_tasks, unit
        self.tasks = self.rows = 0
        self.start = self.shown = time.monotonic()
        self.terminal = sys.stderr.isatty()

    def add(self, tasks: int, rows: int) -> None:
        self.tasks += tasks
        self.rows += rows

    def restart(self) -> None:
        self.tasks = self.rows = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    @property
    def speed(self) -> float:
        """Rows per second since the start, the import of MindSpore included."""
        return self.rows / max(self.seconds, 1e-9)

    def show(self) -> None:
        if time.monotonic() - self.shown < (TERMINAL_EVERY_S if self.terminal else LOG_EVERY_S):
            return
        self.shown = time.monotonic()
        left_s = self.seconds * (self.num_tasks - self.tasks) / self.tasks if self.tasks else float("nan")
        left = f", about {left_s / 60:.0f} min left" if left_s > 90 else ""
        share = 100 * self.tasks / self.num_tasks
        line = (
            f"{self.title}: {self.rows:,} {self.unit} ({share:.0f} %), {self.speed:,.0f} {self.unit}/s{left}"
        )
        sys.stderr.write(f"\r\033[K{line}" if self.terminal else f"{line}\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self.terminal:
            sys.stderr.write("\r\033[K")
