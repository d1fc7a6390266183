"""What the networks are made of: convolutions without bias, batch norm, and the dense head."""

from __future__ import annotations

from dataclasses import dataclass

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import HeNormal, Zero


@dataclass(frozen=True)
class ConvSpec:
    """One convolution: channels in and out, side of the kernel, stride, groups of channels."""

    in_channels: int
    out_channels: int
    kernel: int
    stride: int = 1
    groups: int = 1


@dataclass(frozen=True)
class Norms:
    """How all batch norms of a network work: `eps` is added to the variance, and `momentum` is the share of
    the old moving statistics that is kept (MindSpore's convention; PyTorch's is one minus that)."""

    eps: float
    momentum: float

    def make(self, channels: int, *, ends_branch: bool = False) -> nn.BatchNorm2d:
        """A batch norm with gamma 1; 0 at the end of a residual branch, so that each block starts as its
        shortcut alone (Goyal et al. 2017, 5.1)."""
        gamma = "zeros" if ends_branch else "ones"
        return nn.BatchNorm2d(channels, self.eps, self.momentum, gamma_init=gamma)


def conv(spec: ConvSpec) -> nn.Conv2d:
    """A convolution without bias (batch norm follows), padded to keep the size at stride 1.

    He's normal start; the fan-in is that of one output, so 9 for a depthwise 3x3 (He et al. 2015).
    """
    return nn.Conv2d(
        spec.in_channels,
        spec.out_channels,
        spec.kernel,
        spec.stride,
        pad_mode="pad",
        padding=spec.kernel // 2,
        group=spec.groups,
        has_bias=False,
        weight_init=HeNormal(mode="fan_in"),
    )


def projection(in_channels: int, out_channels: int, stride: int, norms: Norms) -> nn.SequentialCell:
    """The shortcut where a block changes channels or size: a 1x1 convolution and batch norm."""
    return nn.SequentialCell(conv(ConvSpec(in_channels, out_channels, 1, stride)), norms.make(out_channels))


def head(features: int, num_classes: int) -> nn.Dense:
    """Pooled features (batch, features) -> logits (batch, num_classes)."""
    return nn.Dense(features, num_classes, weight_init=HeNormal(mode="fan_in"), bias_init=Zero())


def pooled(x: ms.Tensor) -> ms.Tensor:
    """The mean over height and width: (batch, channels, height, width) -> (batch, channels)."""
    return ops.mean(x, (2, 3))
