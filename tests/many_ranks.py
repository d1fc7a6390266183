"""A rank of the equality test: a short training of a small network, and the scores of sets of several sizes.

With one process, the same training by accumulating what each of N ranks would get: micro-batch r of a step is
rank r's batch, pixel for pixel. What was found goes to a file.
The network is small: the CPU's all-reduce moves about 0.04 GB/s.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from src import cli
from src.config import Config
from src.platform import distributed, environment
from src.platform.distributed import World
from src.platform.signals import Requests
from src.report.journal import Journal

BATCH, UPDATES, EPOCHS, SEED, CLASSES, SIDE = 8, 5, 2, 11, 10, 16
VALIDATION_SIZES = (1, 2, 9, 17)
WORDS = (
    f"--data-backend synthetic --num-classes {CLASSES} --image-shape 3,{SIDE},{SIDE} --num-layers 18 "
    f"-b {BATCH} -e {EPOCHS} --warmup-epochs 0 --lr 0.4 --wd 1e-3 --ema 0.7 --grad-clip 5 "
    "--disp-batches 1 --data-threads 1 --save-frequency 0"
)

environment.prepare("CPU", environment.this_rank().size)


@dataclasses.dataclass(frozen=True)
class Recorded(World):
    """A World that notes which collectives were called, and with how many numbers."""

    calls: list = dataclasses.field(default_factory=list)

    def gather(self, values):
        self.calls.append(f"gather {len(values)}")
        return super().gather(values)

    def any(self, flag):
        self.calls.append("any")
        return super().any(flag)

    def broadcast_arrays(self, arrays):
        self.calls.append(f"broadcast {sum(array.size for array in arrays)}")
        return super().broadcast_arrays(arrays)

    def mean_arrays(self, arrays):
        self.calls.append(f"mean {sum(np.size(array) for array in arrays)}")
        return super().mean_arrays(arrays)


class Interleaved:
    """The training batches of all of `size` ranks, one after the other, as one process's."""

    def __init__(self, config: Config, source: Any, size: int) -> None:
        from src.data.pipeline import TrainPipeline

        self.parts = [TrainPipeline(config, source, World(rank, size), SEED) for rank in range(size)]

    def epoch(self, epoch: int, first_step: int = 0) -> Any:
        import mindspore.dataset as ds

        ranks = []
        for part in self.parts:  # each drawn before the next sets MindSpore's seed
            dataset = part.epoch(epoch)
            ranks.append(list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)))
        batches = [batch for step in zip(*ranks) for batch in step]
        return ds.GeneratorDataset(batches, ["image", "label"], shuffle=False, python_multiprocessing=False)


def small_network(seed: int) -> Any:
    import mindspore as ms
    from mindspore import nn

    from src.models.layers import ConvSpec, Norms
    from src.models.resnet import Residual

    ms.set_seed(seed)
    branch = [ConvSpec(3, 8, 3, 2), ConvSpec(8, 8, 3)]
    block = Residual(branch, Norms(eps=1e-5, momentum=0.9))
    return nn.SequentialCell(block, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(8, CLASSES))


def train(config: Config, world: World, size: int) -> dict[str, Any]:
    """The run of `size` ranks: losses and right answers of each batch, and all that is held at the end."""
    from src.data.splits import open_splits
    from src.train import agreement, fit
    from src.train.statistics import moving_statistics
    from src.train.step import TrainStep

    rows, statistics, told = [], [], []
    take_sums = TrainStep.take_sums

    def recorded(step: TrainStep) -> list[float]:
        rows.append(take_sums(step))
        statistics.append(np.concatenate([p.asnumpy() for p in moving_statistics(step.network)]))
        return rows[-1]

    splits = open_splits(config, train=True, val=True)
    draw = mock.patch.object(fit.models, "build", return_value=small_network(100 + world.rank))
    with draw, mock.patch.object(TrainStep, "take_sums", recorded):
        fitting = fit.build(config, world, splits, SEED, warn=told.append)
        if world.size != size:
            fitting = dataclasses.replace(fitting, pipeline=Interleaved(config, splits.train, size))
        begun = {p.name: p.asnumpy().copy() for p in fitting.step.get_parameters()}
        fit.fit(fitting, config, world, Journal.silent(), Requests())
        agreement.require_equal(fitting.step, world, "at the end")
    state = {p.name: p.asnumpy() for p in fitting.step.get_parameters()}
    own = agreement.of_each_rank(fitting.step)
    means = np.concatenate([p.asnumpy() for p in moving_statistics(fitting.network)])
    return {
        **{f"begin/{name}": value for name, value in begun.items() if name not in own},
        **{f"state/{name}": value for name, value in state.items() if name not in own},
        "rows": np.array(rows),
        "statistics": np.array(statistics),
        "means": means,
        "told": np.array(told),
    }


def score(config: Config, world: World) -> list:
    """Per size of the set, and with or without sharing it: top-1, top-5, loss and images counted."""
    from src.data.pipeline import ValPipeline
    from src.data.synthetic import SyntheticSource
    from src.evaluate.validate import Validation

    found, validation = [], None
    network = small_network(5)
    for alone in (False, True):
        options = dataclasses.replace(config.pipeline, separ_val=alone)
        options = dataclasses.replace(config, pipeline=options)
        for size in VALIDATION_SIZES:
            source = SyntheticSource(size, CLASSES, (SIDE, SIDE), first_row=1000)
            pipeline = ValPipeline(options, source, world)
            validation = validation or Validation(network, pipeline, world)
            validation.pipeline = pipeline  # one compiled graph for all
            result = validation.run()
            found.append([result.top1, result.top5, result.loss, result.num_samples])
    return found


def main(target: Path, sizes: list[int]) -> int:
    world = distributed.init("CPU")
    world = Recorded(world.rank, world.size, world.local_rank, world.device)
    for size in sizes:
        words = [*WORDS.split(), "--num-examples", str(UPDATES * BATCH * size + 3)]
        if world.size == 1:
            words += ["--accumulation", str(size)]
        found = train(cli.parse(words, "test"), world, size)
        found["scores"] = np.array(score(cli.parse(words, "test"), world))
        found["calls"] = np.array(json.dumps(world.calls))
        np.savez(target / f"{size}_rank_{world.rank}_of_{world.size}.npz", **found)
    return distributed.leave(0, world)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]))
