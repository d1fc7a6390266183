#!/usr/bin/env python3
"""What the suite's own loop costs over a bare loop that calls the same training step on data in memory.

    python -m benchmarks.loop_overhead [--layers 18] [--size 64] [--batch 32] [--steps 20] [--rounds 7]

One compiled step, one set of batches, three loops in turn in every round, so that the machine's drift hits
all: bare (step after step), suite (Model.train with all callbacks but validation and checkpoints, the same
batches from memory), and pipeline (the same, the batches made by the input pipeline).
Prints medians over the rounds and the ratios to bare, round by round.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from src import cli
from src.config import Config
from src.platform import environment, machine
from src.platform.signals import Requests


class InMemory:
    """Stands in for TrainPipeline: the same ready batches in every epoch."""

    def __init__(self, batches: list, batch_size: int) -> None:
        self.batches, self.steps, self.global_batch_size = batches, len(batches), batch_size

    def epoch(self, epoch: int) -> Any:
        import mindspore.dataset as ds

        return ds.GeneratorDataset(
            self.batches, ["image", "label"], shuffle=False, python_multiprocessing=False
        )


def prepare(config: Config) -> tuple[Any, Any]:
    """A built run on generated data, and its first epoch's batches as arrays."""
    from src.data.splits import open_splits
    from src.platform.distributed import init
    from src.train.fit import build

    world = init("CPU")
    fitting = build(config, world, open_splits(config, train=True, val=False), seed=0)
    fitting.step.set_train()
    batches = list(fitting.pipeline.epoch(0).create_tuple_iterator(num_epochs=1, output_numpy=True))
    return fitting, batches


def bare(step: Any, batches: list) -> float:
    """Seconds for all batches, the tensors made as any loop must."""
    import mindspore as ms

    begin = time.perf_counter()
    for images, labels in batches:
        loss = step(ms.Tensor(images), ms.Tensor(labels))
    loss.asnumpy()
    return time.perf_counter() - begin


def suite(fitting: Any, config: Config, pipeline: Any, workspace: Path) -> float:
    """Seconds for one epoch through fit's loop and callbacks."""
    from src.platform.distributed import World
    from src.report.journal import Journal
    from src.report.report import Report
    from src.train.fit import fit

    run = dataclasses.replace(fitting, pipeline=pipeline)
    report = Report(
        workspace / "r.json", model="", num_devices=1, cmd=[], config={}, environment={}, dataset={}
    )
    files = {"log": workspace / "log", "dllogger": workspace / "dll"}
    journal = Journal.open(**files, report=report, append=False)

    begin = time.perf_counter()
    fit(run, config, World(), journal, Requests())
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("layers", 18), ("size", 64), ("batch", 32), ("steps", 20), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    environment.prepare("CPU")
    words = f"--data-backend synthetic --num-classes 10 --num-layers {args.layers} -b {args.batch} -e 1"
    words += f" --image-shape 3,{args.size},{args.size} --num-examples {args.steps * args.batch}"
    words += " --warmup-epochs 0 --lr 0.01 --mode train --save-frequency 0"
    config = cli.parse(words.split(), "benchmark")
    fitting, batches = prepare(config)
    bare(fitting.step, batches[:3])  # compile and warm up
    loops: dict[str, list[float]] = {"bare": [], "suite": [], "pipeline": []}
    memory = InMemory(batches, args.batch)
    with tempfile.TemporaryDirectory() as folder:
        suite(fitting, config, memory, Path(folder))
        for _ in range(args.rounds):
            loops["bare"].append(bare(fitting.step, batches))
            loops["suite"].append(suite(fitting, config, memory, Path(folder)))
            loops["pipeline"].append(suite(fitting, config, fitting.pipeline, Path(folder)))
    facts = machine.describe("CPU")
    print(f"{facts['processor']}, {facts['cores']} cores, MindSpore {facts['mindspore']}; {vars(args)}")
    for name, seconds in loops.items():
        ratios = [s / b for s, b in zip(seconds, loops["bare"])]
        print(
            f"{name:9} {statistics.median(seconds) / args.steps * 1e3:8.1f} ms per step (median; "
            f"{min(seconds) / args.steps * 1e3:.1f} to {max(seconds) / args.steps * 1e3:.1f}), "
            f"ratio to bare {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        )


if __name__ == "__main__":
    main()
