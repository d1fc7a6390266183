"""The checkpoint files of a run: which there are, which are kept, which of them is whole. No MindSpore."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import numpy as np

from src.errors import CheckpointError
from src.weights import checkpoint
from src.weights.checkpoint import Checkpoint
from src.weights.record import read_record

if TYPE_CHECKING:
    from src.config import Config

LAST, PREVIOUS, BEST = "last", "previous", "best"
RESUMED_FIRST = (LAST, PREVIOUS)


def checkpoint_path(config: Config, which: str) -> Path:
    """`which`: "best", "last", "previous" (the last but one) or a number of epochs, as four digits."""
    return config.output.workspace / f"{config.output.model_prefix}_{which}.safetensors"


def numbered(config: Config) -> list[Path]:
    """The checkpoints of single epochs, the oldest first."""
    name = re.compile(re.escape(config.output.model_prefix) + r"_(\d{4,})\.safetensors")
    found = [
        (int(match[1]), path)
        for path in config.output.workspace.glob("*")
        if (match := name.fullmatch(path.name))
    ]
    return [path for _, path in sorted(found)]


def existing(config: Config) -> list[Path]:
    """All checkpoints of the run in the workspace."""
    named = [checkpoint_path(config, which) for which in (LAST, PREVIOUS, BEST)]
    return [path for path in [*named, *numbered(config)] if path.is_file()]


def newest_first(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Those whose head can be read, and what is wrong with the others.

    The last and the previous come first, the rest by how far training had come: where a run went back to an
    earlier checkpoint, those of later epochs are of what was given up.
    """
    found, damaged = [], []
    for path in paths:
        try:
            record = read_record(path)
        except CheckpointError as error:
            damaged.append(str(error))
            continue
        which = path.stem.rpartition("_")[2]
        order = RESUMED_FIRST.index(which) if which in RESUMED_FIRST else len(RESUMED_FIRST)
        found.append((order, -int(record.get("epochs_done", 0)), -steps_into_epoch(record), path))
    return [path for *_, path in sorted(found)], damaged


def steps_into_epoch(record: Mapping[str, Any]) -> int:
    """How many steps of the epoch after `epochs_done` are in a checkpoint."""
    return int((record.get("progress") or {}).get("step", 0))


def read_newest(paths: Sequence[Path], warn: Callable[[str], None]) -> Checkpoint:
    """The first of `paths` that is whole, warning of those before it. Raises CheckpointError if none is."""
    for path, next_one in zip(paths, [*paths[1:], None]):
        try:
            return checkpoint.read(path)
        except CheckpointError as error:
            if next_one is None:
                raise
            warn(f"{error}; going back to {next_one.name}")
    raise AssertionError("no checkpoint to read")


def _is_whole(path: Path) -> bool:
    try:
        checkpoint.read(path)
    except CheckpointError:
        return False
    return True


class CheckpointFiles:
    """Writes what `--save-frequency` and `--keep` ask for. For rank 0."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.keep = config.output.keep
        self.last_is_whole = False  # known to be: written by this process

    def clean(self) -> None:
        """Remove what a process that was killed while it wrote has left."""
        out = self.config.output
        for path in out.workspace.glob(f".{out.model_prefix}_*.safetensors.*.tmp"):
            path.unlink(missing_ok=True)

    def save(self, tensors: Mapping[str, np.ndarray], meta: Mapping[str, Any], *also: str) -> None:
        """A new last checkpoint, which has the names `also` too; the one before stays as the previous.

        Raises CheckpointError; what was there is still there then.
        """
        last = checkpoint_path(self.config, LAST)
        if self.last_is_whole or _is_whole(last):  # else it would take the place of one that is
            checkpoint.also_as(last, checkpoint_path(self.config, PREVIOUS))
        checkpoint.save(last, tensors, meta)
        self.last_is_whole = True
        for which in also:
            checkpoint.also_as(last, checkpoint_path(self.config, which))
        for path in numbered(self.config)[: -self.keep] if self.keep else []:
            path.unlink(missing_ok=True)
