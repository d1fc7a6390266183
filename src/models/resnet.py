"""ResNet-18 to 152 and ResNeXt-50 to 152, v1 and v1.5 (which strides in the 3x3 convolution).

He et al. 2015, arXiv:1512.03385; Xie et al. 2016, arXiv:1611.05431. Parameters have the field's usual names:
`layer2.0.conv3.weight`, `layer2.0.downsample.1.gamma`, `fc.bias`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

import mindspore as ms
from mindspore import nn, ops

from src.models.layers import ConvSpec, Norms, conv, head, pooled, projection

STAGE_WIDTHS = (64, 128, 256, 512)
STAGE_BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
BOTTLENECK_EXPANSION = 4
BOTTLENECK_FROM_LAYERS = 50


@dataclass(frozen=True)
class Bottlenecks:
    """The form of all bottlenecks: where they stride, and the 3x3 convolution's groups and their width.

    `width_per_group` is that of the first stage, doubling with each; ResNet is one group of 64.
    """

    stride_in_3x3: bool
    num_groups: int = 1
    width_per_group: int = STAGE_WIDTHS[0]

    def branch(self, in_channels: int, width: int, stride: int) -> list[ConvSpec]:
        """1x1 to the groups, 3x3 within them, 1x1 out; `width` is the stage's of STAGE_WIDTHS."""
        first, middle = (1, stride) if self.stride_in_3x3 else (stride, 1)
        inner = self.num_groups * self.width_per_group * width // STAGE_WIDTHS[0]
        return [
            ConvSpec(in_channels, inner, 1, first),
            ConvSpec(inner, inner, 3, middle, self.num_groups),
            ConvSpec(inner, width * BOTTLENECK_EXPANSION, 1),
        ]


def basic_branch(in_channels: int, width: int, stride: int) -> list[ConvSpec]:
    """Two 3x3 convolutions, in networks too shallow for bottlenecks."""
    return [ConvSpec(in_channels, width, 3, stride), ConvSpec(width, width, 3)]


class Residual(nn.Cell):
    """relu(x + branch(x)); the branch is convolution-norm pairs with ReLU between them."""

    def __init__(self, branch: Sequence[ConvSpec], norms: Norms) -> None:
        super().__init__()
        first, last = branch[0], branch[-1]
        stride = max(spec.stride for spec in branch)
        self.num_convs = len(branch)
        for i, spec in enumerate(branch, 1):
            setattr(self, f"conv{i}", conv(spec))
            setattr(self, f"bn{i}", norms.make(spec.out_channels, ends_branch=spec is last))
        self.downsample: nn.Cell | None = None
        if stride != 1 or first.in_channels != last.out_channels:
            self.downsample = projection(first.in_channels, last.out_channels, stride, norms)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        out = x
        for i in range(1, self.num_convs + 1):
            out = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(out))
            if i < self.num_convs:
                out = ops.relu(out)
        return ops.relu(out + (x if self.downsample is None else self.downsample(x)))


class StemPool(nn.Cell):
    """3x3 max pooling of stride 2. After ReLU, zero padding equals the usual -inf; ONNX export needs it."""

    def __init__(self) -> None:
        super().__init__()
        self.pad = ops.Pad(((0, 0), (0, 0), (1, 1), (1, 1)))
        self.pool = ops.MaxPool(kernel_size=3, strides=2, pad_mode="valid")

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.pool(self.pad(x))


class ResNet(nn.Cell):
    """Images (batch, 3, height, width) -> logits (batch, num_classes)."""

    def __init__(self, layers: Sequence[nn.Cell], features: int, num_classes: int, norms: Norms) -> None:
        super().__init__()
        self.conv1 = conv(ConvSpec(3, STAGE_WIDTHS[0], 7, stride=2))
        self.bn1 = norms.make(STAGE_WIDTHS[0])
        self.pool = StemPool()
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        self.fc = head(features, num_classes)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = self.pool(ops.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(pooled(x))

    def stages(self) -> list[list[nn.Cell]]:
        """The stem, then layer1 to layer4: the cells of each in the order in which they compute."""
        return [[self.conv1, self.bn1], [self.layer1], [self.layer2], [self.layer3], [self.layer4]]


def resnet(num_layers: int, num_classes: int, form: Bottlenecks, norms: Norms) -> ResNet:
    """ResNet of 18, 34, 50, 101 or 152 layers; the first two have no bottlenecks, so `form` is unused."""
    layers, channels = [], STAGE_WIDTHS[0]
    for stage, (width, num_blocks) in enumerate(zip(STAGE_WIDTHS, STAGE_BLOCKS[num_layers])):
        blocks = []
        for block in range(num_blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            branch = basic_branch if num_layers < BOTTLENECK_FROM_LAYERS else form.branch
            specs = branch(channels, width, stride)
            blocks.append(Residual(specs, norms))
            channels = specs[-1].out_channels
        layers.append(nn.SequentialCell(*blocks))
    return ResNet(layers, channels, num_classes, norms)
