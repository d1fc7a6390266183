"""Xception (Chollet 2016, arXiv:1610.02357): residual blocks of depthwise separable convolutions.

Three differences from the Keras model of the paper: convolutions and pooling pad alike on all sides (the stem
not at all there, the rest as TensorFlow's "same"), batch norm follows the options (eps 1e-3 there), and the
last batch norm of each block starts with gamma 0, as in the residual networks here (1 there). Parameters are
called `block3.sep1.depthwise.weight`, `block3.bn1.gamma`, `block3.shortcut.1.gamma`, `fc.bias`.
"""

from __future__ import annotations

from typing import Sequence

import mindspore as ms
from mindspore import nn, ops

from src.models.layers import ConvSpec, Norms, conv, head, pooled, projection

STEM_CHANNELS = 64
# Channels of each block's separable convolutions, and whether it pools; the eight alike are the middle flow.
BLOCKS: list[tuple[tuple[int, ...], bool]] = [
    ((128, 128), True),
    ((256, 256), True),
    ((728, 728), True),
    *[((728, 728, 728), False)] * 8,
    ((728, 1024), True),
]
LAST_CHANNELS = (1536, 2048)


class Separable(nn.Cell):
    """A 3x3 convolution of each channel by itself, then a 1x1 over all; no norm or ReLU between them."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.depthwise = conv(ConvSpec(in_channels, in_channels, 3, groups=in_channels))
        self.pointwise = conv(ConvSpec(in_channels, out_channels, 1))

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.pointwise(self.depthwise(x))


class MaxPool(nn.Cell):
    """3x3 max pooling of stride 2, padded by minus infinity: what is pooled here may be negative.

    The frame is joined on, because of MindSpore 2.10's ways to pad on the CPU `ops.pad` gives wrong gradients
    from the second call on, and `nn.MaxPool2d(pad_mode="pad")` cannot be exported to ONNX.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pool = ops.MaxPool(kernel_size=3, strides=2, pad_mode="valid")

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        batch, channels, height, width = x.shape
        side = ops.full((batch, channels, height, 1), float("-inf"), dtype=x.dtype)
        edge = ops.full((batch, channels, 1, width + 2), float("-inf"), dtype=x.dtype)
        return self.pool(ops.concat((edge, ops.concat((side, x, side), 3), edge), 2))


class Block(nn.Cell):
    """shortcut(x) + branch(x), without ReLU after the sum: the next block begins with it.

    The branch is ReLU, separable convolution and batch norm, two or three times, and in blocks that halve the
    size max pooling. `begins_with_relu` is off where x has just gone through one.
    """

    def __init__(
        self, in_channels: int, widths: Sequence[int], pools: bool, begins_with_relu: bool, norms: Norms
    ) -> None:
        super().__init__()
        self.num_convs, self.begins_with_relu = len(widths), begins_with_relu
        channels = in_channels
        for i, width in enumerate(widths, 1):
            setattr(self, f"sep{i}", Separable(channels, width))
            setattr(self, f"bn{i}", norms.make(width, ends_branch=i == len(widths)))
            channels = width
        self.pool: nn.Cell | None = MaxPool() if pools else None
        self.shortcut: nn.Cell | None = projection(in_channels, channels, 2, norms) if pools else None

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        out = x
        for i in range(1, self.num_convs + 1):
            if i > 1 or self.begins_with_relu:
                out = ops.relu(out)
            out = getattr(self, f"bn{i}")(getattr(self, f"sep{i}")(out))
        if self.pool is not None:
            out = self.pool(out)
        return out + (x if self.shortcut is None else self.shortcut(x))


class Xception(nn.Cell):
    """Images (batch, 3, height, width) -> logits (batch, num_classes)."""

    def __init__(self, num_classes: int, norms: Norms) -> None:
        super().__init__()
        self.conv1, self.bn1 = conv(ConvSpec(3, 32, 3, stride=2)), norms.make(32)
        self.conv2, self.bn2 = conv(ConvSpec(32, STEM_CHANNELS, 3)), norms.make(STEM_CHANNELS)
        channels = STEM_CHANNELS
        for i, (widths, pools) in enumerate(BLOCKS, 1):
            setattr(self, f"block{i}", Block(channels, widths, pools, begins_with_relu=i > 1, norms=norms))
            channels = widths[-1]
        third, fourth = LAST_CHANNELS
        self.sep3, self.bn3 = Separable(channels, third), norms.make(third)
        self.sep4, self.bn4 = Separable(third, fourth), norms.make(fourth)
        self.fc = head(fourth, num_classes)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = ops.relu(self.bn1(self.conv1(x)))
        x = ops.relu(self.bn2(self.conv2(x)))
        for i in range(1, len(BLOCKS) + 1):
            x = getattr(self, f"block{i}")(x)
        x = ops.relu(self.bn3(self.sep3(x)))
        x = ops.relu(self.bn4(self.sep4(x)))
        return self.fc(pooled(x))

    def stages(self) -> list[list[nn.Cell]]:
        """The stem, then what computes at a 4th, an 8th, a 16th and a 32nd of the image's size."""
        blocks = [getattr(self, f"block{i}") for i in range(1, len(BLOCKS) + 1)]
        stem = [self.conv1, self.bn1, self.conv2, self.bn2]
        last = [blocks[11], self.sep3, self.bn3, self.sep4, self.bn4]
        return [stem, blocks[:1], blocks[1:2], blocks[2:11], last]
