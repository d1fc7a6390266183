#!/usr/bin/env python3
"""Measures a training step on 1, 2 and more processes of this machine (CPU), and its parts; prints Markdown.

    python -m benchmarks.scaling [-n 1 2 4] [--case 18:32:32 50:64:8] [--steps 4] [--rounds 5]

A case is layers:pixels:batch per process. All ranks measure at once, in turn in every round, so that the
machine's drift hits all parts; medians over rounds of rank 0:
step         the suite's training step on batches in memory
compute      the same step without the reduction of its gradients, n processes computing beside each other
all-reduce   in the step: the difference of the two. Alone: World's primitive on one vector of as many bytes
input        from the input pipeline alone, per batch (generated images: no decoding)
epoch        through Model.train with the suite's callbacks and pipeline, per step
Efficiency is the step of one process over that of n, the work per process being the same; on a CPU the n
share the cores that one had alone, so 1/n is what n processes can reach once the cores are busy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

from benchmarks.measuring import ROOT, machine, table
from src import cli, launch
from src.platform import environment
from src.platform.signals import Requests
from src.platform.supervisor import Process, supervise

PARTS = ("step", "compute", "all-reduce alone", "input", "epoch")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--num-processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--case", nargs="+", default=["18:32:32", "50:64:8"], metavar="LAYERS:PIXELS:BATCH")
    parser.add_argument("--steps", type=int, default=4, help="in each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)  # this is a rank: the file to write to
    args = parser.parse_args()
    if args.rank_of:
        return rank(args, Path(args.rank_of))
    found = {}
    for case in args.case:
        for n in args.num_processes:
            print(f"{case}, {n} processes", file=sys.stderr, flush=True)
            found[case, n] = launched(case, n, args)
    print(
        f"{machine()}; {args.steps} steps a measurement, medians of {args.rounds} rounds (min to max), ms.\n"
    )
    head = ["case", "n", "step", "compute", "all-reduce in it", "all-reduce alone", "MB/s of it", "input"]
    head += ["epoch, per step", "images/s", "efficiency"]
    print(table(head, [line(case, n, found, args) for case, n in found]))
    return 0


def line(case: str, n: int, found: dict, args: argparse.Namespace) -> list[object]:
    times = found[case, n]
    step, alone = statistics.median(times["step"]), statistics.median(times["all-reduce alone"])
    difference = statistics.median(a - b for a, b in zip(times["step"], times["compute"]))
    layers, pixels, batch = case.split(":")
    first = found.get((case, 1))
    return [
        f"ResNet-{layers}, {pixels} px, batch {batch}", n, spread(times["step"]), spread(times["compute"]),
        f"{1e3 * difference:.0f}" if n > 1 else "-", spread(times["all-reduce alone"]) if n > 1 else "-",
        f"{times['bytes'] / alone / 1e6:.0f}" if n > 1 else "-", spread(times["input"]),
        spread(times["epoch"]), f"{n * int(batch) / step:.1f}",
        f"{statistics.median(first['step']) / step:.0%}" if first else "-",
    ]  # fmt: skip


def spread(seconds: list[float]) -> str:
    low, middle, high = (1e3 * f(seconds) for f in (min, statistics.median, max))
    return (
        f"{middle:.0f} ({low:.0f} to {high:.0f})" if high >= 10 else f"{middle:.1f} ({low:.1f} to {high:.1f})"
    )


def launched(case: str, n: int, args: argparse.Namespace) -> dict[str, Any]:
    """What rank 0 of n measured."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        port, reservation = launch.reserve_port()
        command = [
            sys.executable,
            "-m",
            "benchmarks.scaling",
            "--case",
            case,
            "--rank-of",
            str(folder / "found"),
        ]
        command += ["--steps", str(args.steps), "--rounds", str(args.rounds)]
        scheduler = [sys.executable, "-m", "src.platform.scheduler"]
        variables = environment.scheduler_environment(n, port)
        plan = [Process("scheduler", scheduler, variables, folder / "scheduler", ROOT, service=True)] * (
            n > 1
        )
        for r in range(n):
            place = environment.rank_environment("CPU", r, n, port)
            plan.append(Process(f"rank {r}", command, place, folder / f"rank_{r}", ROOT))
        with reservation:
            outcome = supervise(plan)
        if outcome.code:
            raise RuntimeError(outcome.message)
        return json.loads((folder / "found").read_text())


def rank(args: argparse.Namespace, target: Path) -> int:
    """Measure, as one process of many."""
    from src.platform import distributed

    place = environment.this_rank()
    environment.prepare("CPU", place.size)
    world = distributed.init("CPU")
    layers, pixels, batch = args.case[0].split(":")
    words = (
        f"--data-backend synthetic --num-classes 1000 --num-layers {layers} -b {batch} -e 1 --warmup-epochs 0"
    )
    words += f" --image-shape 3,{pixels},{pixels} --num-examples {args.steps * int(batch) * world.size}"
    words += " --lr 0.01 --mode train --save-frequency 0"
    parts, gradient_bytes = prepare(cli.parse(words.split(), "benchmark"), world)
    for part in parts.values():
        part()  # compiles
    found: dict[str, Any] = {name: [] for name in PARTS}
    for _ in range(args.rounds):
        for name, part in parts.items():
            world.barrier()
            begin = time.perf_counter()
            calls = part()
            found[name].append((time.perf_counter() - begin) / calls)
    if world.is_main:
        target.write_text(json.dumps({**found, "bytes": gradient_bytes}))
    return distributed.leave(0, world)


def prepare(config: Any, world: Any) -> tuple[dict[str, Callable[[], int]], int]:
    """Per part a function that does it and returns how often; and the bytes of all gradients."""
    import mindspore as ms
    import numpy as np
    from mindspore import nn

    from src.data.splits import open_splits
    from src.platform.distributed import _all_reduce
    from src.report.journal import Journal
    from src.train.fit import build, fit, training_step

    fitting = build(config, world, open_splits(config, train=True, val=False), seed=0)
    bare = training_step(fitting.network, config.training, fitting.schedule, fitting.pipeline.steps)
    bare.grad_reducer = nn.Identity()
    weights = sum(p.size for p in fitting.network.trainable_params())
    vector = np.ones(weights, np.float32)

    def batches() -> list:
        return list(fitting.pipeline.epoch(0).create_tuple_iterator(num_epochs=1, output_numpy=True))

    ready = [(ms.Tensor(images), ms.Tensor(labels)) for images, labels in batches()]

    def steps(cell: Any) -> int:
        cell.set_train()
        for images, labels in ready:
            loss = cell(images, labels)
        loss.asnumpy()
        return len(ready)

    def all_reduce() -> int:
        if world.size > 1:
            _all_reduce(vector)
        return 1

    def epoch() -> int:
        fit(fitting, config, world, Journal.silent(), Requests())
        return len(ready)

    works = (lambda: steps(fitting.step), lambda: steps(bare), all_reduce, lambda: len(batches()), epoch)
    return dict(zip(PARTS, works)), vector.nbytes


if __name__ == "__main__":
    sys.exit(main())
