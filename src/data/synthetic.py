"""Generated images that a network can learn: for trying things out and for measuring speed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from src.data.sources import ClassLabel, open_random_access

if TYPE_CHECKING:
    import mindspore.dataset as ds


@dataclass
class SyntheticSource:
    """Noise plus a coarse pattern of the class.

    Pattern and label depend on the row alone, so that training and validation follow one rule.
    """

    num_rows: int
    num_classes: int
    shape: tuple[int, int]  # height, width
    first_row: int = 0  # validation goes on where training ends: same rule, other images
    encoded: bool = field(default=False, init=False)

    CELLS = 4
    NOISE_STD, PATTERN_STD = 24.0, 48.0

    def __post_init__(self) -> None:
        self.classes = [ClassLabel(str(k), f"class {k}") for k in range(self.num_classes)]
        height, width = self.shape
        noise = np.random.RandomState(0).standard_normal((2 * height, 2 * width, 3))
        self._noise = (noise * self.NOISE_STD).astype(np.int16)

    def __len__(self) -> int:
        return self.num_rows

    def _pattern(self, label: int) -> np.ndarray:
        coarse = (
            np.random.RandomState(label + 1).standard_normal((self.CELLS, self.CELLS, 3)) * self.PATTERN_STD
        )
        height, width = self.shape
        rows, columns = np.arange(height) * self.CELLS // height, np.arange(width) * self.CELLS // width
        return coarse.astype(np.int16)[rows][:, columns]

    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.RandomState(self.first_row + i)
        label = int(draw.randint(self.num_classes))
        height, width = self.shape
        top, left = draw.randint(height), draw.randint(width)
        pixels = 128 + self._pattern(label) + self._noise[top : top + height, left : left + width]
        return np.clip(pixels, 0, 255).astype(np.uint8), np.array(label, np.int32)

    def open(self, rows: np.ndarray, workers: int) -> ds.Dataset:
        return open_random_access(self, rows)

    def identity(self) -> dict[str, Any]:
        return {"path": "synthetic", "num_images": self.num_rows, "num_classes": self.num_classes}
