"""What an epoch leaves on the disk."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable

from mindspore.train import Callback

from src.weights import checkpoint

if TYPE_CHECKING:
    from src.config import Config
    from src.report.journal import Journal
    from src.train.record import EpochRecord
    from src.train.step import TrainStep


class Checkpoints(Callback):
    """Saves the best, the last and every k-th epoch. For rank 0; the best is remembered over a resume.

    With a moving average of the weights, the best is the epoch whose average scores best: the average is what
    will be used.
    """

    def __init__(
        self, record: EpochRecord, step: TrainStep, config: Config, path: Callable, meta: dict
    ) -> None:
        self.record, self.step, self.config, self.path, self.meta = record, step, config, path, meta
        self.kind = "ema_" if config.training.ema > 0 else ""

    def on_train_epoch_end(self, run_context: Any) -> None:
        frequency, record = self.config.output.save_frequency, self.record
        if frequency == 0 or not record.complete:
            return
        names = ["last"] + ["best"] * self._is_best()
        done = self.meta["epochs_done"] = record.epoch + 1
        names += [f"{done:04d}"] * (frequency > 0 and done % frequency == 0)
        tensors = checkpoint.tensors_of(self.step)
        for name in names:
            checkpoint.save(self.path(name), tensors, self.meta)

    def _is_best(self) -> bool:
        """A network that gives no number is never the best; of equals, the earlier stays."""
        top1, loss = (self.record.metrics.get(f"val.{self.kind}{name}") for name in ("top1", "loss"))
        best = self.meta["best"]
        if top1 is None or loss is None or (best is not None and top1 <= best["top1"]):
            return False
        weights = {"weights": "ema"} if self.kind else {}
        file = self.path("best").name
        self.meta["best"] = {"epoch": self.record.epoch, "top1": top1, "file": file, **weights}
        return True


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
