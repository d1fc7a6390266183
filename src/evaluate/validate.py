"""Scoring a whole validation set, each image exactly once on any number of devices."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

import mindspore as ms
from mindspore import nn

from src.evaluate import details
from src.evaluate.details import Answers
from src.evaluate.flips import WithFlips
from src.evaluate.metrics import AnsweringCell
from src.platform import pulse
from src.platform.distributed import World
from src.report.merging import merged
from src.report.timing import StepTimes

if TYPE_CHECKING:
    from src.data.pipeline import ValPipeline
    from src.report.journal import Journal


@dataclass(frozen=True)
class Score:
    """Shares of right answers (0..1), mean cross-entropy (nan if not finite), images counted."""

    top1: float
    top5: float
    loss: float
    num_samples: int
    figures: dict[str, float | None]  # of speed and time, in the report's names
    answers: Answers | None = None  # of each image, if they were asked for

    def metrics(self) -> dict[str, float | None]:
        """In the report's names."""
        loss = self.loss if math.isfinite(self.loss) else None
        return {
            "val.top1": self.top1,
            "val.top5": self.top5,
            "val.loss": loss,
            **self.figures,
        }


class Validation:
    """A network, ready to be scored again and again (one compiled graph)."""

    def __init__(self, network: nn.Cell, pipeline: ValPipeline, world: World) -> None:
        self.network = network
        self.cell = AnsweringCell(WithFlips(network) if pipeline.config.data.test_flips else network)
        self.pipeline, self.world = pipeline, world
        self.compiled = False

    def run(self, stop_asked: Callable[[], bool] = lambda: False, keep_answers: bool = False) -> Score | None:
        """Score the set with the weights as they are; leaves the network in training mode if it was.

        None, on all ranks, if one of them was asked to stop before it had scored all of its share.
        """
        answers = Answers.none_yet(len(self.pipeline.source)) if keep_answers else None
        was_training = self.network.training
        self.cell.set_train(False)
        sums, times, stopped = [0.0] * 4, StepTimes(), False
        begun = end = time.perf_counter()
        for step, (images, labels) in enumerate(self.pipeline):
            stopped = stop_asked()
            if stopped:
                break
            pulse.give(pulse.Phase.VALIDATING, step=step)
            begin = time.perf_counter()
            counts, answered = self.cell(ms.Tensor(images), ms.Tensor(labels))
            sums = [total + float(count) for total, count in zip(sums, counts.asnumpy())]
            if answers is not None:
                answers.add(self.pipeline.rows_of(step), labels, answered.asnumpy())
            waited, end = begin - end, time.perf_counter()
            times.add(waited, end - begin)
        self.network.set_train(was_training)
        sums.append(float(self.pipeline.num_bad))
        if self.pipeline.alone:
            stopped = self.world.any(stopped)
        else:
            *sums, stops = self.world.sum([*sums, float(stopped)])
            stopped = stops > 0
        if stopped:
            return None
        if answers is not None and not self.pipeline.alone:
            answers = answers.over_ranks(self.world)
        top1, top5, loss, count, num_bad = sums
        num_images = self.pipeline.num_images
        assert count + num_bad == num_images, f"scored {count:.0f} and skipped {num_bad:.0f} of {num_images}"
        figures = self._figures(times)
        figures["val.time"] = time.perf_counter() - begun
        return Score(top1 / count, top5 / count, loss / count, int(count), figures, answers)

    def _figures(self, times: StepTimes) -> dict[str, float | None]:
        """Speed of all devices, and where the time went."""
        world = World() if self.pipeline.alone else self.world
        figures, _ = merged(times, "val", self.pipeline.batch_size, world.gather)
        first, self.compiled = not self.compiled, True
        return {**figures, "val.compile_time": times.compile_s if first else 0.0}

    def tell(self, score: Score, epoch: int, journal: Journal) -> None:
        """Give the journal what a person wants to see of the answers; a failure here is only a warning."""
        if score.answers is None or not self.world.is_main or not journal.report:
            return
        source = self.pipeline.source
        told = details.document(score.answers, source.classes, epoch)
        try:
            details.add_thumbnails(told, source)
        except (
            Exception
        ) as error:  # whatever a source, Pillow or MindSpore raises: pictures are not the result
            journal.console.warn(f"no pictures of the mistakes for report.html: {error}")
        journal.details(told)
