"""What can be known to be wrong before anything expensive starts: data, sizes, checkpoints, the workspace.

Both runner (before it starts processes) and each rank (before it imports MindSpore) ask here.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from src.config import Config
from src.data import sampling
from src.data.images import find_images
from src.data.splits import Splits, open_splits
from src.errors import CheckpointError, DataError, OptionError
from src.weights import pretrained, resume

_START = resume.Plan("start")
TOTAL_STRIDE = 32  # of every network here: one pixel of the last stage for so many of the image


@dataclass(frozen=True)
class Prepared:
    """The opened data set, and what a training run does in its workspace."""

    splits: Splits | None
    plan: resume.Plan


def check_device(config: Config, device: str) -> None:
    """Raises OptionError for what the device ("Ascend", "GPU" or "CPU") cannot do, or was not seen to do."""
    if config.training.dtype == "bfloat16" and device == "CPU":
        raise OptionError("--dtype bfloat16: MindSpore has no bfloat16 convolutions for the CPU; use float32")
    if config.output.compile_cache and device != "CPU":
        raise OptionError(
            f"--compile-cache on {device}: that a graph which was kept trains as a new one was only shown on "
            "the CPU; leave the option out"
        )


def prepare(config: Config, world_size: int, decides: bool = True) -> Prepared:
    """Raises OptionError, DataError or CheckpointError (one sentence) for what cannot work.

    Only where rank 0 is (`decides`), the workspace is asked what to do: on other nodes it may be another
    folder, and on a disk that they share it holds what rank 0 has just begun.
    """
    training, load = config.training, config.output.load
    if load is not None and not load.is_file():
        raise CheckpointError(f"--load {load}: no such checkpoint")
    plan = _plan(config, world_size) if decides else _START
    if training.mode == "pred" and not training.test_io:
        find_images(str(config.data.data_pred))
        return Prepared(None, plan)
    if training.test_io:
        splits = open_splits(
            config, train=training.test_io_mode == "train", val=training.test_io_mode == "val"
        )
    else:
        splits = open_splits(config, train=config.trains, val=config.validates)
    if splits.train is not None:
        num_rows = min(len(splits.train), config.data.num_examples or len(splits.train))
        sampling.steps_per_epoch(num_rows, config.global_batch_size(world_size))
        side = min(max(config.train_size(epoch)) for epoch in range(training.num_epochs))
        if config.trains and training.batch_size == 1 and side <= TOTAL_STRIDE:
            raise DataError(
                f"-b 1 with images of {TOTAL_STRIDE} pixels or fewer leaves batch norm one value a channel, "
                "and its variance undefined; use -b 2 or more"
            )
    return Prepared(splits, plan)


def planned_anew(config: Config, world_size: int, prepared: Prepared) -> Prepared:
    """The same, once the workspace is locked: a run that had it may have ended since it was looked at."""
    return dataclasses.replace(prepared, plan=_plan(config, world_size))


def _plan(config: Config, world_size: int) -> resume.Plan:
    return pretrained.prepare(config, resume.plan(config, world_size) if config.trains else _START)
