"""Where the time of some steps goes (--profile)."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

import mindspore as ms
from mindspore.train import Callback

from src.report import profile

if TYPE_CHECKING:
    from src.report.journal import Journal
    from src.train.record import EpochRecord

FIRST_STEPS = 5  # not profiled: the graph is compiled, caches are cold


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the profiler's warnings, that it is old and has no warm-up of its own."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _tell(record: EpochRecord, part: slice, folder: Path, journal: Journal) -> None:
    """Put what the profiler left, and the times of these steps, into the report and on the console."""
    times = record.times
    parts = times.waits[part], times.durations[part], times.totals[part]
    found = profile.document(record.epoch, *parts, profile.read_operators(folder))
    journal.note(profile=found)
    for line in [*profile.lines(found), f"  MindSpore's own files: {folder}"]:
        journal.console.say(line)


class Profile(Callback):
    """Profiles so many steps of one epoch, the first that has more than FIRST_STEPS, and tells the result."""

    def __init__(self, record: EpochRecord, journal: Journal, folder: Path, steps: int) -> None:
        self.record, self.journal, self.folder, self.steps = record, journal, folder, steps
        self.profiler: Any = None
        self.first, self.done = 0, False

    def on_train_step_begin(self, run_context: Any) -> None:
        made = len(self.record.times.totals)
        if self.profiler is None and not self.done and made >= FIRST_STEPS:
            self.first = made
            with _quiet():
                self.profiler = ms.Profiler(output_path=str(self.folder), start_profile=False)
                self.profiler.start()

    def on_train_step_end(self, run_context: Any) -> None:
        times, last = self.record.times, self.first + self.steps
        if self.profiler is None or (len(times.totals) < last and not self.record.complete):
            return
        run_context.original_args().net_outputs.asnumpy()  # accelerators work ahead
        with _quiet():
            self.profiler.stop()
        self.profiler, self.done = None, True
        _tell(self.record, slice(self.first, last), self.folder, self.journal)

    def on_train_epoch_end(self, run_context: Any) -> None:
        if not self.done and self.record.complete:
            made = len(self.record.times.totals)
            self.journal.console.warn(
                f"--profile leaves the first {FIRST_STEPS} steps of an epoch out, and there were {made}"
            )
