"""Network names and their builders. A new network is a module here and one line in the table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Callable

from src.models.freezing import freeze
from src.models.layers import Norms
from src.models.resnet import Bottlenecks, resnet
from src.models.xception import Xception

if TYPE_CHECKING:
    from mindspore import nn

    from src.config import Model


def _resnet(model: Model, num_classes: int, stride_in_3x3: bool) -> nn.Cell:
    return resnet(model.num_layers, num_classes, Bottlenecks(stride_in_3x3), _norms(model))


def _resnext(model: Model, num_classes: int, stride_in_3x3: bool) -> nn.Cell:
    form = Bottlenecks(stride_in_3x3, model.num_groups, model.width_per_group)
    return resnet(model.num_layers, num_classes, form, _norms(model))


def _xception(model: Model, num_classes: int) -> nn.Cell:
    return Xception(num_classes, _norms(model))


def _norms(model: Model) -> Norms:
    return Norms(model.batchnorm_eps, model.batchnorm_mom)


BUILDERS: dict[str, Callable[[Model, int], nn.Cell]] = {
    "resnetv1": partial(_resnet, stride_in_3x3=False),
    "resnetv15": partial(_resnet, stride_in_3x3=True),
    "resnextv1": partial(_resnext, stride_in_3x3=False),
    "resnextv15": partial(_resnext, stride_in_3x3=True),
    "xception": _xception,
}


def build(model: Model, num_classes: int) -> nn.Cell:
    """The network that `model` names: images (batch, 3, height, width) -> logits (batch, num_classes)."""
    network = BUILDERS[model.arch](model, num_classes)
    freeze(network, model.freeze)
    return network
