"""When the steps begin and end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

if TYPE_CHECKING:
    from src.train.record import EpochRecord


class StepClock(Callback):
    """Times the steps. First in the list: its step ends before the other callbacks do their work."""

    def __init__(self, record: EpochRecord) -> None:
        self.record = record
        self.begun = self.ended = 0.0

    def on_train_epoch_begin(self, run_context: Any) -> None:
        self.ended = self.record.idle_since = time.perf_counter()

    def on_train_step_begin(self, run_context: Any) -> None:
        self.begun = time.perf_counter()

    def on_train_step_end(self, run_context: Any) -> None:
        if self.record.steps_done + 1 == self.record.num_steps:
            run_context.original_args().net_outputs.asnumpy()  # accelerators work ahead; the epoch ends here
        now = time.perf_counter()
        self.record.times.add(self.begun - self.record.idle_since, now - self.begun, now - self.ended)
        self.ended = now


class DataClock(Callback):
    """Notes when waiting for the next batch begins. Last in the list: after the other callbacks' work."""

    def __init__(self, record: EpochRecord) -> None:
        self.record = record

    def on_train_step_end(self, run_context: Any) -> None:
        self.record.idle_since = time.perf_counter()
