"""What is drawn on a terminal with `rich`, and a stream that never takes the run down with it."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Optional, TextIO


class SafeStream:
    """A text stream for `rich` and for us: a reader who has gone, or a closed stream, is no error.

    `train.py | head` must go on training.  Characters that the stream's encoding lacks become "?".
    """

    def __init__(self, file: TextIO):
        self._file = file

    @property
    def encoding(self) -> str:
        return getattr(self._file, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        try:
            return self._file.isatty()
        except (AttributeError, ValueError):  # no real stream, or a closed one
            return False

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, text: str) -> int:
        try:
            self._file.write(text)
        except UnicodeEncodeError:
            return self.write(text.encode(self.encoding, "replace").decode(self.encoding))
        except (OSError, ValueError) as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._file.flush()
        except (OSError, ValueError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        if not isinstance(error, BrokenPipeError):
            return
        # The interpreter would try the unwritten rest again at exit, and fail with code 120.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), self._file.fileno())


def rich_console(stream: SafeStream) -> Optional[Any]:
    """A `rich.console.Console` on `stream`, or None where only lines can be printed.

    That is a dumb terminal, or one without `rich` installed: no reason not to train.
    """
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(file=stream, force_terminal=True)  # type: ignore[arg-type]
    return None if console.is_dumb_terminal else console


class Bar:
    """A progress bar that is redrawn only by `update`: no thread beside the training, none to fork."""

    def __init__(self, console: Any, label: str, total: int):
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._progress = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.completed}/{task.total}", markup=False),
            TextColumn("{task.fields[numbers]}", markup=False),
            console=console,
            transient=True,
            expand=True,
            auto_refresh=False,
        )
        self._task = self._progress.add_task(label, total=total, numbers="")
        _start(self._progress)

    def update(self, completed: int, numbers: str) -> None:
        self._progress.update(self._task, completed=completed, numbers=numbers, refresh=True)

    def close(self) -> None:
        self._progress.stop()


class Spinner:
    """A turning sign with the time since it began; it leaves nothing behind."""

    def __init__(self, console: Any, text: str):
        from rich.progress import Progress as RichProgress
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = RichProgress(
            SpinnerColumn("dots" if console.encoding.startswith("utf") else "line"),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            refresh_per_second=4,
        )
        self._progress.add_task(text, total=None)
        _start(self._progress)

    def close(self) -> None:
        self._progress.stop()


def _start(progress: Any) -> None:
    progress.start()
    # rich hides the cursor; a run that is killed would leave the terminal without one.
    progress.console.show_cursor(True)
