"""How fast the input pipeline is by itself (--test-io)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from src.data.pipeline import TrainPipeline, ValPipeline
from src.platform import pulse
from src.report.timing import StepTimes

if TYPE_CHECKING:
    from src.config import Config
    from src.data.splits import Splits
    from src.platform.distributed import World


def measure(config: Config, splits: Splits, world: World, seed: int, epoch: int) -> StepTimes:
    """Seconds per batch of this rank while nothing consumes the batches, over one epoch."""
    if splits.train is not None:
        pipeline = TrainPipeline(config, splits.train, world, seed)
        batches = pipeline.epoch(epoch).create_tuple_iterator(num_epochs=1, output_numpy=True)
    else:
        assert splits.val is not None
        batches = iter(ValPipeline(config, splits.val, world))
    times, limit = StepTimes(), config.training.benchmark_iters or np.inf
    end = time.perf_counter()
    for _ in batches:
        begin, end = end, time.perf_counter()
        times.add(end - begin, 0.0)
        pulse.give(pulse.Phase.TRAINING, epoch, len(times.waits))
        if len(times.waits) >= limit:
            break
    return times
