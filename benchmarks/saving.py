#!/usr/bin/env python3
"""What saving a checkpoint costs the training, which waits for it; prints Markdown.

    python -m benchmarks.saving [--layers 50] [--rounds 7] [--folder DISK]

The state of a training run on one device (ResNet-50, 1000 classes), with SGD and with AdamW and a moving
average of the weights, is saved again and again by what an epoch's end calls: all parameters looked through
for what is no number, copied from the device, their checksum taken, written beside the last checkpoint,
flushed to the disk, read back and compared, renamed, and linked as the best. Its share is of an epoch of ten
minutes (ImageNet at 2,100 images/s) with one checkpoint.
Beside it, in turn: MindSpore's own save_checkpoint of the same parameters, which neither flushes nor
verifies, and a plain write and flush of as many bytes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

from benchmarks.measuring import machine, table
from src import cli
from src.config import Config
from src.platform import environment

EPOCH_S = 600.0
CASES = {"SGD": "--optimizer sgd", "AdamW, --ema": "--optimizer adamw --lr 0.001 --ema 0.9999"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--folder", type=Path, help="on the disk to write to (default: the temporary folder's)"
    )
    args = parser.parse_args()
    environment.prepare("CPU")
    rows = []
    for name, options in CASES.items():
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            works = prepare(f"{options} --num-layers {args.layers} --workspace {folder}", Path(folder))
            times = measure(works, args.rounds)
            size = (Path(folder) / "model_last.safetensors").stat().st_size
        share = statistics.median(times["suite"]) / EPOCH_S
        rows.append((name, f"{size / 1e6:.0f}", *map(spread, times.values()), f"{share:.2%}"))
    print(f"{machine()}; {vars(args)}; s, medians of {args.rounds} (min to max).\n")
    head = ("state", "MB", "suite", "MindSpore's save_checkpoint", "plain write and flush", "share of 10 min")
    print(table(head, rows))


def prepare(options: str, folder: Path) -> dict[str, Callable[[], None]]:
    """Per way of saving, what does it once."""
    import mindspore as ms

    from src.data.splits import open_splits
    from src.platform.distributed import init
    from src.train.callbacks import StopOnBrokenState
    from src.train.fit import build
    from src.train.saver import Saver
    from src.weights.keeping import CheckpointFiles

    common = "--data-backend synthetic --num-classes 1000 -b 2 --num-examples 2 -e 1 --warmup-epochs 0"
    config: Config = cli.parse(
        [*f"{common} --image-shape 3,32,32 --mode train".split(), *options.split()], "benchmark"
    )
    world = init("CPU")
    fitting = build(config, world, open_splits(config, train=True, val=False), seed=0)
    record = fitting.record
    record.restart(0)
    for _ in range(record.num_steps):  # as if they had been made: it is the epoch's end
        record.times.add(0.0, 0.0, 0.0)
    saver = Saver(fitting.step, record, world, CheckpointFiles(config), fitting.meta)
    check = StopOnBrokenState(record, fitting.step, world)
    block = np.zeros(sum(p.asnumpy().nbytes for p in fitting.step.get_parameters()), np.uint8)

    def suite() -> None:
        check.on_train_epoch_end(None)
        saver.save("best")

    def mindspore() -> None:
        ms.save_checkpoint(fitting.step, str(folder / "mindspore.ckpt"))

    def plain() -> None:
        with (folder / "plain").open("wb") as file:
            file.write(block.data)
            os.fsync(file.fileno())

    return {"suite": suite, "mindspore": mindspore, "plain": plain}


def measure(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each, in turn, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            os.sync()  # what the others left to be written is not this one's
            begin = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - begin)
    return times


def spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    main()
