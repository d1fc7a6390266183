"""One training step, and the running sums it keeps on the device."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from src.evaluate.metrics import topk_correct

SUMS = ("loss", "steps", "top1", "top5")


class TrainStep(nn.TrainOneStepCell):
    """Forward, backward, gradient averaging over devices, update; returns the loss of the batch.

    `sums` (float32, 4) gathers loss, steps and right answers on the device, so that an average over many
    steps costs one small copy to the host instead of one per step. It is exact in steps and counts up to
    2^24, and is emptied by `take_sums` every --disp-batches steps.
    """

    def __init__(self, network: nn.Cell, optimizer: nn.Optimizer, count_right: bool) -> None:
        super().__init__(network, optimizer)
        self.count_right = count_right
        self.sums = ms.Parameter(np.zeros(len(SUMS), np.float32), name="sums", requires_grad=False)
        self.value_and_grad = ms.value_and_grad(self.network, None, self.weights, has_aux=True)

    def construct(self, images: ms.Tensor, labels: ms.Tensor) -> ms.Tensor:
        (loss, logits), gradients = self.value_and_grad(images, labels)
        gradients = self.grad_reducer(gradients)
        loss = ops.depend(loss, self.optimizer(gradients))
        one = ops.ones_like(loss)
        if self.count_right:
            right = topk_correct(ops.stop_gradient(logits), labels)
        else:
            right = ops.zeros((2,), ms.float32)
        return ops.depend(loss, ops.assign_add(self.sums, ops.concat((ops.stack((loss, one)), right))))

    def take_sums(self) -> list[float]:
        """The sums since the last call, in the order of SUMS; starts anew from zero."""
        values = self.sums.asnumpy().astype(np.float64).tolist()
        self.sums.set_data(ms.Tensor(np.zeros(len(SUMS), np.float32)))
        return values
