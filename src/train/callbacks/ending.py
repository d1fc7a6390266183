"""What ends training before its time: a signal, or divergence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from src.errors import DivergedError
from src.weights import checkpoint

if TYPE_CHECKING:
    from src.config import Training
    from src.platform.distributed import World
    from src.platform.signals import StopFlag
    from src.train.record import EpochRecord
    from src.train.step import TrainStep

# Asking all ranks costs a collective (0.75 ms on the CPU); one process alone asks after every step.
STOP_CHECK_STEPS = 10


class StopOnSignal(Callback):
    """Ends training at a step on which all ranks agree, after any of them was told to stop."""

    def __init__(self, record: EpochRecord, stop: StopFlag, world: World) -> None:
        self.record, self.stop, self.world = record, stop, world

    def on_train_step_end(self, run_context: Any) -> None:
        if self.world.size > 1 and self.record.steps_done % STOP_CHECK_STEPS:
            return
        if self.world.any(self.stop.is_set):
            self.stop.agreed = True
            run_context.request_stop()


class StopOnDivergence(Callback):
    """Raises DivergedError when no finite gradient, or no finite loss, can be had any more.

    Updates without a finite gradient were skipped, so all ranks have the same row of them.
    """

    def __init__(self, record: EpochRecord, step: TrainStep, training: Training) -> None:
        self.record, self.step, self.training = record, step, training

    def on_train_step_end(self, run_context: Any) -> None:
        record, most = self.record, self.training.max_nonfinite_steps
        if not record.at_display(self.training.disp_batches):
            return
        streak = self.step.take_streak()
        what = ""
        if streak >= most:
            what = f"{streak} steps in a row had no finite gradient (--max-nonfinite-steps {most})"
        elif record.window_loss is None:
            what = f"not one loss of the last {record.window_steps} steps is a finite number"
        if what:
            raise DivergedError(
                f"{what}, up to step {record.steps_done} of epoch {record.epoch + 1}: training diverged; "
                "try a lower --lr, a longer --warmup-epochs or --grad-clip"
            )


class StopOnBrokenState(Callback):
    """Raises DivergedError before anything that is no finite number could be saved."""

    def __init__(self, record: EpochRecord, step: TrainStep) -> None:
        self.record, self.step = record, step

    def on_train_epoch_end(self, run_context: Any) -> None:
        if not self.record.complete:
            return
        broken = checkpoint.nonfinite(checkpoint.tensors_of(self.step))
        if broken:
            raise DivergedError(
                f"after epoch {self.record.epoch + 1}, {broken[0]} is not finite: training diverged; nothing "
                "was saved over the last good checkpoint; try a lower --lr or --grad-clip"
            )
