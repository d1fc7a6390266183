"""What mixup and cutmix draw for each batch: which part of an image its partner replaces, and how much of it.

Only numbers are drawn here, a few bytes per image, as pure functions of (seed, epoch, step, rank); images and
targets are mixed on the device (`train/mixing.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from src.data import sampling

if TYPE_CHECKING:
    import mindspore.dataset as ds

    from src.config import Training

# Of a row of `Mixing.draw`. Inside the box an image keeps `KEPT` of itself and takes the rest from its
# partner, outside it stays as it is; `SHARE` is its part of the target, its partner's label has the rest.
KEPT, TOP, LEFT, BOTTOM, RIGHT, SHARE = range(6)
CUTMIX_PROBABILITY = 0.5  # of a batch where both are on, else mixup; as in timm and torchvision


@dataclass(frozen=True)
class Mixing:
    """The draws of one rank's epoch, item by item: item `step` is float32 (batch, 6)."""

    mixup: float
    cutmix: float
    size: tuple[int, int]  # height and width of the images of this epoch
    batch_size: int
    steps: int
    seed: int
    epoch: int
    rank: int

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> tuple[np.ndarray]:
        return (self.draw(int(step)),)

    def draw(self, step: int) -> np.ndarray:
        """The rows of all images of a batch, float32 (batch, 6)."""
        random = sampling.mixing_generator(self.seed, self.epoch, step, self.rank)
        cuts = self.cutmix > 0 and (self.mixup == 0 or random.random() < CUTMIX_PROBABILITY)
        return self._cutmix(random) if cuts else self._mixup(random)

    def _mixup(self, random: np.random.Generator) -> np.ndarray:
        """Zhang et al. 2018, as MXNet's example has it: a lambda for each image, Beta(alpha, alpha)."""
        height, width = self.size
        rows = np.empty((self.batch_size, 6), np.float32)
        rows[:, KEPT] = rows[:, SHARE] = random.beta(self.mixup, self.mixup, self.batch_size)
        rows[:, [TOP, LEFT, BOTTOM, RIGHT]] = 0, 0, height, width
        return rows

    def _cutmix(self, random: np.random.Generator) -> np.ndarray:
        """Yun et al. 2019: one box for the batch, of 1 - lambda of the area, its centre anywhere.

        What lies beyond the border is cut off, and the share of the target is that of the pixels that stay.
        """
        height, width = self.size
        side = math.sqrt(1 - random.beta(self.cutmix, self.cutmix))
        top, bottom = _cut(height, side, int(random.integers(height)))
        left, right = _cut(width, side, int(random.integers(width)))
        share = 1 - (bottom - top) * (right - left) / (height * width)
        return np.tile(np.array([0, top, left, bottom, right, share], np.float32), (self.batch_size, 1))


def _cut(length: int, side: float, centre: int) -> tuple[int, int]:
    """Begin and end of `side` (0 to 1) of a length, in pixels, within the image."""
    cut = int(length * side)
    return max(0, centre - cut // 2), min(length, centre - cut // 2 + cut)


def zipped(
    dataset: ds.Dataset,
    training: Training,
    *,
    size: tuple[int, int],
    steps: int,
    seed: int,
    epoch: int,
    rank: int,
) -> ds.Dataset:
    """A dataset of batches with their draws as a third column, "mixing"; as it was where nothing is mixed."""
    import mindspore.dataset as ds

    if not training.mixes:
        return dataset
    draws = Mixing(training.mixup, training.cutmix, size, training.batch_size, steps, seed, epoch, rank)
    column = ds.GeneratorDataset(draws, ["mixing"], shuffle=False, python_multiprocessing=False)
    return ds.zip((dataset, column))
