"""Scoring a whole validation set, each image exactly once on any number of devices."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mindspore as ms
from mindspore import nn

from src.evaluate.flips import WithFlips
from src.evaluate.metrics import EvalCell
from src.platform import pulse
from src.report.timing import StepTimes

if TYPE_CHECKING:
    from src.data.pipeline import ValPipeline
    from src.platform.distributed import World


@dataclass(frozen=True)
class Score:
    """Shares of right answers (0..1), mean cross-entropy (nan if not finite), images counted, step times."""

    top1: float
    top5: float
    loss: float
    num_samples: int
    times: StepTimes
    images_per_step: int  # of all devices that share the set

    def metrics(self) -> dict[str, float | None]:
        """In the report's names."""
        loss = self.loss if math.isfinite(self.loss) else None
        return {
            "val.top1": self.top1,
            "val.top5": self.top5,
            "val.loss": loss,
            **self.times.metrics("val", self.images_per_step),
        }


class Validation:
    """A network, ready to be scored again and again (one compiled graph)."""

    def __init__(self, network: nn.Cell, pipeline: ValPipeline, world: World) -> None:
        self.network = network
        self.cell = EvalCell(WithFlips(network) if pipeline.config.data.test_flips else network)
        self.pipeline, self.world = pipeline, world
        self.images_per_step = pipeline.batch_size * (1 if pipeline.alone else world.size)

    def run(self) -> Score:
        """Score the set with the weights as they are; leaves the network in training mode if it was."""
        was_training = self.network.training
        self.cell.set_train(False)
        sums, times, end = [0.0] * 4, StepTimes(), time.perf_counter()
        for step, (images, labels) in enumerate(self.pipeline):
            pulse.give(pulse.Phase.VALIDATING, step=step)
            begin = time.perf_counter()
            counts = self.cell(ms.Tensor(images), ms.Tensor(labels)).asnumpy()
            sums = [total + float(count) for total, count in zip(sums, counts)]
            waited, end = begin - end, time.perf_counter()
            times.add(waited, end - begin)
        self.network.set_train(was_training)
        sums.append(float(self.pipeline.num_bad))
        if not self.pipeline.alone:
            sums = self.world.sum(sums)
        top1, top5, loss, count, num_bad = sums
        num_images = self.pipeline.num_images
        assert count + num_bad == num_images, f"scored {count:.0f} and skipped {num_bad:.0f} of {num_images}"
        return Score(top1 / count, top5 / count, loss / count, int(count), times, self.images_per_step)
