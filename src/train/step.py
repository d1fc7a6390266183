"""One training step, and the running sums it keeps on the device."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from src.evaluate.metrics import topk_correct
from src.train.assigning import assign
from src.train.ema import MovingAverage
from src.train.gradients import Accumulator, ClipByGlobalNorm, Finite, multiplied
from src.train.loss_scale import LossScale, ScaledLoss
from src.train.statistics import KeptStatistics, moving_statistics

SUMS = ("loss", "steps", "top1", "top5", "counted", "skipped")


class TrainStep(nn.TrainOneStepCell):
    """Forward, backward and, every `accumulation` batches, an update; returns the loss of the batch.

    `sums` (float32, as SUMS) gathers on the device what is to be averaged over many steps, so that it costs
    one small copy to the host every --disp-batches steps: losses and the steps whose loss is a number; right
    answers and the images counted; updates skipped. Exact in counts up to 2^24; emptied by `take_sums`.
    """

    def __init__(
        self,
        network: nn.Cell,
        optimizer: nn.Optimizer,
        count_right: bool,
        *,
        accumulation: int = 1,
        grad_clip: float = 0.0,
        average: MovingAverage | None = None,
        loss_scale: LossScale | None = None,
    ) -> None:
        super().__init__(network, optimizer)
        self.count_right, self.accumulation = count_right, accumulation
        self.sums = ms.Parameter(np.zeros(len(SUMS), np.float32), name="sums", requires_grad=False)
        # Updates without a finite gradient, in a row until now.
        self.streak = ms.Parameter(np.zeros((), np.float32), name="streak", requires_grad=False)
        self.accumulator = Accumulator(self.weights, accumulation) if accumulation > 1 else None
        self.finite = Finite(self.weights, thoroughly=loss_scale is not None)
        self.clip = ClipByGlobalNorm(grad_clip) if grad_clip > 0 else None
        self.average, self.loss_scale = average, loss_scale
        self.statistics = KeptStatistics(network) if moving_statistics(network) else None
        computed = network if loss_scale is None else ScaledLoss(network, loss_scale)
        self.value_and_grad = ms.value_and_grad(computed, None, self.weights, has_aux=True)

    def construct(self, images: ms.Tensor, *targets: ms.Tensor) -> ms.Tensor:
        outputs, gradients = self.value_and_grad(images, *targets)
        loss, logits = outputs[-2], outputs[-1]
        skipped = ops.zeros((), ms.float32)
        if self.accumulator is None:
            skipped = self.update(gradients)
        else:
            complete = self.accumulator(gradients)
            if complete:
                skipped = self.update(self.accumulator.take())
        return ops.depend(loss, self.gather(loss, logits, targets, skipped))

    def update(self, gradients: tuple[ms.Tensor, ...]) -> ms.Tensor:
        """Change the weights, unless a gradient is not finite; 1.0 if that was skipped.

        A skipped update leaves weights, statistics, momentum and averages byte for byte as they were, and
        counts as a step of the schedule. Gradients are averaged over devices first, so that all decide alike.
        """
        gradients = self.grad_reducer(gradients)
        if self.loss_scale is not None:
            gradients = multiplied(gradients, 1.0 / (self.loss_scale.scale * self.accumulation))
        elif self.accumulation > 1:
            gradients = multiplied(gradients, ops.ones((), ms.float32) / self.accumulation)
        finite = self.finite(gradients)
        if finite:
            self.apply(gradients)
        else:
            self.skip()
        hopeless = ops.ones_like(finite) if self.loss_scale is None else self.loss_scale(finite)
        skipped = 1.0 - ops.cast(finite, ms.float32)
        ops.assign(self.streak, (self.streak + 1.0) * skipped * ops.cast(hopeless, ms.float32))
        return skipped

    def apply(self, gradients: tuple[ms.Tensor, ...]) -> bool:
        """Clip, let the optimizer work, and average the new weights."""
        if self.statistics is not None:
            self.statistics.keep()
        if self.clip is not None:
            gradients = self.clip(gradients)
        done = self.optimizer(gradients)
        if self.average is not None:
            done = ops.depend(self.average(), done)
        return done

    def skip(self) -> bool:
        """Forget the step, but for its place in the schedule."""
        if self.statistics is not None:
            self.statistics.restore()
        ops.assign_add(self.optimizer.global_step, self.optimizer.global_step_increase_tensor)
        return True

    def gather(
        self, loss: ms.Tensor, logits: ms.Tensor, targets: tuple[ms.Tensor, ...], skipped: ms.Tensor
    ) -> ms.Tensor:
        """Add this step to the sums; right answers only where the target is one column of labels."""
        is_number = ops.isfinite(loss)
        counted = ops.zeros((3,), ms.float32)
        if self.count_right and len(targets) == 1 and targets[0].ndim == 1:
            right = topk_correct(ops.stop_gradient(logits), targets[0])
            counted = ops.concat((right, ops.full((1,), logits.shape[0], dtype=ms.float32)))
        loss = ops.select(is_number, loss, ops.zeros_like(loss))
        losses = ops.stack((loss, ops.cast(is_number, ms.float32)))
        return ops.assign_add(self.sums, ops.concat((losses, counted, skipped.reshape((1,)))))

    def take_sums(self) -> list[float]:
        """The sums since the last call, in the order of SUMS; starts anew from zero."""
        values = self.sums.asnumpy().astype(np.float64).tolist()
        assign(self.sums, np.zeros(len(SUMS)))
        return values

    def skipped_in_a_row(self) -> int:
        """Up to now, the updates without a finite gradient that no lower loss scale could have helped."""
        return int(self.streak.asnumpy())
