"""Normalising on the device, of bytes that the input pipeline handed over (--normalize-on-device)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

import mindspore as ms
import numpy as np
from mindspore import nn, ops

if TYPE_CHECKING:
    from src.config import Config


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


def normalization(config: Config) -> Normalize | None:
    """What the step does to images before anything else; None if they come as the network wants them."""
    data = config.data
    return Normalize(data.rgb_mean, data.rgb_std) if config.pipeline.normalize_on_device else None
