"""Validation after an epoch, of one network on all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from mindspore.train import Callback

from src.train.assigning import assign
from src.train.statistics import changing_statistics

if TYPE_CHECKING:
    from src.evaluate.validate import Score, Validation
    from src.platform.distributed import World
    from src.platform.signals import Requests
    from src.report.console import Console
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
        self,
        record: EpochRecord,
        step: TrainStep,
        validation: Validation,
        journal: Journal,
        requests: Requests,
        last_epoch: int,
    ) -> None:
        self.record, self.step, self.validation = record, step, validation
        self.journal, self.requests, self.last_epoch = journal, requests, last_epoch

    def on_train_epoch_end(self, run_context: Any) -> None:
        if not self.record.complete:
            return
        keep_answers = self.record.epoch + 1 == self.last_epoch
        found = scores(self.step, self.validation, self.journal.console, self.requests, keep_answers)
        if found is None:
            self.record.validated, self.requests.stop_agreed = False, True
            return
        self.record.metrics.update(metrics(found))
        self.journal.note(num_samples=found[0].num_samples)
        self.validation.tell(found[0], self.record.epoch, self.journal)


def scores(
    step: TrainStep, validation: Validation, console: Console, requests: Requests, keep_answers: bool
) -> list[Score] | None:
    """Of the weights, then of their average if there is one; None if a stop came first."""
    with console.waiting(f"validating {validation.pipeline.num_images} images"):
        score = validation.run(lambda: requests.stop_asked, keep_answers)
    if score is None or step.average is None:
        return None if score is None else [score]
    with console.waiting("validating the averaged weights"), step.average.in_place_of_weights():
        averaged = validation.run(lambda: requests.stop_asked)
    return None if averaged is None else [score, averaged]


def metrics(found: Sequence[Score]) -> dict[str, float | None]:
    """Of one epoch, in the report's names, out of what `scores` found."""
    told = found[0].metrics()
    for averaged in found[1:]:
        told.update({ours: averaged.metrics()[name] for name, ours in EMA_METRICS.items()})
    return {**told, "val.time": sum(score.figures["val.time"] or 0.0 for score in found)}
