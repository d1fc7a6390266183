"""The optimizer: parameter groups, momentum, and the learning rate as a function of the global step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mindspore as ms
from mindspore import nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule

from src.train.schedule import Schedule, Segment

if TYPE_CHECKING:
    from src.config import Training

BATCH_NORM_PARAMETERS = ("gamma", "beta")


class ScheduledRate(LearningRateSchedule):
    """`Schedule` computed on the device from the optimizer's global step.

    Nothing but that step is state, so a resumed or lengthened run has the right rate, where a table of rates
    would be stored in checkpoints and overwrite the new one. float32: within 1e-6 of the peak.
    """

    def __init__(self, schedule: Schedule, steps_per_epoch: int) -> None:
        super().__init__()
        self.segments = schedule.segments
        self.steps_per_epoch = steps_per_epoch

    def construct(self, global_step: ms.Tensor) -> ms.Tensor:
        x = ops.cast(global_step, ms.float32) / self.steps_per_epoch
        rate = self._segment_rate(self.segments[-1], x)
        for segment in self.segments[-2::-1]:
            rate = ops.select(x < segment.end, self._segment_rate(segment, x), rate)
        return rate

    def _segment_rate(self, segment: Segment, x: ms.Tensor) -> ms.Tensor:
        if segment.kind == "linear":
            return x * (segment.peak / segment.warmup)
        if segment.kind == "cosine":
            progress = ops.minimum((x - segment.begin) / (segment.end - segment.begin), 1.0)
            return (ops.cos(progress * math.pi) + 1) * (segment.peak / 2)
        return ops.zeros_like(x) + segment.peak


def parameter_groups(network: nn.Cell, weight_decay: float, bn_weight_decay: bool) -> list[dict]:
    """Decay on convolution and dense parameters (the dense bias too); none on batch norm's unless asked."""
    parameters = list(network.trainable_params())

    def decays(parameter: ms.Parameter) -> bool:
        return bn_weight_decay or not parameter.name.endswith(BATCH_NORM_PARAMETERS)

    groups = [
        {"params": [p for p in parameters if decays(p)], "weight_decay": weight_decay},
        {"params": [p for p in parameters if not decays(p)], "weight_decay": 0.0},
    ]
    # Network order for gradients and state, whatever the groups.
    return [group for group in groups if group["params"]] + [{"order_params": parameters}]


def optimizer(network: nn.Cell, training: Training, schedule: Schedule, steps_per_epoch: int) -> nn.Optimizer:
    """v <- mom v + (g + wd w);  w <- w - lr v  (nag: w <- w - lr (g + wd w + mom v))."""
    groups = parameter_groups(network, training.wd, training.bn_weight_decay)
    rate = ScheduledRate(schedule, steps_per_epoch)
    if training.optimizer == "nag":
        # nn.Momentum(use_nesterov=True) is silently plain momentum on the CPU; nn.SGD is right.
        return nn.SGD(groups, rate, momentum=training.mom, nesterov=True)
    # Equal to nn.SGD to rounding, and measured a third faster on the CPU.
    return nn.Momentum(groups, rate, momentum=training.mom)
