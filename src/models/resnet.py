"""ResNet-18 to 152, v1 and v1.5 (He et al. 2015, arXiv:1512.03385; v1.5 strides in the 3x3 convolution).

Parameters have the field's usual names: `layer2.0.conv3.weight`, `layer2.0.downsample.1.gamma`, `fc.bias`.
"""

from __future__ import annotations

from typing import Sequence

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import HeNormal, Zero

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


class ConvSpec:
    """One convolution of a residual branch: channels in and out, kernel size, stride."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int, stride: int = 1) -> None:
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel, self.stride = kernel, stride


def conv(spec: ConvSpec) -> nn.Conv2d:
    """A convolution without bias (batch norm follows), padded to keep the size at stride 1."""
    return nn.Conv2d(
        spec.in_channels,
        spec.out_channels,
        spec.kernel,
        spec.stride,
        pad_mode="pad",
        padding=spec.kernel // 2,
        has_bias=False,
        weight_init=HeNormal(mode="fan_in"),
    )


class Residual(nn.Cell):
    """relu(x + branch(x)); the branch is convolution-norm pairs with ReLU between them."""

    def __init__(self, branch: Sequence[ConvSpec], eps: float, momentum: float) -> None:
        super().__init__()
        first, last = branch[0], branch[-1]
        stride = max(spec.stride for spec in branch)
        self.num_convs = len(branch)
        for i, spec in enumerate(branch, 1):
            setattr(self, f"conv{i}", conv(spec))
            # The last norm starts at 0, so that each block starts as the identity (Goyal et al. 2017, 5.1).
            gamma = "zeros" if spec is last else "ones"
            setattr(self, f"bn{i}", nn.BatchNorm2d(spec.out_channels, eps, momentum, gamma_init=gamma))
        self.downsample: nn.Cell | None = None
        if stride != 1 or first.in_channels != last.out_channels:
            shortcut = ConvSpec(first.in_channels, last.out_channels, 1, stride)
            self.downsample = nn.SequentialCell(
                conv(shortcut), nn.BatchNorm2d(last.out_channels, eps, momentum)
            )

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

    def __init__(
        self, stages: Sequence[nn.Cell], features: int, num_classes: int, eps: float, momentum: float
    ):
        super().__init__()
        self.conv1 = conv(ConvSpec(3, STAGE_WIDTHS[0], 7, stride=2))
        self.bn1 = nn.BatchNorm2d(STAGE_WIDTHS[0], eps, momentum)
        self.pool = StemPool()
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Dense(features, num_classes, weight_init=HeNormal(mode="fan_in"), bias_init=Zero())

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = self.pool(ops.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(ops.mean(x, (2, 3)))


def branch(layers: int, in_channels: int, width: int, stride: int, stride_in_3x3: bool) -> list[ConvSpec]:
    """The convolutions of one block of a network of `layers` layers."""
    if layers < BOTTLENECK_FROM_LAYERS:
        return [ConvSpec(in_channels, width, 3, stride), ConvSpec(width, width, 3)]
    first, middle = (1, stride) if stride_in_3x3 else (stride, 1)
    return [
        ConvSpec(in_channels, width, 1, first),
        ConvSpec(width, width, 3, middle),
        ConvSpec(width, width * BOTTLENECK_EXPANSION, 1),
    ]


def resnet(layers: int, num_classes: int, *, stride_in_3x3: bool, eps: float, momentum: float) -> ResNet:
    """ResNet of 18, 34, 50, 101 or 152 layers. `momentum` is the share of the old moving statistics kept."""
    stages, channels = [], STAGE_WIDTHS[0]
    for stage, (width, num_blocks) in enumerate(zip(STAGE_WIDTHS, STAGE_BLOCKS[layers])):
        blocks = []
        for block in range(num_blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            specs = branch(layers, channels, width, stride, stride_in_3x3)
            blocks.append(Residual(specs, eps, momentum))
            channels = specs[-1].out_channels
        stages.append(nn.SequentialCell(*blocks))
    return ResNet(stages, channels, num_classes, eps, momentum)
