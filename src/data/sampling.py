"""Which rows each rank reads, in which order: pure functions of (seed, epoch, rank)."""

from __future__ import annotations

import numpy as np

from src.errors import DataError

IGNORED_LABEL = -1  # of the rows that only fill up a validation batch
# Keep the draws independent of each other.
_ORDER_STREAM, _AUGMENTATION_STREAM, _SUBSET_STREAM, _MIXING_STREAM = 1, 2, 3, 4


def _generator(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


def augmentation_seed(seed: int, epoch: int, rank: int) -> int:
    """Seed of the pipeline's random operators: ranks share the order, and must not share crops and flips."""
    return int(_generator(_AUGMENTATION_STREAM, seed, epoch, rank).integers(2**32))


def mixing_generator(seed: int, epoch: int, step: int, rank: int) -> np.random.Generator:
    """Of what mixup and cutmix draw for one batch; ranks must not share it."""
    return _generator(_MIXING_STREAM, seed, epoch, step, rank)


def training_rows(num_rows: int, limit: int | None, seed: int) -> np.ndarray:
    """The rows to train on, int64: all, or a fixed random subset of `limit`."""
    if limit is None or limit >= num_rows:
        return np.arange(num_rows)
    return np.sort(_generator(_SUBSET_STREAM, seed).permutation(num_rows)[:limit])


def steps_per_epoch(num_rows: int, global_batch_size: int, limit: int | None = None) -> int:
    """Whole global batches in an epoch; the rest is left out, another rest in each epoch.

    Raises DataError when not even one batch is full.
    """
    steps = num_rows // global_batch_size
    if steps == 0:
        raise DataError(
            f"{num_rows} training images do not fill one global batch of {global_batch_size} "
            "(devices x --batch-size x --accumulation); lower -b or use more images"
        )
    return min(steps, limit) if limit else steps


def epoch_order(
    rows: np.ndarray, seed: int, epoch: int, *, steps: int, batch_size: int, rank: int, world_size: int
) -> np.ndarray:
    """Rows that `rank` trains on in `epoch`, in order, int64 (steps x batch_size,).

    All ranks cut one shuffle: step j of all ranks together holds the j-th global batch of it.
    """
    shuffled = rows[_generator(_ORDER_STREAM, seed, epoch).permutation(len(rows))]
    return shuffled[: steps * batch_size * world_size][rank::world_size]


def validation_rows(num_rows: int, rank: int, world_size: int) -> np.ndarray:
    """Rows that `rank` scores: each row on exactly one rank."""
    return np.arange(num_rows)[rank::world_size]
