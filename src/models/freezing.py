"""Keeping the first stages of a network as they are."""

from __future__ import annotations

from mindspore import nn


def freeze(network: nn.Cell, num_stages: int) -> None:
    """Keep the first `num_stages` of `network.stages()`: weights and batch norm's moving statistics.

    Their parameters leave `trainable_params()`, so the optimizer, and its weight decay, never see them. Their
    batch norms use the moving statistics in training too, and do not change them: with the batch's own, what
    the frozen convolutions learned would be scaled anew in each step. `set_train` does not undo it.
    """
    for stage in network.stages()[:num_stages]:
        for cell in stage:
            for parameter in cell.get_parameters():
                parameter.requires_grad = False
            for _, part in cell.cells_and_names():
                if isinstance(part, nn.BatchNorm2d):
                    part.use_batch_statistics = False
