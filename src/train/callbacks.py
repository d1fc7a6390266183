"""The programme of an epoch: each callback does one thing and adds what it learns to the epoch's record.

None calls another; their order in `fit.callbacks` is the order of events.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Callable

from mindspore import nn
from mindspore.train import Callback

from src.errors import DivergedError
from src.weights import checkpoint

if TYPE_CHECKING:
    from src.config import Config
    from src.evaluate.validate import Validation
    from src.platform.distributed import World
    from src.platform.signals import StopFlag
    from src.report.journal import Journal
    from src.train.record import EpochRecord
    from src.train.schedule import Schedule
    from src.train.step import TrainStep

# Asking all ranks costs a collective (0.75 ms on the CPU); one process alone asks after every step.
STOP_CHECK_STEPS = 10


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


class AverageLoss(Callback):
    """Fetches the sums that the step keeps on the device, over all devices; a loss must be a number."""

    def __init__(self, record: EpochRecord, step: TrainStep, world: World, every: int) -> None:
        self.record, self.step, self.world, self.every = record, step, world, every

    def on_train_step_end(self, run_context: Any) -> None:
        record = self.record
        if not record.at_display(self.every):
            return
        loss, steps, top1, top5 = self.world.sum(self.step.take_sums())
        record.window_loss = loss / steps
        if not math.isfinite(loss):
            raise DivergedError(
                f"the loss is {record.window_loss} at step {record.steps_done} of epoch {record.epoch + 1}: "
                "training diverged; try a lower --lr or a longer --warmup-epochs"
            )
        record.loss, record.steps = record.loss + loss, record.steps + steps
        record.top1, record.top5 = record.top1 + top1, record.top5 + top5


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
        self.window_begun, self.window_step = time.perf_counter(), 0

    def on_train_step_end(self, run_context: Any) -> None:
        record, now = self.record, time.perf_counter()
        self.journal.step(record.steps_done)
        if not record.at_display(self.config.training.disp_batches):
            return
        images = self.images_per_step * (record.steps_done - self.window_step)
        rate = self.schedule.rate(record.epoch + (record.steps_done - 1) / record.num_steps)
        window = {
            "train.loss": record.window_loss,
            "train.ips": images / (now - self.window_begun),
            "train.lr": rate,
        }
        self.journal.window(record.epoch, record.steps_done, window)
        self.window_begun, self.window_step = now, record.steps_done


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


class AverageStatistics(Callback):
    """Gives every rank the mean of the batch norms' moving statistics; each gathered its own."""

    def __init__(self, record: EpochRecord, network: nn.Cell, world: World) -> None:
        self.record, self.world = record, world
        self.statistics = [
            p for p in network.get_parameters() if p.name.endswith(("moving_mean", "moving_variance"))
        ]

    def on_train_epoch_end(self, run_context: Any) -> None:
        if self.world.size == 1 or not self.record.complete:
            return
        means = self.world.mean_arrays([p.asnumpy() for p in self.statistics])
        for parameter, mean in zip(self.statistics, means):
            parameter.set_data(parameter.from_numpy(mean))


class TrainMetrics(Callback):
    """The epoch's training figures, in the report's names."""

    def __init__(self, record: EpochRecord, config: Config, schedule: Schedule, world: World) -> None:
        self.record, self.schedule, self.count_right = record, schedule, config.training.metrics
        self.images_per_step = config.training.batch_size * world.size

    def on_train_epoch_end(self, run_context: Any) -> None:
        record = self.record
        if not record.complete:
            return
        images = record.num_steps * self.images_per_step
        if self.count_right:
            record.metrics.update({"train.top1": record.top1 / images, "train.top5": record.top5 / images})
        last, skipped = record.epoch + (record.num_steps - 1) / record.num_steps, record.times.num_warmup
        record.metrics.update(
            {
                "train.loss": record.loss / record.steps,
                "train.lr": self.schedule.rate(last),
                **record.times.metrics("train", self.images_per_step),
                "train.data_time": sum(record.times.waits[skipped:]),
                "train.compute_time": sum(record.times.durations[skipped:]),
                # The steps left out of the above; compiling the graph is in the first epoch's.
                "train.warmup_time": sum(record.times.totals[:skipped]),
            }
        )


class Validate(Callback):
    """Scores the network after every epoch."""

    def __init__(self, record: EpochRecord, validation: Validation, journal: Journal) -> None:
        self.record, self.validation, self.journal = record, validation, journal

    def on_train_epoch_end(self, run_context: Any) -> None:
        if not self.record.complete:
            return
        with self.journal.console.waiting(f"validating {len(self.validation.pipeline.source)} images"):
            score = self.validation.run()
        self.record.metrics.update(score.metrics())
        self.journal.note(num_samples=score.num_samples)


class Checkpoints(Callback):
    """Saves the best, the last and every k-th epoch. For rank 0; the best is remembered over a resume."""

    def __init__(
        self, record: EpochRecord, step: TrainStep, config: Config, path: Callable, meta: dict
    ) -> None:
        self.record, self.step, self.config, self.path, self.meta = record, step, config, path, meta

    def on_train_epoch_end(self, run_context: Any) -> None:
        frequency, record = self.config.output.save_frequency, self.record
        if frequency == 0 or not record.complete:
            return
        done = record.epoch + 1
        top1, loss, best = record.metrics.get("val.top1"), record.metrics.get("val.loss"), self.meta["best"]
        # A network that gives no number is never the best; of equals, the earlier stays.
        is_best = top1 is not None and loss is not None and (best is None or top1 > best["top1"])
        if is_best:
            self.meta["best"] = {"epoch": record.epoch, "top1": top1, "file": self.path("best").name}
        self.meta["epochs_done"] = done
        tensors = checkpoint.tensors_of(self.step)
        names = ["last"] + ["best"] * is_best
        names += [f"{done:04d}"] * (frequency > 0 and done % frequency == 0)
        for name in names:
            checkpoint.save(self.path(name), tensors, self.meta)


class EndOfEpoch(Callback):
    """Hands the finished epoch's record to the journal."""

    def __init__(self, record: EpochRecord, journal: Journal, config: Config, meta: dict) -> None:
        self.record, self.journal, self.config, self.meta = record, journal, config, meta
        self.begun = 0.0

    def on_train_epoch_begin(self, run_context: Any) -> None:
        self.begun = time.perf_counter()

    def on_train_epoch_end(self, run_context: Any) -> None:
        record = self.record
        if not record.complete:
            return
        self.journal.note(best=self.meta["best"])
        seconds = time.perf_counter() - self.begun
        self.journal.end_epoch(record.epoch, self.config.training.num_epochs, record.metrics, seconds)
