"""Validation after an epoch, of one network on all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from src.train.assigning import assign
from src.train.statistics import changing_statistics

if TYPE_CHECKING:
    from src.evaluate.validate import Validation
    from src.platform.distributed import World
    from src.report.journal import Journal
    from src.train.record import EpochRecord
    from src.train.step import TrainStep

EMA_METRICS = {"val.top1": "val.ema_top1", "val.top5": "val.ema_top5", "val.loss": "val.ema_loss"}


class AverageStatistics(Callback):
    """Gives every rank the mean of the batch norms' moving statistics; each gathered its own."""

    def __init__(self, record: EpochRecord, step: TrainStep, world: World) -> None:
        self.record, self.step, self.world = record, step, world
        self.statistics = changing_statistics(step)  # the network's, and those of a moving average of it

    def on_train_epoch_end(self, run_context: Any) -> None:
        if self.world.size == 1 or not self.record.complete:
            return
        means = self.world.mean_arrays([p.asnumpy() for p in self.statistics])
        for parameter, mean in zip(self.statistics, means):
            assign(parameter, mean)
        if self.step.statistics is not None:
            self.step.statistics.keep_now()


class Validate(Callback):
    """Scores the network after every epoch, and the moving average of its weights where there is one."""

    def __init__(
        self, record: EpochRecord, step: TrainStep, validation: Validation, journal: Journal, last_epoch: int
    ) -> None:
        self.record, self.step, self.validation, self.journal = record, step, validation, journal
        self.last_epoch = last_epoch

    def on_train_epoch_end(self, run_context: Any) -> None:
        if not self.record.complete:
            return
        num_images = len(self.validation.pipeline.source)
        with self.journal.console.waiting(f"validating {num_images} images"):
            score = self.validation.run(keep_answers=self.record.epoch + 1 == self.last_epoch)
        self.record.metrics.update(score.metrics())
        if self.step.average is not None:
            console = self.journal.console
            with console.waiting("validating the averaged weights"), self.step.average.in_place_of_weights():
                averaged = self.validation.run()
            self.record.metrics.update({ours: averaged.metrics()[name] for name, ours in EMA_METRICS.items()})
            self.record.metrics["val.time"] = sum(s.figures["val.time"] or 0.0 for s in (score, averaged))
        self.journal.note(num_samples=score.num_samples)
        self.validation.tell(score, self.record.epoch, self.journal)
