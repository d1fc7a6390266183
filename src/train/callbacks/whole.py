"""An epoch that is not what all ranks planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

from src.errors import DataError

if TYPE_CHECKING:
    from src.platform.signals import Requests
    from src.train.record import EpochRecord


class WholeEpoch(Callback):
    """Raises DataError when the input ended before the planned number of steps, and nobody asked to stop.

    Model.train takes that for the end of the epoch, while the other ranks wait for this one's gradients: it
    would go on to the next collective, and its numbers be added to them. First of what an epoch's end does.
    """

    def __init__(self, record: EpochRecord, requests: Requests) -> None:
        self.record, self.requests = record, requests

    def on_train_epoch_end(self, run_context: Any) -> None:
        record = self.record
        if not record.complete and not self.requests.stop_agreed:
            raise DataError(
                f"epoch {record.epoch + 1} ended after {record.steps_done} of {record.num_steps} steps: the "
                "data set gave fewer batches than it has images for; check it (records.py verify)"
            )
