"""Validation that is stopped gives no score, on any rank."""

from __future__ import annotations

import numpy as np
import pytest

from src.platform.distributed import World

SIZE, BATCHES = 4, 3


class Pipeline:
    """Batches of one class, and how many were taken."""

    def __init__(self, alone: bool = False) -> None:
        from src.config import Config

        self.config, self.batch_size, self.num_bad = Config(), SIZE, 0
        self.source, self.num_images = range(SIZE * BATCHES), SIZE * BATCHES
        self.alone, self.taken = alone, 0

    def __iter__(self):
        for _ in range(BATCHES):
            self.taken += 1
            yield np.eye(6, dtype=np.float32)[[0] * SIZE], np.zeros(SIZE, np.int32)


class Two(World):
    """A world with another rank, which has no images, and was asked to stop or was not."""

    def __new__(cls, other_stops: bool):
        made = super().__new__(cls)
        object.__setattr__(made, "other_stops", other_stops)
        object.__setattr__(made, "asked", [])
        return made

    def __init__(self, other_stops: bool) -> None:
        super().__init__(0, 2)

    def sum(self, values):
        self.asked.append("sum")
        *values, stops = values
        return [*values, stops + self.other_stops]

    def gather(self, values):
        self.asked.append("gather")
        return [list(values), [0.0] * len(values)]

    def any_of(self, flags):
        self.asked.append("any")
        return [flag or self.other_stops for flag in flags]


def validation(pipeline: Pipeline, world: World):
    from mindspore import nn

    from src.evaluate.validate import Validation

    return Validation(nn.Identity(), pipeline, world)


def test_it_ends_with_the_batch_at_which_it_was_asked(graph_mode):
    pipeline = Pipeline()
    assert validation(pipeline, World()).run(lambda: pipeline.taken == 2) is None
    assert pipeline.taken == 2
    assert validation(pipeline, World()).run().top1 == 1.0


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("others", [False, True])
def test_all_ranks_agree_on_it(alone, own, others, graph_mode):
    pipeline, world = Pipeline(alone), Two(others)
    score = validation(pipeline, world).run(lambda: own)
    assert (score is None) == (own or others)
    assert pipeline.taken == (1 if own else BATCHES)
    agreeing = ["any"] if alone else ["sum"] if own or others else ["sum", "gather"]  # times, last
    assert world.asked == agreeing, "the same collectives whoever was asked"
