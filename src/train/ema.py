"""An exponential moving average of the network's weights."""

from __future__ import annotations

import contextlib
from typing import Iterator

import mindspore as ms
from mindspore import nn, ops

from src.train.assigning import assign
from src.weights.checkpoint import EMA_PREFIX


class MovingAverage(nn.Cell):
    """average <- decay average + (1 - decay) weight, after every update, from the first weights on.

    Batch norm's moving statistics are averaged likewise (Polyak and Juditsky, 1992; as timm's ModelEma).
    """

    def __init__(self, network: nn.Cell, decay: float) -> None:
        super().__init__(auto_prefix=False)
        self.decay = decay
        self.weights = ms.ParameterTuple(network.get_parameters())
        self.averages = self.weights.clone(prefix=EMA_PREFIX.rstrip("."), init="same")

    def construct(self) -> bool:
        for i in range(len(self.weights)):
            average = self.averages[i]
            # In this form weights that stay the same have themselves for an average; as float32 numbers,
            # decay and 1 - decay do not add up to 1.
            ops.assign(average, average + (1 - self.decay) * (self.weights[i] - average))
        return True

    @contextlib.contextmanager
    def in_place_of_weights(self) -> Iterator[None]:
        """The network computes with the averages, for as long as the `with` block lasts."""
        weights = [weight.asnumpy().copy() for weight in self.weights]
        for weight, average in zip(self.weights, self.averages):
            assign(weight, average.asnumpy())
        try:
            yield
        finally:
            for weight, value in zip(self.weights, weights):
                assign(weight, value)
