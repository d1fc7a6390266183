"""What is sent away while a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

if TYPE_CHECKING:
    from src.report.journal import Journal
    from src.train.record import EpochRecord


class OfferResults(Callback):
    """After an epoch's checkpoints and report are written, has them sent in the background."""

    def __init__(self, record: EpochRecord, journal: Journal) -> None:
        self.record, self.journal = record, journal

    def on_train_epoch_end(self, run_context: Any) -> None:
        if self.record.complete:
            self.journal.offer_results()
