"""The only door to tensorboardX: event files for TensorBoard (--tensorboard).

tensorboardX needs numpy, packaging and protobuf; TensorBoard's own package would bring a web server too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

FLUSH_S = 5  # a thread writes them to the disk; its own flush() does not wait for what is under way


class Events:
    """Scalars of steps (counted over the run, from 1) and of epochs (from 1), in two folders.

    In folders of their own, so that what a resumed run makes again can be dropped from each by its number.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writers: dict[str, Any] = {}
        self._steps = 0
        self._resumed = (0, 0)

    def go_on(self, epoch: int, step: int) -> None:
        """A resumed run begins at `step` of `epoch`; what stands there from then on is made again."""
        self._resumed = (epoch, step)

    def begin_epoch(self, steps: int) -> None:
        """An epoch of so many steps begins."""
        self._steps = steps

    def window(self, epoch: int, step: int, metrics: Mapping[str, Optional[float]]) -> None:
        """The last few steps, up to `step` (counted from 1) of `epoch` (from 0)."""
        resumed_epoch, resumed_step = self._resumed
        first = resumed_epoch * self._steps + resumed_step + 1
        self._add("steps", first, epoch * self._steps + step, metrics)

    def end_epoch(self, epoch: int, metrics: Mapping[str, Any]) -> None:
        """All figures of a finished epoch."""
        self._add("epochs", self._resumed[0] + 1, epoch + 1, metrics)

    def close(self) -> None:
        """Write what is left; nothing may follow."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def _add(self, which: str, first: int, number: int, metrics: Mapping[str, Any]) -> None:
        if which not in self._writers:
            from tensorboardX import SummaryWriter

            purge = first if any(self._resumed) else None
            # Without a suffix of its own, a part of the run could overwrite one of the same second.
            suffix = f".{time.time_ns()}"
            folder = str(self.folder / which)
            self._writers[which] = SummaryWriter(
                folder, purge_step=purge, filename_suffix=suffix, flush_secs=FLUSH_S
            )
        for name, value in metrics.items():
            if value is not None:
                self._writers[which].add_scalar(name, value, number)
