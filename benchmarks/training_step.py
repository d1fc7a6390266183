#!/usr/bin/env python3
"""A training step of ResNet-50 on the CPU, float32: the suite beside PyTorch and beside stock MindSpore.

    python -m benchmarks.training_step [--batch 16] [--stock-batch 2] [--steps 2] [--rounds 5] [--size 224]

Each contestant is a process with a batch of noise in memory, and in every round each makes --steps steps,
beginning with another one each time. `stock MindSpore` is the same network in MindSpore's own cells, without
the suite's settings of the environment; on processors with AVX-512 it is so slow that it makes one step of a
small batch, and the suite is measured with that batch too. PyTorch's environment is made if need be. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Sequence

from benchmarks import environments
from benchmarks.measuring import ROOT, machine, ratio, table
from benchmarks.rounds import Contestant, spread, take_turns
from src.config import Config

PEER = ROOT / "benchmarks" / "peers" / "torch_step.py"
SUITE, SETTINGS, STOCK = "suite", "stock cells, the suite's settings", "stock MindSpore"
CONTIGUOUS, CHANNELS_LAST = "PyTorch, contiguous", "PyTorch, channels last"
# Of what the user's shell may hold, that a stock run must not have.
UNSET = {"ONEDNN_MAX_CPU_ISA": "", "DNNL_MAX_CPU_ISA": ""}


def suite(name: str, kind: str, steps: int, batch: int, size: int) -> Contestant:
    words = [sys.executable, "-m", "benchmarks.suite_step", kind, steps, "-b", batch]
    words += ["--image-shape", f"3,{size},{size}", "--num-examples", 10 * batch]
    return Contestant(f"{name}, batch {batch}", words, UNSET if kind == "stock" else {})


def torch(name: str, steps: int, batch: int, size: int, *more: str) -> Contestant:
    training = Config().training
    words = [environments.interpreter("torch"), PEER, "--batch-size", batch, "--steps", steps]
    words += ["--size", size, "--momentum", training.mom, "--weight-decay", training.wd]
    words += ["--label-smoothing", training.label_smoothing, *more]
    return Contestant(f"{name}, batch {batch}", words)


def contestants(args: argparse.Namespace) -> dict[tuple[str, int], Contestant]:
    """(name, batch size) -> a process that is not started yet. Raises Unavailable without PyTorch."""
    batch, few, size = args.batch, args.stock_batch, args.size
    found = {
        (SUITE, batch): suite(SUITE, "suite", args.steps, batch, size),
        (SETTINGS, batch): suite(SETTINGS, "settings", args.steps, batch, size),
        (CONTIGUOUS, batch): torch(CONTIGUOUS, args.steps, batch, size),
        (CHANNELS_LAST, batch): torch(CHANNELS_LAST, args.steps, batch, size, "--channels-last"),
    }
    if few:
        found.setdefault((SUITE, few), suite(SUITE, "suite", args.steps, few, size))
        found[STOCK, few] = suite(STOCK, "stock", 1, few, size)
    return found


def report(measured: dict[tuple[str, int], Contestant]) -> str:
    """A row for each; the suite's speed over it with the same batch, round by round."""
    lines = []
    for (name, batch), contestant in measured.items():
        rates, own = contestant.rates(), measured.get((SUITE, batch))
        times = ratio(own.rates(), rates) if own and own is not contestant else ""
        seconds = [second for r in contestant.rounds for second in r["step_seconds"]]
        lines.append([name, batch, spread(rates, ",.2f"), spread(seconds, ",.2f"), times])
    head = ["", "batch", "images/s: median (min to max)", "seconds of a step", "the suite over it"]
    return table(head, lines)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--stock-batch", type=int, default=2, help="0: leave stock MindSpore out")
    parser.add_argument("--steps", type=int, default=2, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=224, help="of the images, in pixels")
    parser.add_argument(
        "--limit", type=float, default=float("inf"), help="seconds after which no round begins"
    )
    return parser.parse_args(argv)


def main() -> None:
    args = parse()
    load = os.getloadavg()[0]
    try:
        found: dict[Any, Contestant] = contestants(args)
    except environments.Unavailable as error:
        sys.exit(f"PyTorch cannot be installed: {error}")
    for contestant in found.values():
        contestant.start()
    take_turns(list(found.values()), args.rounds, args.limit)
    for contestant in found.values():
        contestant.stop()
    versions = dict.fromkeys(contestant.versions for contestant in found.values())
    rounds = min(len(contestant.rounds) for contestant in found.values())
    print(f"ResNet-50, {args.size} px, float32, {rounds} rounds of {args.steps} steps;")
    print(f"{machine()}; {'; '.join(versions)}; load average before it {load:.1f}.\n")
    print(report(found))


if __name__ == "__main__":
    main()
