"""Going on with a run: the state of a checkpoint put back, and the place in the epochs to begin at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from src.errors import OptionError
from src.train import snapshot
from src.train.assigning import assign

if TYPE_CHECKING:
    from src.data.pipeline import TrainPipeline
    from src.platform.distributed import World
    from src.train.record import EpochRecord
    from src.train.step import TrainStep
    from src.weights.checkpoint import Checkpoint


@dataclass(frozen=True)
class Beginning:
    """Where training begins: in `epoch`, within it where `progress` says (EpochRecord.progress)."""

    epoch: int = 0
    progress: dict[str, Any] | None = None
    best: dict[str, Any] | None = None
    finished: dict[str, Any] | None = None  # the figures of the epoch before, if the checkpoint ended it

    @property
    def step(self) -> int:
        """Of the epoch, how many are behind it."""
        return int(self.progress["step"]) if self.progress else 0


def continued(
    step: TrainStep,
    saved: Checkpoint,
    record: EpochRecord,
    pipeline: TrainPipeline,
    world: World,
    warn: Callable[[str], None],
) -> Beginning:
    """Give the step the checkpoint's state; where to go on. `record` is that of an epoch of this run.

    Raises OptionError where this run's steps cannot begin where the checkpoint's ended, or its training set
    is another one.
    """
    meta = saved.meta
    images = meta.get("num_training_images", len(pipeline.rows))
    if images != len(pipeline.rows):
        raise OptionError(
            f"{saved.path} was made with {images} training images, and there are {len(pipeline.rows)}; "
            "--load starts anew from it"
        )
    if meta["data_workers"] != pipeline.workers:
        warn(
            f"{meta['data_workers']} input threads until here, {pipeline.workers} from now on: augmentation "
            "is not that of an unbroken run; --data-threads sets them"
        )
    snapshot.put_back(step, world, saved)
    progress, epoch = meta.get("progress"), int(meta["epochs_done"])
    then = meta["world_size"], meta.get("steps_per_epoch"), meta["config"].get("accumulation")
    if then != (world.size, record.num_steps, record.accumulation):
        if progress:
            first = first_step(saved, record, pipeline.images_per_step)
            sums = saved.tensors["sums"].astype(np.float64).tolist()
            k = meta["config"]["accumulation"]
            progress = snapshot.folded(progress, sums, meta["world_size"], k, first)
            assign(step.sums, np.zeros(step.sums.shape))
        made = epoch * record.num_steps + (progress["step"] if progress else 0)
        updates = np.full(step.optimizer.global_step.shape, made // record.accumulation)
        assign(step.optimizer.global_step, updates)
    return Beginning(epoch, progress, meta["best"], meta.get("finished"))


def first_step(saved: Checkpoint, record: EpochRecord, images_per_step: int) -> int:
    """The step of this run at which as many images of the epoch are behind it as the checkpoint has seen.

    All steps cut one shuffle of the epoch, whatever their size; where the saved run had made all of its own,
    there is none to make, and only the validation is missing. Raises OptionError where no update begins
    there.
    """
    then, progress = saved.meta["config"], saved.meta["progress"]
    if progress["step"] == saved.meta.get("steps_per_epoch"):
        return record.num_steps
    seen = progress["step"] * then["batch-size"] * saved.meta["world_size"]
    per_update = images_per_step * record.accumulation
    if seen % per_update or seen >= record.num_steps * images_per_step:
        raise OptionError(
            f"{saved.path} is {seen} images into an epoch, at which no update of {per_update} images begins; "
            "continue from a checkpoint of whole epochs (--save-frequency), or with a global batch size that "
            f"divides {seen}"
        )
    return seen // images_per_step
