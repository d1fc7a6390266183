"""Saturation and lightness changed as MXNet does: added in HSL, for which MindSpore has no operator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from src.data.drawing import Drawn

FULL = 255.0


@dataclass(frozen=True)
class ShiftSaturationLightness(Drawn):
    """Adds one random number each to S and L of all pixels, both 0..255 and cut off there; keeps the hue.

    (height, width, 3) uint8 -> the same. In HSL a colour is L + C d, with a chroma C = S (1 - |2L - 1|) and a
    direction d that only the hue decides; so the new colour is L' + (colour - L) C' / C, and no hue need be
    computed. Grey has no hue, and stays grey.
    """

    max_saturation: float
    max_lightness: float

    STREAM = 1

    def __call__(self, image: np.ndarray) -> np.ndarray:
        random = self.generator(image)
        ds = random.uniform(-self.max_saturation, self.max_saturation) / FULL
        dl = random.uniform(-self.max_lightness, self.max_lightness) / FULL
        return shift_hsl(image, ds, dl)


def shift_hsl(image: np.ndarray, saturation: float, lightness: float) -> np.ndarray:
    """(height, width, 3) uint8 with these shares of the full range added to S and L."""
    # A plane for each channel: NumPy is several times slower along an axis of three.
    red, green, blue = colour = np.ascontiguousarray(image.transpose(2, 0, 1), np.float32) / FULL
    high, low = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    chroma, old = high - low, (high + low) / 2
    room = 1 - np.abs(2 * old - 1)  # the greatest chroma at this lightness
    old_saturation = np.divide(chroma, room, out=np.zeros_like(chroma), where=room > 0)
    new = np.clip(old + lightness, 0, 1)
    new_saturation = np.clip(old_saturation + saturation, 0, 1)
    new_chroma = new_saturation * (1 - np.abs(2 * new - 1))
    ratio = np.divide(new_chroma, chroma, out=np.zeros_like(chroma), where=chroma > 0)
    shifted = np.rint((new + (colour - old) * ratio) * FULL).clip(0, FULL)
    return np.ascontiguousarray(shifted.transpose(1, 2, 0), np.uint8)
