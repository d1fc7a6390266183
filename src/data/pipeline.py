"""Sources and operators put together: one dataset per training epoch, and batches for validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

import mindspore.dataset as ds
import numpy as np

from src.data import mixing, sampling, transforms
from src.data.sources import Source
from src.platform.environment import num_cores

if TYPE_CHECKING:
    from src.config import Config
    from src.platform.distributed import World

MAX_WORKERS = 8


def num_workers(asked: int | None, world: World) -> int:
    """Pipeline threads of this process; MindSpore refuses more than there are cores.

    Pixels depend on this number (each thread draws its own crops), so it is part of a run's identity.
    """
    cores = num_cores()
    return max(1, min(asked or min(MAX_WORKERS, cores // world.size), cores))


class TrainPipeline:
    """Training batches of one rank, epoch by epoch."""

    def __init__(self, config: Config, source: Source, world: World, seed: int) -> None:
        training = config.training
        self.config, self.source, self.world, self.seed = config, source, world, seed
        self.workers = num_workers(config.pipeline.data_threads, world)
        self.rows = sampling.training_rows(len(source), config.data.num_examples, seed)
        self.images_per_step = training.batch_size * world.size
        self.steps = sampling.steps_per_epoch(len(self.rows), self.images_per_step, training.benchmark_iters)

    def epoch(self, epoch: int, first_step: int = 0) -> ds.Dataset:
        """The dataset of `epoch`: (images float32 (b, 3, h, w), labels int32 (b,)), `steps` batches.

        Images are uint8 with --normalize-on-device.
        Height and width are those of the epoch (Config.train_size). Without the batches before `first_step`,
        which are made all the same, so that those after it are augmented as in an unbroken epoch.

        With mixup or cutmix a third column says how to mix them (data/mixing.py).
        Sets MindSpore's dataset seed, which is read when iteration starts: iterate before anything else
        sets it.
        """
        rank, batch_size = self.world.rank, self.config.training.batch_size
        size = self.config.train_size(epoch)
        seed = sampling.augmentation_seed(self.seed, epoch, rank)
        rows = sampling.epoch_order(
            self.rows,
            self.seed,
            epoch,
            steps=self.steps,
            batch_size=batch_size,
            rank=rank,
            world_size=self.world.size,
        )
        ops = transforms.train_ops(self.config, self.source.encoded, size, seed)
        dataset = _batches(self.config, self.source, rows, ops, self.workers, batch_size)
        dataset = mixing.zipped(
            dataset,
            self.config.training,
            size=size,
            steps=self.steps,
            seed=self.seed,
            epoch=epoch,
            rank=rank,
        )
        ds.config.set_seed(seed)
        ds.config.set_fast_recovery(False)  # skipped batches would not be made, and others augmented alike
        return dataset.skip(first_step) if first_step else dataset


class ValPipeline:
    """Validation batches of one rank: every row of the set on exactly one rank, once.

    Of the first rows only, as many as --benchmark-iters steps take, where that is given.
    """

    def __init__(self, config: Config, source: Source, world: World) -> None:
        self.alone = config.pipeline.separ_val  # this rank scores the whole set by itself
        self.config, self.source = config, source
        self.batch_size, self.num_bad = config.training.batch_size, 0
        asked = config.pipeline.data_validation_threads or config.pipeline.data_threads
        self.workers = num_workers(asked, world)
        rank, size = (0, 1) if self.alone else (world.rank, world.size)
        self.num_images, steps = len(source), config.training.benchmark_iters
        if steps is not None:
            self.num_images = min(self.num_images, steps * self.batch_size * size)
        self.rows = sampling.validation_rows(self.num_images, rank, size)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(images, labels), the last batch filled up with IGNORED_LABEL so that one graph serves all.

        A bad file that is skipped has that label too; `num_bad` counts them.
        """
        self.num_bad = 0
        if len(self.rows) == 0:  # fewer images than ranks
            return
        size = self.batch_size
        for images, labels in val_batches(self.config, self.source, self.rows, self.workers, size):
            self.num_bad += int((labels == sampling.IGNORED_LABEL).sum())
            yield fill_up(images, labels, size)

    def rows_of(self, batch: int) -> np.ndarray:
        """The rows of the set that a batch, counted from 0, holds; it is filled up behind them."""
        return self.rows[batch * self.batch_size : (batch + 1) * self.batch_size]


def val_batches(
    config: Config, source: Source, rows: np.ndarray, workers: int, batch_size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(images, labels) of `rows` with the preprocessing of validation; the last batch may be smaller."""
    ops = transforms.val_ops(config, source.encoded)
    dataset = _batches(config, source, rows, ops, workers, batch_size)
    yield from dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)


def fill_up(images: np.ndarray, labels: np.ndarray, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Repeat the last row, with IGNORED_LABEL, up to `batch_size` rows."""
    missing = batch_size - len(images)
    if missing == 0:
        return images, labels
    filler = np.full(missing, sampling.IGNORED_LABEL, labels.dtype)
    return np.concatenate([images, np.repeat(images[-1:], missing, 0)]), np.concatenate([labels, filler])


def _batches(
    config: Config, source: Source, rows: np.ndarray, ops: list, workers: int, batch_size: int
) -> ds.Dataset:
    ds.config.set_prefetch_size(config.pipeline.prefetch_queue)
    dataset = source.open(rows, workers)
    dataset = dataset.map(ops, input_columns="image", num_parallel_workers=workers)
    return dataset.batch(batch_size, drop_remainder=False, num_parallel_workers=workers)
