"""Network names and their builders. A new network is a module here and one line in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from src.models.resnet import resnet

if TYPE_CHECKING:
    from mindspore import nn

    from src.config import Model

BUILDERS: dict[str, Callable[[Model, int], nn.Cell]] = {
    "resnetv1": lambda m, classes: resnet(
        m.num_layers, classes, stride_in_3x3=False, eps=m.batchnorm_eps, momentum=m.batchnorm_mom
    ),
    "resnetv15": lambda m, classes: resnet(
        m.num_layers, classes, stride_in_3x3=True, eps=m.batchnorm_eps, momentum=m.batchnorm_mom
    ),
}


def build(model: Model, num_classes: int) -> nn.Cell:
    """The network that `model` names: images (batch, 3, height, width) -> logits (batch, num_classes)."""
    return BUILDERS[model.arch](model, num_classes)
