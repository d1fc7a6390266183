#!/usr/bin/env python3
"""Memory of every process of a run, its peak and its growth from epoch to epoch.

    python -m benchmarks.memory [--kinds records generator ...] [--epochs 20] [--steps 12] [--batch 16]

Each kind is a run of ResNet-18, 32 px, watched from outside: ten times a second what is resident of
every process of the run, and of that what is its own and no file's (anonymous and shared: what a leak grows).
Of each epoch the largest. Growth is the slope of a straight line through the epochs after the first quarter,
with its standard error: "grows" stands where it is more than three of these and 0.1 MB an epoch. Small images
of ten classes ($SUITE_DATA_DIR), or made-up ones. Prints Markdown.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Sequence

import numpy as np

from benchmarks import records
from benchmarks.measuring import ROOT, machine, table

NETWORK = ["--num-layers", "18", "--image-shape", "3,32,32", "--lr", "0.01"]
NETWORK += ["--warmup-epochs", "0", "--device-target", "CPU"]
EPOCH_LINE = re.compile(r'"step": \[\d+\],')  # of the dllogger log
SAMPLE_S = 0.1
VAL_PER_CLASS = 4  # images: their number is not what could grow
GROWTH_MB = 0.1  # an epoch: 9 MB in the 90 of the published recipe
GENERATOR = '''
import os
import numpy as np


def open_split(split, folder):
    return Files(folder)


class Files:
    """Image files of class folders, decoded in Python."""

    def __init__(self, folder):
        self.classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        self.rows = [
            (os.path.join(folder, name, file), label)
            for label, name in enumerate(self.classes)
            for file in sorted(os.listdir(os.path.join(folder, name)))
        ]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        from PIL import Image

        path, label = self.rows[i]
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB")), label
'''
KINDS = {
    "records": ("train.py", "records", "--mode train"),
    "records, validated": ("train.py", "records", "--mode train_val"),
    "folders": ("train.py", "folders", "--mode train"),
    "folders, validated": ("train.py", "folders", "--mode train_val"),
    "generator": ("train.py", "generator", "--mode train"),
    "generator, validated": ("train.py", "generator", "--mode train_val"),
    "synthetic": ("train.py", "synthetic", "--mode train"),
    "records, validated, event files, moving average": (
        "train.py", "records", "--mode train_val --ema 0.99 --tensorboard --save-frequency 1 --keep 2",
    ),
    "records, validated, two ranks": ("runner", "records", "--mode train_val -n 2"),
}  # fmt: skip


@dataclass
class Watched:
    """A process: MB in each epoch, and at most."""

    role: str
    own: dict[int, float] = field(default_factory=dict)  # epoch -> largest, not of files
    resident: dict[int, float] = field(default_factory=dict)
    peak: float = 0.0


def sample(pid: int) -> dict[str, float]:
    """MB, of /proc/PID/status; empty for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (OSError, ProcessLookupError):
        return {}
    pairs = [line.split(":", 1) for line in lines if line.startswith(("VmHWM", "VmRSS", "Rss"))]
    return {name: int(value.split()[0]) / 1024 for name, value in pairs}


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    try:
        below = [
            int(child)
            for thread in Path(f"/proc/{pid}/task").iterdir()
            for child in (thread / "children").read_text().split()
        ]
    except (OSError, ProcessLookupError):
        return []
    return [pid, *(one for child in below for one in tree(child))]


