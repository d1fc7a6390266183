"""What the steps did, fetched from the device, shown, and put into the report's names."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from src.report.merging import merged

if TYPE_CHECKING:
    from src.config import Config
    from src.platform.distributed import World
    from src.report.journal import Journal
    from src.train.record import EpochRecord
    from src.train.schedule import Schedule
    from src.train.step import TrainStep


class Sums(Callback):
    """Fetches the sums that the step keeps on the device, over all devices."""

    def __init__(self, record: EpochRecord, step: TrainStep, world: World, every: int) -> None:
        self.record, self.step, self.world, self.every = record, step, world, every

    def on_train_step_end(self, run_context: Any) -> None:
        if self.record.at_display(self.every):
            self.record.add(self.world.sum(self.step.take_sums()), self.world.size)


class Progress(Callback):
    """Shows the person where training is, and writes the dllogger line of every few steps."""

    def __init__(
        self, record: EpochRecord, journal: Journal, schedule: Schedule, config: Config, world: World
    ):
        self.record, self.journal, self.schedule, self.config = record, journal, schedule, config
        self.images_per_step = config.training.batch_size * world.size
        self.window_begun, self.window_step = 0.0, 0

    def on_train_epoch_begin(self, run_context: Any) -> None:
        record = self.record
        self.journal.begin_epoch(record.epoch, self.config.training.num_epochs, record.num_steps)
        self.window_begun, self.window_step = time.perf_counter(), record.first_step

    def on_train_step_end(self, run_context: Any) -> None:
        record, now = self.record, time.perf_counter()
        self.journal.step(record.steps_done)
        if not record.at_display(self.config.training.disp_batches):
            return
        images = self.images_per_step * (record.steps_done - self.window_step)
        window = {
            "train.loss": record.window_loss,
            "train.ips": images / (now - self.window_begun),
            "train.lr": self.schedule.rate(record.position),
        }
        self.journal.window(record.epoch, record.steps_done, window)
        self.window_begun, self.window_step = now, record.steps_done


class TrainMetrics(Callback):
    """The epoch's training figures, in the report's names."""

    def __init__(
        self, record: EpochRecord, step: TrainStep, config: Config, schedule: Schedule, world: World
    ) -> None:
        self.record, self.step, self.schedule, self.world = record, step, schedule, world
        self.batch_size = config.training.batch_size

    def on_train_epoch_end(self, run_context: Any) -> None:
        record = self.record
        if not record.complete:
            return
        if record.counted:
            record.metrics["train.top1"] = record.top1 / record.counted
            record.metrics["train.top5"] = record.top5 / record.counted
        if self.step.loss_scale is not None:
            record.metrics["train.loss_scale"] = float(self.step.loss_scale.scale.asnumpy())
        figures, record.ranks = merged(record.times, "train", self.batch_size, self.world.gather)
        record.metrics.update(
            {
                "train.loss": record.loss / record.steps,
                "train.skipped_steps": record.skipped,
                "train.lr": self.schedule.rate(record.position),
                **figures,
                "train.compile_time": record.times.compile_s if record.compiles else 0.0,
            }
        )
