"""RandAugment (Cubuk et al. 2019, arXiv:1909.13719) in timm's form, "rand-m7-mstd0.5-inc1".

"ResNet strikes back" (arXiv:2110.00476) was trained with it. It has no counterpart in MindSpore, whose
RandAugment is torchvision's: other operations, all of one strength, and always applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Tuple

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from src.data.drawing import Drawn

PROBABILITY = 0.5  # that a chosen operation is applied
STRONGEST = 10.0  # on timm's scale, of which every operation takes its share
# What the strongest does (timm's constants).
MAX_DEGREES, MAX_SHEAR, MAX_TRANSLATION = 30.0, 0.3, 0.45
MAX_ENHANCEMENT, LEAST_FACTOR = 0.9, 0.1
MAX_ADDED, ADDED_BELOW = 110, 128
MAX_BITS_LOST, BITS_AT_FIRST = 4, 4

Colour = Tuple[int, int, int]


@dataclass(frozen=True)
class Drawing:
    """What an operation is given: its share of the strongest (0..1), a sign, and how pixels are filled in."""

    level: float
    sign: int
    fill: Colour
    resample: Image.Resampling

    @property
    def factor(self) -> float:
        """Of an enhancement: 1 leaves the image as it is, 0.1 and 1.9 change it most."""
        return max(LEAST_FACTOR, 1 + self.sign * self.level * MAX_ENHANCEMENT)


def _rotate(image: Image.Image, drawn: Drawing) -> Image.Image:
    return image.rotate(drawn.sign * drawn.level * MAX_DEGREES, resample=drawn.resample, fillcolor=drawn.fill)


def _moved(image: Image.Image, drawn: Drawing, matrix: tuple[float, ...]) -> Image.Image:
    """The pixel at (x, y) comes from (a x + b y + c, d x + e y + f) of the image."""
    return image.transform(
        image.size, Image.Transform.AFFINE, matrix, resample=drawn.resample, fillcolor=drawn.fill
    )


def _shear_x(image: Image.Image, drawn: Drawing) -> Image.Image:
    return _moved(image, drawn, (1, drawn.sign * drawn.level * MAX_SHEAR, 0, 0, 1, 0))


def _shear_y(image: Image.Image, drawn: Drawing) -> Image.Image:
    return _moved(image, drawn, (1, 0, 0, drawn.sign * drawn.level * MAX_SHEAR, 1, 0))


def _translate_x(image: Image.Image, drawn: Drawing) -> Image.Image:
    return _moved(image, drawn, (1, 0, drawn.sign * drawn.level * MAX_TRANSLATION * image.width, 0, 1, 0))


def _translate_y(image: Image.Image, drawn: Drawing) -> Image.Image:
    return _moved(image, drawn, (1, 0, 0, 0, 1, drawn.sign * drawn.level * MAX_TRANSLATION * image.height))


def _posterize(image: Image.Image, drawn: Drawing) -> Image.Image:
    lost = 8 - BITS_AT_FIRST + int(drawn.level * MAX_BITS_LOST)
    return image.point([value >> lost << lost for value in range(256)] * 3)  # ImageOps keeps at least 1 bit


def _solarize(image: Image.Image, drawn: Drawing) -> Image.Image:
    return ImageOps.solarize(image, 256 - min(256, int(drawn.level * 256)))


def _solarize_add(image: Image.Image, drawn: Drawing) -> Image.Image:
    added = min(128, int(drawn.level * MAX_ADDED))
    table = [min(255, value + added) if value < ADDED_BELOW else value for value in range(256)]
    return image.point(table * 3)


def _enhanced(kind: Callable[[Image.Image], ImageEnhance._Enhance]) -> Operation:
    return lambda image, drawn: kind(image).enhance(drawn.factor)


Operation = Callable[[Image.Image, Drawing], Image.Image]
OPERATIONS: dict[str, Operation] = {
    "auto-contrast": lambda image, drawn: ImageOps.autocontrast(image),
    "equalize": lambda image, drawn: ImageOps.equalize(image),
    "invert": lambda image, drawn: ImageOps.invert(image),
    "rotate": _rotate,
    "posterize": _posterize,
    "solarize": _solarize,
    "solarize-add": _solarize_add,
    "colour": _enhanced(ImageEnhance.Color),
    "contrast": _enhanced(ImageEnhance.Contrast),
    "brightness": _enhanced(ImageEnhance.Brightness),
    "sharpness": _enhanced(ImageEnhance.Sharpness),
    "shear-x": _shear_x,
    "shear-y": _shear_y,
    "translate-x": _translate_x,
    "translate-y": _translate_y,
}
RESAMPLING = (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)


@dataclass(frozen=True)
class RandAugment(Drawn):
    """`num_ops` random operations, with repetition; (height, width, 3) uint8 -> the same."""

    magnitude: float
    magnitude_std: float
    num_ops: int
    fill: Colour

    STREAM = 3

    def __call__(self, image: np.ndarray) -> np.ndarray:
        random = self.generator(image)
        operations = list(OPERATIONS.values())
        picture = Image.fromarray(image)
        for chosen in random.integers(len(operations), size=self.num_ops):
            if random.random() < PROBABILITY:
                picture = operations[chosen](picture, self._draw(random))
        return np.asarray(picture)

    def _draw(self, random: np.random.Generator) -> Drawing:
        magnitude = random.normal(self.magnitude, self.magnitude_std)
        level = min(max(magnitude, 0.0), STRONGEST) / STRONGEST
        sign = 1 if random.random() < 0.5 else -1
        return Drawing(level, sign, self.fill, RESAMPLING[random.integers(len(RESAMPLING))])
