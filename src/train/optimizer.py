"""The optimizer: which parameters decay, its rule, and the learning rate as a function of the global step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mindspore as ms
from mindspore import nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule

from src.train.adamw import AdamW
from src.train.schedule import Schedule, Segment
from src.train.trust_ratio import Lamb, Lars

if TYPE_CHECKING:
    from src.config import Training

BATCH_NORM_PARAMETERS = ("gamma", "beta")
# PyTorch's AdamW, and timm's Lamb, with which the published LAMB recipes were made.
DEFAULT_ADAM_EPS = {"adamw": 1e-8, "lamb": 1e-6}


class ScheduledRate(LearningRateSchedule):
    """`Schedule` computed on the device from the optimizer's global step.

    Nothing but that step is state, so a resumed or lengthened run has the right rate, where a table of rates
    would be stored in checkpoints and overwrite the new one. float32: within 1e-6 of the peak.
    """

    def __init__(self, schedule: Schedule, updates_per_epoch: int) -> None:
        super().__init__()
        self.segments = schedule.segments
        self.updates_per_epoch = updates_per_epoch

    def construct(self, global_step: ms.Tensor) -> ms.Tensor:
        x = ops.cast(global_step, ms.float32) / self.updates_per_epoch
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


def weight_decays(network: nn.Cell, training: Training) -> tuple[float, ...]:
    """The decay of each trainable parameter, in the network's order.

    Convolution and dense parameters decay, the dense bias too unless --no-bias-weight-decay; batch norm's
    gamma and beta only with --bn-weight-decay.
    """

    def decay(parameter: ms.Parameter) -> float:
        if parameter.name.endswith(BATCH_NORM_PARAMETERS):
            return training.wd if training.bn_weight_decay else 0.0
        if parameter.name.endswith("bias"):
            return training.wd if training.bias_weight_decay else 0.0
        return training.wd

    return tuple(decay(p) for p in network.trainable_params())


def parameter_groups(parameters: list[ms.Parameter], decays: tuple[float, ...]) -> list[dict]:
    """MindSpore's groups of equal decay; gradients and state keep the network's order."""
    groups = [
        {"params": [p for p, own in zip(parameters, decays) if own == decay], "weight_decay": decay}
        for decay in sorted(set(decays), reverse=True)
    ]
    return [*groups, {"order_params": parameters}]


def optimizer(
    network: nn.Cell, training: Training, schedule: Schedule, updates_per_epoch: int
) -> nn.Optimizer:
    """The rule of --optimizer at the rate of the schedule; sgd and nag, with momentum `mom`:

    v <- mom v + (g + wd w);  w <- w - lr v  (nag: w <- w - lr (g + wd w + mom v)).
    """
    parameters, decays = list(network.trainable_params()), weight_decays(network, training)
    rate = ScheduledRate(schedule, updates_per_epoch)
    if training.optimizer == "lars":
        return Lars(parameters, decays, rate, training.mom, training.trust_coefficient)
    if training.optimizer in ("adamw", "lamb"):
        rule = AdamW if training.optimizer == "adamw" else Lamb
        eps = training.adam_eps
        if eps is None:
            eps = DEFAULT_ADAM_EPS[training.optimizer]
        return rule(parameters, decays, rate, training.adam_beta1, training.adam_beta2, eps)
    groups = parameter_groups(parameters, decays)
    if training.optimizer == "nag":
        # nn.Momentum(use_nesterov=True) is silently plain momentum on the CPU; nn.SGD is right.
        return nn.SGD(groups, rate, momentum=training.mom, nesterov=True)
    # Equal to nn.SGD to rounding, and measured a third faster on the CPU.
    return nn.Momentum(groups, rate, momentum=training.mom)
