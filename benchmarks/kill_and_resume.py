#!/usr/bin/env python3
"""Kills a short training run at random times, N times, and has it resumed: does it end as if nothing was?

    python -m benchmarks.kill_and_resume [--kills 200] [--seed 0] [--layers 18]

One run is left alone. Then the same command is started again and again in one workspace, --resume auto being
the default, and SIGKILL sent after a time drawn evenly from the length of the undisturbed run, so that every
phase has its share: import, compilation, steps, validation, and the writing of checkpoints, which is made
frequent (--save-every-steps, 1 to 4, drawn for each start). When a run has come to its end all the same, it
must equal the undisturbed one: every tensor of the last and the best checkpoint bit for bit, every figure of
report and dllogger lines but those of time, no epoch or step twice, none missing. Then a new one begins.
The last run is left to its end. Prints what was hit, and ends with 1 if anything differs or fails.

The process is train.py's, but for the network, unless --layers names one of the suite's: one residual block,
quick to compile, and a wide head, so that the checkpoints (22 MB) take a while to write.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT, machine, table
from src.platform.child import Child, Process
from src.platform.pulse import Phase
from src.report import dllog
from src.weights import checkpoint

POLL_S = 0.005
BATCHES, BATCH, EPOCHS, MOST_STEPS_BETWEEN = 20, 4, 3, 4
HIDDEN = 100_000  # units of the head of the small network
TIMED = ("ips", "latency", "time")  # what no two runs have alike
PHASES = {
    Phase.SILENT: "Python starts, and imports the suite",
    Phase.STARTING: "options, data, import of MindSpore",
    Phase.OPENING: "device",
    Phase.JOINED: "network built, checkpoint read and put back",
    Phase.COMPILING: "compilation, or the first step of an epoch",
    Phase.TRAINING: "steps",
    Phase.VALIDATING: "validation",
    Phase.SAVING: "checkpoint taken and written, until the next step",
    Phase.LEAVING: "the end",
}


@dataclass
class Found:
    """What happened in all runs."""

    phases: collections.Counter = field(default_factory=collections.Counter)
    torn: int = 0  # kills that left a file half written beside the one that it would have replaced
    starts: int = 0
    ended: int = 0  # runs that came to their end and were compared
    wrong: list[str] = field(default_factory=list)
    kills_of_this_run: int = 0
    kills_per_run: list[int] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(self.phases.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("kills", 200), ("seed", 0), ("layers", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--folder", type=Path, help="a new one for the runs, kept (default: a temporary one)")
    parser.add_argument("--as-run", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)  # this is the run
    args = parser.parse_args()
    if args.as_run:
        return run_small(args.as_run)
    if args.folder:
        args.folder.mkdir(parents=True)  # a new one: what another measurement left would be gone on with
        return measure(args, args.folder)
    with tempfile.TemporaryDirectory() as folder:
        return measure(args, Path(folder))


def measure(args: argparse.Namespace, folder: Path) -> int:
    begun = time.monotonic()
    whole, broken = folder / "whole", folder / "broken"
    length_s = undisturbed(args, whole)
    print(f"undisturbed: {length_s:.1f} s", file=sys.stderr, flush=True)
    draw, found = random.Random(args.seed), Found()
    while found.kills < args.kills:
        one_start(args, draw.uniform(0, length_s), draw.randint(1, MOST_STEPS_BETWEEN), whole, broken, found)
    while found.kills_of_this_run or not found.ended:
        one_start(args, float("inf"), MOST_STEPS_BETWEEN, whole, broken, found)
    hours = (time.monotonic() - begun) / 3600
    print(f"{machine()}; {vars(args)}; undisturbed {length_s:.1f} s, all {hours:.2f} h\n")
    print(told(found))
    return 1 if found.wrong else 0


def command(args: argparse.Namespace, workspace: Path, *words: object) -> Process:
    """A start of the run: augmentation, mixup, moving averages and an accumulation that steps are cut at."""
    options = (
        f"--data-backend synthetic --num-classes 10 --num-layers {args.layers or 18} -b {BATCH} -e {EPOCHS} "
        f"--image-shape 3,32,32 --num-examples {BATCHES * BATCH} --warmup-epochs 1 "
        "--mixup 0.2 --ema 0.9 --accumulation 2 --seed 5 --disp-batches 3 --data-threads 1"
    )
    program = [ROOT / "train.py"] if args.layers else ["-m", "benchmarks.kill_and_resume", "--as-run"]
    line = [sys.executable, *program, *options.split(), "--workspace", workspace, *words]
    return Process("run", list(map(str, line)), log=workspace.with_suffix(".txt"), cwd=ROOT)


def run_small(words: list[str]) -> int:
    """What train.py does, with a network that is small to compute and large to save."""
    from src import models, run

    def build(model: Any, num_classes: int) -> Any:
        from mindspore import nn

        from src.models.layers import ConvSpec, Norms
        from src.models.resnet import Residual

        block = Residual([ConvSpec(3, 8, 3, 2), ConvSpec(8, 8, 3)], Norms(eps=1e-5, momentum=0.9))
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(8, HIDDEN), nn.Dense(HIDDEN, num_classes)]
        return nn.SequentialCell(block, *head)

    models.build = build
    return run.main(words, "train.py")


def undisturbed(args: argparse.Namespace, workspace: Path) -> float:
    """Make the run that the others must equal; how long it took, s."""
    begin = time.monotonic()
    child = Child(command(args, workspace, "--save-every-steps", MOST_STEPS_BETWEEN))
    wait(child, float("inf"))
    if child.code:
        raise RuntimeError(f"the undisturbed run ended with {child.code}: {last_lines(child)}")
    return time.monotonic() - begin


def wait(child: Child, seconds: float) -> bool:
    """Whether the process ended by itself within that time; it is killed if it did not."""
    end = time.monotonic() + seconds
    while child.alive and time.monotonic() < end:
        time.sleep(POLL_S)
        child.poll()
    if child.alive:
        child.kill()
        return False
    return True


def one_start(
    args: argparse.Namespace, seconds: float, every: int, whole: Path, broken: Path, found: Found
) -> None:
    """Start or resume the run, and kill it after that time or compare it when it is done before."""
    child = Child(command(args, broken, "--save-every-steps", every))
    found.starts += 1
    if not wait(child, seconds):
        found.phases[child.sign.phase] += 1
        found.kills_of_this_run += 1
        found.torn += bool(list(broken.glob(".*.tmp")))
        note = f"killed after {seconds:.2f} s, {child.sign}"
    else:
        wrong = (
            [f"ended with {child.code}: {last_lines(child)}"] if child.code else differences(whole, broken)
        )
        note = f"ended after {found.kills_of_this_run} kills, {'; '.join(wrong) or 'as the undisturbed one'}"
        found.wrong += wrong
        found.ended += 1
        found.kills_per_run.append(found.kills_of_this_run)
        found.kills_of_this_run = 0
        if wrong:
            broken.rename(broken.with_name(f"wrong-{found.ended}"))
        else:
            shutil.rmtree(broken)
    print(f"start {found.starts}, kill {found.kills}: {note}", file=sys.stderr, flush=True)


def last_lines(child: Child) -> str:
    return " / ".join(child.tail(5))


def differences(whole: Path, broken: Path) -> list[str]:
    """In what a run is not as the undisturbed one."""
    wrong = [f"{path.name} was left" for path in broken.glob(".*.tmp")]
    for which in ("last", "best"):
        a, b = (checkpoint.read(place / f"model_{which}.safetensors") for place in (whole, broken))
        names = sorted({*a.tensors, *b.tensors})
        same = [n for n in names if n in a.tensors and n in b.tensors and equal(a.tensors[n], b.tensors[n])]
        wrong += [f"{which}: {name}" for name in names if name not in same]
        wrong += [f"{which}: {key}" for key in ("epochs_done", "best") if a.meta[key] != b.meta[key]]
    one, other = (json.loads((place / "report.json").read_text()) for place in (whole, broken))
    wrong += [
        f"report: {key}" for key in ("status", "epochs", "best", "num_samples") if one[key] != other[key]
    ]
    figures, others = untimed(one["metrics"]), untimed(other["metrics"])
    wrong += [f"report: {name}" for name in {*figures, *others} if figures.get(name) != others.get(name)]
    if lines(whole) != lines(broken):
        wrong.append("dllogger lines")
    return wrong


def equal(one: Any, other: Any) -> bool:
    return bool(one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes())


def untimed(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if not any(word in name for word in TIMED)}


def lines(workspace: Path) -> list[Any]:
    """Steps and figures of the dllogger lines, in their order."""
    return [
        (record["step"], untimed(record["data"]))
        for record in dllog.read_lines(workspace / "dllogger_log.log")
        if record["type"] == "LOG" and record["step"] != "PARAMETER"
    ]


def told(found: Found) -> str:
    rows = [(name, found.phases[phase]) for phase, name in PHASES.items()]
    result = f"{len(found.wrong)} differences" if found.wrong else "all equal to the undisturbed one"
    return "\n".join(
        [
            table(("killed in", "times"), [*rows, ("all", found.kills)]),
            "",
            f"{found.torn} of the kills left a file half written. {found.ended} runs came to their end in "
            f"{found.starts} starts, after {min(found.kills_per_run)} to {max(found.kills_per_run)} kills "
            f"each: {result}.",
            *found.wrong,
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
