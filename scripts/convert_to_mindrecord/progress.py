"""One line that is rewritten on a terminal, one every ten seconds anywhere else; and the log of the set."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Optional

TERMINAL_EVERY_S, LOG_EVERY_S = 0.5, 10.0
LOG_NAME = "convert.log"


class Log:
    """`convert.log`: when what was done, on which machine; the only file of a set that tells the time."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.file: Optional[Path] = None
        self.waiting: list[str] = []

    def open(self, folder: Path) -> None:
        """Continued, if a run before this one was interrupted."""
        self.file = folder / LOG_NAME
        waiting, self.waiting = self.waiting, []
        for line in waiting:
            self.write_line(line)

    def continue_from(self, source: Path, folder: Path) -> None:
        """Begin with the log of the set that this one is made of; before open()."""
        if (source / LOG_NAME).is_file():
            with open(folder / LOG_NAME, "ab") as handle:
                handle.write((source / LOG_NAME).read_bytes())

    def add(self, sentence: str) -> None:
        """For the log alone."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S %z")
        self.write_line(f"{stamp}  {sentence}\n")

    def note(self, sentence: str) -> None:
        """For the console too."""
        print(f"{self.program}: {sentence}", file=sys.stderr)
        self.add(sentence)

    def write_line(self, line: str) -> None:
        if self.file is None:
            self.waiting.append(line)
            return
        with open(self.file, "a", encoding="utf-8", errors="backslashreplace") as handle:
            handle.write(line)


class Progress:
    """Counts what the workers report.  `num_bytes`: of all sources, where that is known."""

    def __init__(self, title: str, unit: str, num_tasks: int, num_bytes: Optional[int], log: Log) -> None:
        self.title, self.unit, self.log = title, unit, log
        self.num_tasks, self.num_bytes = num_tasks, num_bytes
        self.tasks = self.rows = self.bytes = self.kept = 0
        self.start = self.shown = time.monotonic()
        self.terminal = sys.stderr.isatty()

    def add(self, tasks: int, rows: int, num_bytes: int) -> None:
        self.tasks += tasks
        self.rows += rows
        self.bytes += num_bytes

    def finished(self, report: dict[str, Any]) -> None:
        """A shard is done."""
        kept = " (kept from before)" if report.get("kept") else ""
        self.kept += bool(kept)
        size = report.get("num_bytes", 0) / 1e6
        self.log.add(f"{report['file']}: {report['num_rows']:,} rows, {size:,.1f} MB{kept}")

    def restart(self) -> None:
        self.tasks = self.rows = self.bytes = self.kept = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    @property
    def speed(self) -> str:
        """Since the start, the import of MindSpore included."""
        seconds = max(self.seconds, 1e-9)
        return f"{self.rows / seconds:,.0f} {self.unit}/s, {self.bytes / seconds / 1e6:,.1f} MB/s"

    @property
    def share(self) -> float:
        """Of the work that is done: of the bytes, or else of the tasks; never quite 1 before the end."""
        done = self.bytes / self.num_bytes if self.num_bytes else self.tasks / max(self.num_tasks, 1)
        return min(done, 0.999)

    def line(self) -> str:
        left = ""
        if self.share > 0:
            left_s = self.seconds * (1 - self.share) / self.share
            left = f", about {left_s / 60:.0f} min left" if left_s > 90 else f", about {left_s:.0f} s left"
        return f"{self.title}: {self.rows:,} {self.unit} ({100 * self.share:.0f} %), {self.speed}{left}"

    def show(self) -> None:
        if time.monotonic() - self.shown < (TERMINAL_EVERY_S if self.terminal else LOG_EVERY_S):
            return
        self.shown = time.monotonic()
        sys.stderr.write(f"\r\033[K{self.line()}" if self.terminal else f"{self.line()}\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self.terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
