"""Mixup and cutmix on the device: every image of a batch is mixed with its partner, the batch reversed.

What replaces a pixel is the partner's at the same place: in cutmix it replaces those of a box, in mixup it is
blended into all. `data/mixing.py` draws how much of what. The middle image of an odd batch is its own partner
and stays as it is.
"""

from __future__ import annotations

import mindspore as ms
from mindspore import ops

from src.data.mixing import BOTTOM, KEPT, LEFT, RIGHT, SHARE, TOP


def mix_images(images: ms.Tensor, mixing: ms.Tensor) -> ms.Tensor:
    """(batch, channels, height, width) -> the same; `mixing` as drawn by `data/mixing.py`, (batch, 6)."""
    batch, _, height, width = images.shape
    row = ops.arange(height).astype(ms.float32).reshape((1, 1, height, 1))
    column = ops.arange(width).astype(ms.float32).reshape((1, 1, 1, width))
    drawn = mixing.reshape((batch, 6, 1, 1))
    inside = ops.cast(row >= drawn[:, TOP : TOP + 1], ms.float32)
    inside = inside * ops.cast(row < drawn[:, BOTTOM : BOTTOM + 1], ms.float32)
    inside = inside * ops.cast(column >= drawn[:, LEFT : LEFT + 1], ms.float32)
    inside = inside * ops.cast(column < drawn[:, RIGHT : RIGHT + 1], ms.float32)
    taken = (inside * (1 - drawn[:, KEPT : KEPT + 1])).astype(images.dtype)
    return images * (1 - taken) + ops.flip(images, (0,)) * taken


def mix_targets(targets: ms.Tensor, mixing: ms.Tensor) -> ms.Tensor:
    """Smoothed targets (batch, classes) -> the same, shared between an image and its partner."""
    share = mixing[:, SHARE : SHARE + 1]
    return targets * share + ops.flip(targets, (0,)) * (1 - share)
