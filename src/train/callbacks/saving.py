"""What an epoch leaves on the disk."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from src.weights import keeping

if TYPE_CHECKING:
    from src.config import Config
    from src.platform.signals import Requests
    from src.report.journal import Journal
    from src.train.record import EpochRecord
    from src.train.saver import Saver


class Checkpoints(Callback):
    """Saves the best, the last and every k-th epoch; the best is remembered over a resume.

    With a moving average of the weights, the best is the epoch whose average scores best: the average is what
    will be used. An epoch that a stop kept from being scored is saved as one that is not over.
    """

    def __init__(self, record: EpochRecord, saver: Saver, config: Config, meta: dict) -> None:
        self.record, self.saver, self.meta = record, saver, meta
        self.frequency = config.output.save_frequency
        self.kind = "ema_" if config.training.ema > 0 else ""
        self.best_name = keeping.checkpoint_path(config, keeping.BEST).name

    def on_train_epoch_end(self, run_context: Any) -> None:
        record = self.record
        if self.frequency == 0 or not record.complete:
            return
        if not record.finished:
            self.saver.save()
            return
        names = [keeping.BEST] * self._is_best()
        done = self.meta["epochs_done"] = record.epoch + 1
        names += [f"{done:04d}"] * (self.frequency > 0 and done % self.frequency == 0)
        self.saver.save(*names)

    def _is_best(self) -> bool:
        """Of equals the earlier stays. Never the best: a network that gives no number, and one of which the
        epoch's updates were all skipped; after a first epoch it would be as it was drawn or loaded."""
        top1, loss = (self.record.metrics.get(f"val.{self.kind}{name}") for name in ("top1", "loss"))
        best = self.meta["best"]
        if None in (top1, loss) or not self.record.updates or (best is not None and top1 <= best["top1"]):
            return False
        weights = {"weights": "ema"} if self.kind else {}
        self.meta["best"] = {"epoch": self.record.epoch, "top1": top1, "file": self.best_name, **weights}
        return True


class CheckpointsWithinEpochs(Callback):
    """Saves every so many steps, when it is asked for, and before a stop."""

    def __init__(
        self, record: EpochRecord, saver: Saver, config: Config, requests: Requests, journal: Journal
    ) -> None:
        self.record, self.saver, self.requests, self.journal = record, saver, requests, journal
        self.frequency, self.every = config.output.save_frequency, config.output.save_every_steps

    def on_train_step_end(self, run_context: Any) -> None:
        record, requests = self.record, self.requests
        if self.frequency == 0 or not record.updated or record.complete:
            return  # the end of the epoch saves by itself
        made = record.epoch * record.num_steps + record.steps_done
        # Where updates take several batches, at the first update after so many steps.
        due = self.every is not None and made // self.every > (made - record.accumulation) // self.every
        if due or requests.stop_agreed or requests.save_agreed:
            self.saver.save()
            self.journal.offer_results()
            if requests.save_agreed:
                self.journal.console.say(f"saved at step {record.steps_done} of epoch {record.epoch + 1}")
            requests.save_agreed = False


class EndOfEpoch(Callback):
    """Hands the finished epoch's record to the journal. `num_epochs` in all, `last_epoch` in this run."""

    def __init__(
        self,
        record: EpochRecord,
        journal: Journal,
        num_epochs: int,
        last_epoch: int,
        meta: dict,
        saver: Saver,
    ) -> None:
        self.record, self.journal, self.meta, self.saver = record, journal, meta, saver
        self.num_epochs, self.last_epoch = num_epochs, last_epoch

    def on_train_epoch_end(self, run_context: Any) -> None:
        record = self.record
        if not record.finished:
            return
        ranks = None if record.ranks is None else {"epoch": record.epoch, **record.ranks}
        self.journal.note(best=self.meta["best"], ranks=ranks)
        record.metrics["checkpoint_time"] = self.saver.take_seconds()
        seconds = time.perf_counter() - record.begun
        to_come = self.last_epoch - record.epoch - 1
        self.journal.end_epoch(record.epoch, self.num_epochs, record.metrics, seconds, to_come)
