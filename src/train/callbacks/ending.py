"""What ends training before its time: a signal, or divergence."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from src.errors import DivergedError
from src.train.saver import require_finite
from src.weights.checkpoint import tensors_of

if TYPE_CHECKING:
    from src.config import Training
    from src.platform.distributed import World
    from src.platform.signals import Requests
    from src.train.record import EpochRecord
    from src.train.saver import Saver
    from src.train.step import TrainStep

# Asking all ranks costs a collective (0.75 ms on the CPU); one process alone asks after every update.
STOP_CHECK_STEPS = 10


class Agreement(Callback):
    """Asks all ranks, at the same step, whether any was told to stop or to save, or saving is due."""

    def __init__(
        self, record: EpochRecord, requests: Requests, world: World, saver: Saver, minutes: float | None
    ) -> None:
        self.record, self.requests, self.world, self.saver = record, requests, world, saver
        self.seconds = math.inf if minutes is None else 60 * minutes
        steps = STOP_CHECK_STEPS if world.size > 1 else 1
        self.every = record.accumulation * math.ceil(steps / record.accumulation)

    def on_train_step_end(self, run_context: Any) -> None:
        requests = self.requests
        if self.record.steps_done % self.every:
            return
        overdue = time.monotonic() - self.saver.last_time > self.seconds
        asked = [requests.stop_asked, requests.save_asked or overdue]
        requests.stop_agreed, requests.save_agreed = self.world.any_of(asked)
        if requests.save_agreed:
            requests.save_asked = False


class StopOnSignal(Callback):
    """Ends training where all ranks agreed to."""

    def __init__(self, requests: Requests) -> None:
        self.requests = requests

    def on_train_step_end(self, run_context: Any) -> None:
        if self.requests.stop_agreed:
            run_context.request_stop()


class StopOnDivergence(Callback):
    """Raises DivergedError when no finite gradient, or no finite loss, can be had any more.

    Updates without a finite gradient were skipped, so all ranks have the same row of them. Asking the device
    for it may make the host wait, so that is done only when the row can have become long enough: in good
    times every --max-nonfinite-steps updates, and yet never an update too late.
    """

    def __init__(self, record: EpochRecord, step: TrainStep, training: Training) -> None:
        self.record, self.step, self.training = record, step, training
        self.updates_to_go = 1  # until the row is asked for; a run that is continued may begin within one

    def on_train_step_end(self, run_context: Any) -> None:
        record, most = self.record, self.training.max_nonfinite_steps
        what = ""
        if record.at_display(self.training.disp_batches) and record.window_loss is None:
            what = f"not one loss of the last {record.window_steps} steps is a finite number"
        self.updates_to_go -= int(record.updated)
        if self.updates_to_go == 0:
            row = self.step.skipped_in_a_row()
            self.updates_to_go = most - row
            if row >= most:
                what = f"{row} steps in a row had no finite gradient (--max-nonfinite-steps {most})"
        if what:
            raise DivergedError(
                f"{what}, up to step {record.steps_done} of epoch {record.epoch + 1}: training diverged; "
                "try a lower --lr, a longer --warmup-epochs or --grad-clip"
            )


class StopOnBrokenState(Callback):
    """Raises DivergedError before weights that are no finite numbers would be validated."""

    def __init__(self, record: EpochRecord, step: TrainStep, world: World) -> None:
        self.record, self.step, self.world = record, step, world

    def on_train_epoch_end(self, run_context: Any) -> None:
        if self.record.complete:
            require_finite(tensors_of(self.step.get_parameters()), self.record, self.world)