def role(pid: int) -> str:
    """A process's part in the run, from its command line and variables."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        variables = dict(
            pair.split("=", 1)
            for pair in Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
            if "=" in pair
        )
    except (OSError, ProcessLookupError):
        return ""
    if "src.platform.scheduler" in words:
        return "scheduler"
    script = next((Path(word).name for word in words if word.endswith((".py", "runner"))), words[0])
    return f"rank {variables['RANK_ID']}" if script == "train.py" and "RANK_ID" in variables else script


def watch(words: Sequence[str], log: Path) -> list[Watched]:
    """Run a command to its end. Raises RuntimeError if it fails."""
    seen: dict[int, Watched] = {}
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None:
            epoch = len(EPOCH_LINE.findall(log.read_text(encoding="utf-8"))) if log.exists() else 0
            for pid in tree(process.pid):
                found = sample(pid)
                if "VmRSS" not in found:
                    continue
                one, own = seen.setdefault(pid, Watched("")), found["RssAnon"] + found["RssShmem"]
                if epoch == 0:  # a child is its parent's copy until it runs a program
                    one.role = role(pid) or one.role
                one.peak = max(one.peak, found["VmHWM"])
                one.own[epoch] = max(one.own.get(epoch, 0.0), own)
                one.resident[epoch] = max(one.resident.get(epoch, 0.0), found["VmRSS"])
            time.sleep(SAMPLE_S)
        if process.returncode:
            raise RuntimeError(f"{words[1]} ended with {process.returncode}: {process.stderr.read()[-500:]}")
    return [one for one in seen.values() if max(one.own) > 1]


def slope(by_epoch: dict[int, float], epochs: int) -> tuple[float, float]:
    """MB an epoch after the first quarter, and its standard error."""
    x = np.array([epoch for epoch in sorted(by_epoch) if epochs // 4 <= epoch < epochs], float)
    y = np.array([by_epoch[int(epoch)] for epoch in x])
    centred = x - x.mean()
    found = float(centred @ y / (centred @ centred))
    rest = y - y.mean() - found * centred
    return found, float(np.sqrt(rest @ rest / (len(x) - 2) / (centred @ centred)))


def options_of(source: str, scratch: Path, args: argparse.Namespace) -> list[str]:
    """Where a kind's images come from."""
    archive = records.archive(records.SMALL_IMAGES)
    if source == "synthetic" or archive is None:
        number = str(args.batch * args.steps)
        return ["--data-backend", "synthetic", "--num-classes", "10", "--num-examples", number]
    if not (scratch / "records").exists():
        records.made_from(archive, scratch, VAL_PER_CLASS)
    (images,) = (scratch / "images").iterdir()
    if source == "records":
        return ["--data-root", str(scratch / "records")]
    if source == "folders":
        return ["--data-backend", "imagefolder", "--data-root", str(images)]
    (scratch / "files.py").write_text(GENERATOR, encoding="utf-8")
    backend = ["--data-backend", "generator", "--data-source", str(scratch / "files.py")]
    return [*backend, "--data-root", str(images)]


def measured(kind: str, scratch: Path, args: argparse.Namespace) -> list[list[object]]:
    """A row for each process."""
    script, source, more = KINDS[kind]
    workspace = scratch / re.sub(r"\W+", "-", kind)
    words = [sys.executable, script, *NETWORK, *options_of(source, scratch, args), *more.split()]
    words += [
        "-b",
        str(args.batch),
        "-e",
        str(args.epochs),
        "--benchmark-iters",
        str(args.steps),
        "--workspace",
        str(workspace),
    ]
    found = []
    for one in watch(words, workspace / "dllogger_log.log"):
        mb, error = slope(one.own, args.epochs)
        verdict = "grows" if mb > max(GROWTH_MB, 3 * error) else "no growth"
        first, last = args.epochs // 4, args.epochs - 1
        print(kind, one.role, [round(one.own[e]) for e in sorted(one.own)], file=sys.stderr, flush=True)
        row = [kind, one.role, f"{one.peak:.0f}", f"{one.own[first]:.0f}", f"{one.own[last]:.0f}"]
        found.append([*row, f"{mb:+.2f} ± {error:.2f}", verdict])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=12, help="in an epoch")
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = [row for kind in args.kinds for row in measured(kind, Path(name), args)]
    print(f"{machine()}; {args.epochs} epochs of {args.steps} steps, batch {args.batch}; MB\n")
    head = ["run", "process", "peak resident", f"own in epoch {args.epochs // 4 + 1}", "own in the last"]
    print(table([*head, "growth an epoch", ""], rows))


if __name__ == "__main__":
    main()
