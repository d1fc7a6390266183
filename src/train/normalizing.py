"""Normalising on the device, of bytes that the input pipeline handed over (--normalize-on-device)."""

from __future__ import annotations

from typing import Sequence

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Normalize(nn.Cell):
    """Pixels uint8 (batch, 3, height, width) -> float32, (pixel - mean) / std for each channel.

    In the order of the pipeline's own operator, so that both give the same bits on the CPU.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.mean = ms.Tensor(np.asarray(mean, np.float32).reshape(1, -1, 1, 1))
        self.std = ms.Tensor(np.asarray(std, np.float32).reshape(1, -1, 1, 1))

    def construct(self, pixels: ms.Tensor) -> ms.Tensor:
        return (ops.cast(pixels, ms.float32) - self.mean) / self.std
