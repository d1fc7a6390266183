#!/usr/bin/env python3
"""Evaluation and prediction of ResNet-50 on the CPU, float32, beside PyTorch: images/s and latencies.

    python -m benchmarks.inference [--batches 1,8,16,32,64] [--rounds 5] [--size 224]
        [--archive FILE.tar] [--images 256]

For each batch size every contestant is a process with a batch of noise in memory; in every round each
computes --round-images of them, a batch in a call, beginning with another one each time. Evaluation counts
right answers and losses; prediction gives probabilities, as PyTorch's network with a softmax does. Then whole
photographs, if there is an archive: the validation set scored from records, and files classified (one call,
with its compilation). Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Sequence

from benchmarks import environments
from benchmarks.conversion import lay_out
from benchmarks.measuring import ROOT, WRITER, machine, ratio, table
from benchmarks.rounds import Contestant, photographs, spread, take_turns

PEER = ROOT / "benchmarks" / "peers" / "torch_step.py"
EVALUATION, PREDICTION = "suite, evaluation", "suite, prediction"
CONTIGUOUS, CHANNELS_LAST = "PyTorch, contiguous", "PyTorch, channels last"
PERCENTILES = (50, 90, 95, 99)


def suite(name: str, kind: str, steps: int, batch: int, size: int, *more: object) -> Contestant:
    words = [sys.executable, "-m", "benchmarks.suite_inference", kind, steps, "-b", batch]
    return Contestant(f"{name}, batch {batch}", [*words, "--image-shape", f"3,{size},{size}", *more])


def torch(name: str, steps: int, batch: int, size: int, *more: str) -> Contestant:
    words = [environments.interpreter("torch"), PEER, "--batch-size", batch, "--steps", steps]
    return Contestant(f"{name}, batch {batch}", [*words, "--size", size, "--inference", *more])


def percentile(values: Sequence[float], percent: int) -> float:
    """Linear between neighbours, as NumPy's."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def contestants(batch: int, steps: int, size: int) -> dict[str, Contestant]:
    """By name, not started. Raises Unavailable without PyTorch."""
    return {
        EVALUATION: suite(EVALUATION, "evaluate", steps, batch, size),
        PREDICTION: suite(PREDICTION, "predict", steps, batch, size),
        CONTIGUOUS: torch(CONTIGUOUS, steps, batch, size),
        CHANNELS_LAST: torch(CHANNELS_LAST, steps, batch, size, "--channels-last"),
    }


def rows(batch: int, measured: dict[str, Contestant]) -> list[list[object]]:
    """A row for each contestant; the suite's prediction over it, round by round; latencies of all calls."""
    found: list[list[object]] = []
    own = measured[PREDICTION]
    for name, contestant in measured.items():
        times = [1e3 * second for r in contestant.rounds for second in r["step_seconds"]]
        over = "" if contestant is own else ratio(own.rates(), contestant.rates())
        shown = [f"{percentile(times, p):,.0f}" for p in PERCENTILES]
        found.append([batch, name, spread(contestant.rates(), ",.2f"), over, *shown, len(times)])
    return found


def run(contestants: Sequence[Contestant], rounds: int, limit_s: float) -> None:
    for contestant in contestants:
        contestant.start()
    take_turns(contestants, rounds, limit_s)
    for contestant in contestants:
        contestant.stop()


def whole(archive: Path, count: int, batch: int, size: int, rounds: int, limit_s: float) -> str:
    """Photographs in, answers out."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        lay_out(archive, scratch / "val", count)
        words = [sys.executable, WRITER, "--mindrecord_script", "imagenet", "--dir", scratch / "val"]
        words += ["--mindrecord_file", scratch / "records/val/val.mindrecord"]
        subprocess.run([str(w) for w in words], check=True, stdout=subprocess.DEVNULL)
        root = "--data-root"
        both = [
            suite("validation set, records", "score", count, batch, size, root, scratch / "records"),
            suite("files, one call", "classify", count, batch, size, root, scratch),
        ]
        run(both, rounds, limit_s)
    return table(
        ["photographs in, answers out", "images/s: median (min to max)"],
        [[contestant.name, spread(contestant.rates(), ",.2f")] for contestant in both],
    )


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", default="1,8,16,32,64")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-images", type=int, default=64, help="at least; always two calls")
    parser.add_argument("--size", type=int, default=224, help="of the images, in pixels")
    parser.add_argument(
        "--limit",
        type=float,
        default=float("inf"),
        help="seconds of a table's part after which no round begins",
    )
    parser.add_argument("--archive", type=Path, help="a tar of class folders ($SUITE_DATA_DIR)")
    parser.add_argument("--images", type=int, default=256, help="photographs of the whole way")
    args = parser.parse_args(argv)
    args.batches = [int(word) for word in args.batches.split(",")]
    if min(args.batches) < 1:
        parser.error(f"--batches {min(args.batches)}: a batch has at least one image")
    return args


def main() -> None:
    args = parse()
    load, found, versions = os.getloadavg()[0], [], {}
    try:
        environments.interpreter("torch")
    except environments.Unavailable as error:
        sys.exit(f"PyTorch cannot be installed: {error}")
    for batch in args.batches:
        measured = contestants(batch, max(2, args.round_images // batch), args.size)
        run(list(measured.values()), args.rounds, args.limit)
        versions |= dict.fromkeys(contestant.versions for contestant in measured.values())
        found += rows(batch, measured)
    print(f"ResNet-50, {args.size} px, float32, at most {args.rounds} rounds;")
    print(f"{machine()}; {'; '.join(versions)}; load average before it {load:.1f}.\n")
    head: list[Any] = ["batch", "", "images/s: median (min to max)", "the suite's prediction over it"]
    print(table([*head, *(f"P{p}, ms" for p in PERCENTILES), "calls"], found))
    archive = photographs(args.archive)
    if archive is None:
        print("\nNo photographs: name a tar with --archive, or its folder in SUITE_DATA_DIR.")
    else:
        print("\n" + whole(archive, args.images, max(args.batches), args.size, args.rounds, args.limit))


if __name__ == "__main__":
    main()
