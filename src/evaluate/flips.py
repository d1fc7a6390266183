"""Test-time flips: an image and its mirror image, seen together (--test-flips)."""

from __future__ import annotations

import mindspore as ms
from mindspore import nn, ops


class WithFlips(nn.Cell):
    """The mean of a network's logits for images and for their mirror images, float32 (batch, num_classes)."""

    def __init__(self, network: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.network = network

    def construct(self, images: ms.Tensor) -> ms.Tensor:
        straight = ops.cast(self.network(images), ms.float32)
        mirrored = ops.cast(self.network(ops.flip(images, (3,))), ms.float32)
        return (straight + mirrored) / 2
