"""TrivialAugment (Müller and Hutter 2021, arXiv:2103.10158), "wide", as torchvision has it.

One operation for each image, its strength drawn too. MindSpore 2.10's TrivialAugmentWide was measured to make
one image in eight wholly black (its RandAugment one in four), where torchvision's makes one in a thousand so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from src.data.drawing import Drawn

NUM_STRENGTHS = 31  # 0 to the strongest, in equal steps
# The strongest of each.
MAX_SHEAR, MAX_TRANSLATION, MAX_DEGREES, MAX_ENHANCEMENT = 0.99, 32.0, 135.0, 0.99
MAX_BITS_LOST = 6

Operation = Callable[[Image.Image, float], Image.Image]  # an image, and a share of the strongest, -1 to 1


def _moved(image: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    """The pixel at (x, y) comes from (a x + b y + c, d x + e y + f) of the image; black where nothing is."""
    return image.transform(image.size, Image.Transform.AFFINE, matrix, resample=Image.Resampling.BILINEAR)


def _enhanced(kind: Callable[[Image.Image], ImageEnhance._Enhance]) -> Operation:
    return lambda image, share: kind(image).enhance(1 + MAX_ENHANCEMENT * share)


def _rotated(image: Image.Image, share: float) -> Image.Image:
    return image.rotate(MAX_DEGREES * share, resample=Image.Resampling.BILINEAR)


def _posterized(image: Image.Image, share: float) -> Image.Image:
    return ImageOps.posterize(image, 8 - round(MAX_BITS_LOST * abs(share)))


def _solarized(image: Image.Image, share: float) -> Image.Image:
    return ImageOps.solarize(image, math.ceil(255 * (1 - abs(share))))


OPERATIONS: dict[str, Operation] = {
    "identity": lambda image, share: image,
    "shear-x": lambda image, share: _moved(image, (1, MAX_SHEAR * share, 0, 0, 1, 0)),
    "shear-y": lambda image, share: _moved(image, (1, 0, 0, MAX_SHEAR * share, 1, 0)),
    "translate-x": lambda image, share: _moved(image, (1, 0, int(MAX_TRANSLATION * share), 0, 1, 0)),
    "translate-y": lambda image, share: _moved(image, (1, 0, 0, 0, 1, int(MAX_TRANSLATION * share))),
    "rotate": _rotated,
    "brightness": _enhanced(ImageEnhance.Brightness),
    "colour": _enhanced(ImageEnhance.Color),
    "contrast": _enhanced(ImageEnhance.Contrast),
    "sharpness": _enhanced(ImageEnhance.Sharpness),
    "posterize": _posterized,
    "solarize": _solarized,
    "auto-contrast": lambda image, share: ImageOps.autocontrast(image),
    "equalize": lambda image, share: ImageOps.equalize(image),
}


@dataclass(frozen=True)
class TrivialAugment(Drawn):
    """One random operation; (height, width, 3) uint8 -> the same."""

    STREAM = 4

    def __call__(self, image: np.ndarray) -> np.ndarray:
        random = self.generator(image)
        operations = list(OPERATIONS.values())
        chosen = operations[random.integers(len(operations))]
        share = int(random.integers(NUM_STRENGTHS)) / (NUM_STRENGTHS - 1)
        sign = 1 if random.random() < 0.5 else -1
        return np.asarray(chosen(Image.fromarray(image), sign * share))
