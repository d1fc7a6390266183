"""Validation after an epoch, of one network on all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from src.train.assigning import assign
from src.train.statistics import changing_statistics

if TYPE_CHECKING:
    from src.evaluate.validate import Validation
    from src.platform.distributed import World
    from src.platform.signals import Requests
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
    """Scores the network after every epoch, and the moving average of its weights where there is one.

    Unless it is asked to stop: then a run that goes on will score this epoch first.
    """

    def __init__(
        self, record: EpochRecord, step: TrainStep, validation: Validation, journal: Journal, asked: Requests
    ) -> None:
        self.record, self.step, self.validation = record, step, validation
        self.journal, self.requests = journal, asked

    def on_train_epoch_end(self, run_context: Any) -> None:
        if not self.record.complete:
            return
        found = self._score(f"validating {len(self.validation.pipeline.source)} images")
        if found and self.step.average is not None:
            with self.step.average.in_place_of_weights():
                averaged = self._score("validating the averaged weights")
            found = averaged and {**found, **{ours: averaged[name] for name, ours in EMA_METRICS.items()}}
        if found is None:
            self.record.validated, self.requests.stop_agreed = False, True
        else:
            self.record.metrics.update(found)

    def _score(self, told: str) -> dict[str, Any] | None:
        with self.journal.console.waiting(told):
            score = self.validation.run(lambda: self.requests.stop_asked)
        if score is not None:
            self.journal.note(num_samples=score.num_samples)
        return None if score is None else score.metrics()
