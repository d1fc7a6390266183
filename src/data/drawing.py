"""What the operators written in Python draw from, so that a run can be repeated.

MindSpore's own operators draw from its dataset seed, each pipeline thread for itself. Python's generators are
shared by these threads, whose turns nobody can repeat; so each call here has a generator of its own.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Drawn:
    """An operator whose draws follow from the epoch's seed and from the pixels that it is given.

    Whichever thread calls it, and when, the outcome is the same. Crops and flips before it make other pixels
    of the same image in every epoch, and so does the seed.
    """

    seed: int

    STREAM = 0  # each operator has its own, so that none repeats another's draws

    def generator(self, image: np.ndarray) -> np.random.Generator:
        key = (self.STREAM, self.seed, zlib.crc32(np.ascontiguousarray(image).data))
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
