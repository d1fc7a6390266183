#!/usr/bin/env python3
"""From the command to the first step, in seconds, and what takes them.

    python -m benchmarks.start_time [--rounds 5] [--variant NAME=OPTIONS ...] [-- OPTIONS of train.py]

Starts `train.py` with the options as often, with marks set at what it calls, and prints Markdown: medians
(lowest to highest), and the processor's seconds, of all threads, to which other work matters less. The files
have been read once before. A variant is a column of its own, with options beside the common ones, in turn
with the others in every round; FOLDER in them is one that all rounds share.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

OPTIONS = ["--data-backend", "synthetic", "--num-classes", "1000", "--num-examples", "24", "-b", "8"]
OPTIONS += ["-e", "1", "--mode", "train", "--save-frequency", "0"]
# Each mark ends a part; in the order of the run.
PARTS = [
    "Python", "the suite's modules without MindSpore", "options", "data set opened and workspace checked",
    "MindSpore imported", "its datasets, the suite's training modules, log and report", "network",
    "optimizer, schedule, first weights, checks", "pipeline and first batch",
    "graph compiled", "first step run", "further steps, end of the epoch, report", "leaving",
]  # fmt: skip


class Marks:
    """When each part ended, on the clock that all processes share, and what the processor had done."""

    def __init__(self) -> None:
        self.times: dict[str, tuple[float, float]] = {}

    def set(self, part: str) -> None:
        self.times.setdefault(part, (time.monotonic(), time.process_time()))

    def after(self, home: Any, name: str, part: str, only: Callable[..., bool] = lambda *_: True) -> None:
        """Set a mark when home.name returns for the first time (with arguments that `only` accepts)."""
        wrapped = getattr(home, name)

        @functools.wraps(wrapped)
        def marked(*arguments: Any, **named: Any) -> Any:
            result = wrapped(*arguments, **named)
            if only(*arguments):
                self.set(part)
            return result

        setattr(home, name, marked)

    def before(self, home: Any, name: str, part: str) -> None:
        wrapped = getattr(home, name)

        @functools.wraps(wrapped)
        def marked(*arguments: Any, **named: Any) -> Any:
            self.set(part)
            return wrapped(*arguments, **named)

        setattr(home, name, marked)


def child(target: Path, argv: list[str]) -> int:
    """train.py, with marks."""
    marks = Marks()
    marks.set(PARTS[0])
    from src import run

    marks.set(PARTS[1])
    marks.after(run.cli, "parse", PARTS[2])
    marks.after(run.preflight, "prepare", PARTS[3])
    init = run.distributed.init

    def then_the_rest(device: str) -> Any:
        import mindspore  # noqa: F401 - init imports it; here only to know when it is there

        marks.set(PARTS[4])
        world = init(device)
        from src.train import callbacks, command
        from src.train.step import TrainStep

        marks.before(command, "build", PARTS[5])
        from mindspore.graph import api

        from src.train import fit as fitting

        marks.after(fitting.models, "build", PARTS[6])
        marks.before(command, "fit", PARTS[7])
        marks.before(callbacks.StepClock, "on_train_step_begin", PARTS[8])
        executor = api._CellGraphExecutor
        marks.after(executor, "compile", PARTS[9], only=lambda _, cell, *__: isinstance(cell, TrainStep))
        marks.after(callbacks.StepClock, "on_train_step_end", PARTS[10])
        return world

    run.distributed.init = then_the_rest
    code = run.main(argv, prog="train.py")
    marks.set(PARTS[11])
    target.write_text(json.dumps(marks.times), encoding="utf-8")
    return code


def started(options: list[str], scratch: Path) -> dict[str, tuple[float, float]]:
    """Seconds of each part of one start, and to the first step; the same of the processor."""
    target = scratch / "marks.json"
    target.unlink(missing_ok=True)
    words = [sys.executable, "-m", "benchmarks.start_time", "--child", str(target), "--", *options]
    words += ["--workspace", str(scratch / "run"), "--overwrite"]
    begin = time.monotonic()
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic()
    if done.returncode:
        raise RuntimeError(f"train.py ended with {done.returncode}: {done.stderr[-500:]}")
    times = json.loads(target.read_text(encoding="utf-8"))
    times[PARTS[12]] = (end, times[PARTS[11]][1])
    found, last = {}, (begin, 0.0)
    for part in PARTS:
        found[part] = (times[part][0] - last[0], times[part][1] - last[1])
        last = times[part]
    found["to the end of the first step"] = (times[PARTS[10]][0] - begin, times[PARTS[10]][1])
    found["the whole command"] = (end - begin, times[PARTS[11]][1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=OPTIONS")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.options)
    from benchmarks.measuring import machine, table

    options = args.options or OPTIONS
    found: dict[str, list[dict[str, tuple[float, float]]]] = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        variants = dict(text.split("=", 1) for text in args.variant) or {"": ""}
        for number in range(args.rounds + 1):
            for variant, more in variants.items():
                words = [word.replace("FOLDER", name) for word in shlex.split(more)]
                parts = started([*options, *words], scratch)
                print(number, variant, f"{parts['to the end of the first step'][0]:.2f} s", file=sys.stderr)
                if number:  # the first reads files
                    found.setdefault(variant, []).append(parts)

    def shown(part: str, rounds: list[dict[str, tuple[float, float]]]) -> str:
        values, cpu = zip(*(one[part] for one in rounds))
        spread = f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
        return f"{spread}, CPU {statistics.median(cpu):.2f}"

    print(f"{machine()}; load before it {os.getloadavg()[0]:.1f}; medians of {args.rounds} starts, s")
    print(f"\n`train.py {' '.join(options)}`\n")
    rows = [
        [part, *(shown(part, rounds) for rounds in found.values())] for part in next(iter(found.values()))[0]
    ]
    print(table(["part", *found], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
