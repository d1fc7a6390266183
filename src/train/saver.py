"""Makes checkpoints out of all ranks' state, and remembers when it did."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from src.errors import DivergedError
from src.platform import pulse
from src.platform.pulse import Phase
from src.report.strict import strict
from src.train import agreement, snapshot
from src.weights import checkpoint

if TYPE_CHECKING:
    from src.platform.distributed import World
    from src.train.record import EpochRecord
    from src.train.step import TrainStep
    from src.weights.keeping import CheckpointFiles


def require_finite(tensors: Mapping[str, np.ndarray], record: EpochRecord, world: World) -> None:
    """Raises DivergedError, on all ranks together, if any rank's `tensors` hold what is no finite number."""
    broken = checkpoint.nonfinite(tensors)
    if world.any(bool(broken)):
        name = broken[0] if broken else "a tensor of another rank"
        raise DivergedError(
            f"at step {record.steps_done} of epoch {record.epoch + 1}, {name} is not finite: it diverged; "
            "nothing was saved over the last good checkpoint; try a lower --lr or --grad-clip"
        )


class Saver:
    """Saves the state of a run, within an epoch or at its end; all ranks call it together.

    `meta` goes into every checkpoint; what changes from one to the next is added here.
    """

    def __init__(
        self, step: TrainStep, record: EpochRecord, world: World, files: CheckpointFiles, meta: dict[str, Any]
    ) -> None:
        self.step, self.record, self.world, self.files, self.meta = step, record, world, files, meta
        self.last_time = time.monotonic()
        self.seconds = 0.0  # spent on saving since `take_seconds`

    def save(self, *also: str) -> None:
        """Write the last checkpoint, and give it the names `also` too.

        Raises DivergedError if a tensor is not finite, SuiteError if the ranks have drifted apart, and
        CheckpointError if the disk does not take it.
        """
        begun, record = time.perf_counter(), self.record
        pulse.give(Phase.SAVING, record.epoch, record.steps_done)
        where = f"at step {record.steps_done} of epoch {record.epoch + 1}"
        agreement.require_equal(self.step, self.world, where)
        tensors = snapshot.take(self.step, self.world, within_epoch=not record.complete)
        require_finite(tensors, record, self.world)
        if self.world.is_main:
            self.files.save(tensors, {**self.meta, **self._position()}, *also)
        self.last_time = time.monotonic()
        self.seconds += time.perf_counter() - begun

    def take_seconds(self) -> float:
        """Seconds spent on saving since the last call."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    def _position(self) -> dict[str, Any]:
        """Where training stands. Of a finished epoch its figures, in case that the report misses them."""
        record = self.record
        if not record.finished:
            return {"epochs_done": record.epoch, "progress": record.progress(), "finished": None}
        seconds = time.perf_counter() - record.begun
        finished = strict({"epoch": record.epoch, "metrics": record.metrics, "seconds": seconds})
        return {"epochs_done": record.epoch + 1, "progress": None, "finished": finished}
