"""Network names and their builders. A new network is a module here and one line in the table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Callable

from src.models.resnet import resnet

if TYPE_CHECKING:
    from mindspore import nn

    from src.config import Model


def _resnet(model: Model, num_classes: int, stride_in_3x3: bool) -> nn.Cell:
    eps, momentum = model.batchnorm_eps, model.batchnorm_mom
    return resnet(model.num_layers, num_classes, stride_in_3x3=stride_in_3x3, eps=eps, momentum=momentum)


BUILDERS: dict[str, Callable[[Model, int], nn.Cell]] = {
    "resnetv1": partial(_resnet, stride_in_3x3=False),
    "resnetv15": partial(_resnet, stride_in_3x3=True),
}


def build(model: Model, num_classes: int) -> nn.Cell:
    """The network that `model` names: images (batch, 3, height, width) -> logits (batch, num_classes)."""
    return BUILDERS[model.arch](model, num_classes)
