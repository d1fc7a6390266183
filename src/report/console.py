"""What a run tells the person who started it: facts, progress, epochs, the end."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, TextIO

from src.report import wording
from src.report.progress import Progress, Waiting
from src.report.terminal import SafeStream, rich_console

Columns = tuple[tuple[str, str, Callable[[Optional[float]], str]], ...]
# The parts of an epoch's line: metric of the report, words before it, how it is written.
_TRAIN_COLUMNS: Columns = (
    ("train.loss", "loss ", wording.loss),
    ("train.top1", "top1 ", wording.percent),
    ("train.total_ips", "", wording.speed),
)
_OTHER_COLUMNS: Columns = (
    ("val.loss", "val loss ", wording.loss),
    ("val.top1", "val top1 ", wording.percent),
    ("val.top5", "top5 ", wording.percent),
    ("epoch_time", "", wording.duration),
)


class Console:
    """Lines on stdout, warnings and errors on stderr; on a terminal with colours, a bar and a spinner.

    Everything lasting is copied to `log`, also when `enabled` is off (other ranks, or a quiet run).
    `file` stands for both streams; `terminal` overrules what is found out about it.
    """

    def __init__(
        self,
        enabled: bool = True,
        file: Optional[TextIO] = None,
        *,
        log: Optional[logging.Logger] = None,
        terminal: Optional[bool] = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.log = log
        self.clock = clock
        self._enabled = enabled
        self._out = SafeStream(file or sys.stdout)
        self._err = SafeStream(file or sys.stderr)
        self._one_screen = self._err.isatty() if terminal is None else terminal
        on_terminal = self._out.isatty() if terminal is None else terminal
        self.rich: Any = rich_console(self._out) if enabled and on_terminal else None
        self._warned: Counter[str] = Counter()  # text with its numbers left out -> how often
        self._first_warnings: dict[str, str] = {}
        self._waiting: Optional[Waiting] = None
        self._progress: Optional[Progress] = None

    def say(self, text: str) -> None:
        """What is being done, and with what."""
        self._print(text)

    def warn(self, text: str) -> None:
        """A warning. Of those that differ only in numbers one is shown, and at the end how many came."""
        kind = re.sub(r"\d+", "#", text)
        self._warned[kind] += 1
        if self._warned[kind] == 1:
            self._first_warnings[kind] = text
            self._print(f"warning: {text}", "yellow", self._err, copy=False)
        self.copy_to_log(text, logging.WARNING)

    def error(self, text: str) -> None:
        self._print(f"error: {text}", "bold red", self._err, copy=False)
        self.copy_to_log(text, logging.ERROR)

    def facts(self, title: str, pairs: Mapping[str, Any]) -> None:
        """A block of names and values.  Whole numbers are shown ungrouped: a seed is there to be copied."""
        self._print(title, "bold")
        width = max(map(len, pairs), default=0)
        for name, value in pairs.items():
            self._print(f"  {name:<{width}}  {wording.as_text(value)}", dim=2 + width)

    def waiting(self, text: str) -> Waiting:
        """Something long begins; it ends with the next output, or as a `with` block."""
        bar_is_up = self._progress is not None and self._progress.shown
        self.end_waiting()
        if self.rich is None or bar_is_up:  # a terminal holds one moving thing at a time
            self._print(f"{text} ...")
            return Waiting(None, text)
        self.copy_to_log(f"{text} ...")
        self._waiting = Waiting(self.rich, text)
        return self._waiting

    def epoch(self, epoch: int, num_epochs: int, steps: int) -> Progress:
        """The progress of `epoch` (counted from 0, shown from 1) through its `steps`."""
        self._end_progress()
        self._progress = Progress(self, wording.epoch_label(epoch, num_epochs), steps)
        return self._progress

    def epoch_summary(self, epoch: int, num_epochs: int, metrics: Mapping[str, Any], note: str = "") -> None:
        """One aligned line from the report's metrics (accuracies as fractions) and `epoch_time` (s).

        A metric that is None shows as "-"; one that is not in `metrics` has no column.
        """
        self._end_progress()
        label = wording.epoch_label(epoch, num_epochs)
        train, others = (
            [words + written(metrics[name]) for name, words, written in columns if name in metrics]
            for columns in (_TRAIN_COLUMNS, _OTHER_COLUMNS)
        )
        line = "  ".join([label, *train, *others, note]).rstrip()
        if self.rich is None or len(line) <= self.rich.width or not train:
            self._print(line, dim=len(label))
            return
        self._print("  ".join([label, *train]), dim=len(label), copy=False)
        self._print("  ".join([" " * len(label), *others, note]).rstrip(), copy=False)
        self.copy_to_log(line)

    def summary(self, title: str, pairs: Mapping[str, Any], next_steps: Sequence[str] = ()) -> None:
        """The end: what came out, in which files, and what can be done with it."""
        self.close()
        self._print("", copy=False)
        self.facts(title, pairs)
        if next_steps:
            self._print("next", "bold")
        for step in next_steps:
            self._print(f"  {step}")

    def close(self) -> None:
        """Take away what moves on the terminal, and say how often a warning was repeated."""
        self.end_waiting()
        self._end_progress()
        for kind, times in self._warned.items():
            if times > 1:
                told = f"warning, {times} times, each in the log: {self._first_warnings[kind]}"
                self._print(told, "yellow", self._err)
        self._warned.clear()

    def copy_to_log(self, text: str, level: int = logging.INFO) -> None:
        if self.log is not None:
            self.log.log(level, "%s", text)

    def end_waiting(self) -> None:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.close()

    def _end_progress(self) -> None:
        if self._progress is not None:
            progress, self._progress = self._progress, None
            progress.close()

    def _print(
        self,
        text: str,
        style: str = "",
        stream: Optional[SafeStream] = None,
        *,
        dim: int = 0,
        copy: bool = True,
    ) -> None:
        """One line; on a terminal in `style`, its first `dim` characters standing back."""
        self.end_waiting()
        if copy:
            self.copy_to_log(text)
        if not self._enabled:
            return
        if self.rich is not None and (stream is not self._err or self._one_screen):
            from rich.text import Text

            line = Text(text, style)
            line.stylize("dim", 0, dim)
            self.rich.print(line, soft_wrap=True)  # paths and commands stay in one piece, to be copied
        else:
            stream = stream or self._out
            stream.write(text + "\n")
            stream.flush()
