"""Batch norm's moving statistics, which a forward pass changes whatever becomes of the step."""

from __future__ import annotations

import math

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from src.train.assigning import assign
from src.weights.checkpoint import EMA_PREFIX

MOVING_STATISTICS = ("moving_mean", "moving_variance")


def moving_statistics(network: nn.Cell) -> list[ms.Parameter]:
    """The parameters that hold them, in the network's order."""
    return [p for p in network.get_parameters() if p.name.endswith(MOVING_STATISTICS)]


def changing_statistics(step: nn.Cell) -> list[ms.Parameter]:
    """Those of batch norms that train, and of their moving averages; not those of frozen stages."""
    frozen = set()
    for _, cell in step.cells_and_names():
        if isinstance(cell, nn.BatchNorm2d) and cell.use_batch_statistics is False:
            frozen |= {cell.moving_mean.name, cell.moving_variance.name}
    return [p for p in moving_statistics(step) if p.name.removeprefix(EMA_PREFIX) not in frozen]


class KeptStatistics(nn.Cell):
    """The moving statistics after the last update that was made, to go back to when one is skipped.

    Without it one image with an infinity would leave NaNs in them for good, which MindSpore's ReLU on the CPU
    turns into zeros: training would go on, and validation be wrong in silence.
    """

    def __init__(self, network: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        statistics = moving_statistics(network)
        self.statistics = ms.ParameterTuple(statistics)
        sizes = [math.prod(p.shape) for p in statistics]
        self.begins = tuple(int(begin) for begin in np.cumsum([0, *sizes]))
        # One vector: a copy of each by itself would cost a hundred small operators a step.
        values = np.concatenate([p.asnumpy() for p in statistics])
        self.kept = ms.Parameter(values, name="kept_statistics", requires_grad=False)

    def keep_now(self) -> None:
        """The same from the host, between steps, after something else changed the statistics."""
        assign(self.kept, np.concatenate([p.asnumpy() for p in self.statistics]))

    def keep(self) -> ms.Tensor:
        """The statistics as they are now are the good ones."""
        return ops.assign(self.kept, ops.concat(self.statistics))

    def restore(self) -> bool:
        """Put the good ones back."""
        for i in range(len(self.statistics)):
            ops.assign(self.statistics[i], self.kept[self.begins[i] : self.begins[i + 1]])
        return True
