"""Kinds of resizing. docs/results-preprocessing.md tells how they differ, and what they cost.

OpenCV's kinds take a few neighbours of a point, however much smaller the picture becomes (no antialiasing);
`area` and Pillow's weigh all pixels that become one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mindspore.dataset.vision import Inter
from PIL import Image

# `pillow-bicubic` was measured equal to Pillow's BICUBIC in every pixel.
INTERPOLATION = {
    "bilinear": Inter.LINEAR,
    "bicubic": Inter.BICUBIC,
    "nearest": Inter.NEAREST,
    "area": Inter.AREA,
    "pillow-bicubic": Inter.PILCUBIC,
}


@dataclass(frozen=True)
class PillowBilinear:
    """Resizes the shorter side, the longer one floored; (height, width, 3) uint8 -> the same."""

    shorter: int

    def __call__(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        least = min(height, width)
        size = width * self.shorter // least, height * self.shorter // least
        return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR))
