"""Random erasing (Zhong et al. 2017, arXiv:1708.04896), with the numbers of torchvision and timm.

MindSpore's RandomErasing draws from Python's global generator, which its threads share: no run could be
repeated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from src.data.drawing import Drawn

AREA = (0.02, 0.33)  # of the rectangle, as a share of the image
ASPECT_RATIO = (0.3, 3.3)  # height over width
ATTEMPTS = 10  # then the image stays as it is


@dataclass(frozen=True)
class EraseRectangle(Drawn):
    """Sets a rectangle to 0, which is the mean colour of normalised images; float32 (3, height, width)."""

    probability: float

    STREAM = 2

    def __call__(self, image: np.ndarray) -> np.ndarray:
        random = self.generator(image)
        if random.random() >= self.probability:
            return image
        _, height, width = image.shape
        for _ in range(ATTEMPTS):
            area = random.uniform(*AREA) * height * width
            ratio = math.exp(random.uniform(*np.log(ASPECT_RATIO)))
            tall, wide = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < tall < height and 0 < wide < width:
                top = int(random.integers(height - tall + 1))
                left = int(random.integers(width - wide + 1))
                erased = image.copy()
                erased[:, top : top + tall, left : left + wide] = 0
                return erased
        return image
