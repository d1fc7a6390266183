"""Signs of life, for whoever watches over the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from src.platform import pulse
from src.platform.pulse import Phase

if TYPE_CHECKING:
    from src.train.record import EpochRecord


class Pulses(Callback):
    """Says which step is done. Right after the clock: later callbacks may wait for another rank."""

    def __init__(self, record: EpochRecord) -> None:
        self.record = record

    def on_train_epoch_begin(self, run_context: Any) -> None:
        pulse.give(Phase.COMPILING, self.record.epoch)  # until a step ends, nothing tells it from training

    def on_train_step_end(self, run_context: Any) -> None:
        pulse.give(Phase.TRAINING, self.record.epoch, self.record.steps_done)
