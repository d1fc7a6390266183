#!/usr/bin/env python3
"""Training through the suite beside its compiled step called in a bare loop, in images/s.

    python -m benchmarks.whole_epoch [--case 50:224:8:10 18:224:16:10 18:64:32:20] [--rounds 5] [--command]

A case is layers:pixels:batch:steps of an epoch. The images are photographs as records where there are any
($SUITE_DATA_DIR; of 64 pixels and less the small ones), else made up. In turn in every round, so that the
machine's drift hits all:
bare        step after step on batches in memory
memory      Model.train with the suite's callbacks over the same batches, an epoch's checkpoint included
epoch       the same from the records, from the pipeline's making to the epoch's last file
"steps" is that epoch without its checkpoint, which an epoch of hours does not notice, and "report" what the
report says of its steady steps. Processor time, of all threads, beside: other work on the machine matters
less to it. With --command, too, the clock of one who watches
`train.py` from outside: from the line of the first epoch in its log to that of the third, the bare loop
before and after it. Prints Markdown: medians over the rounds, and of the ratios to bare round by round.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from benchmarks import records
from benchmarks.measuring import ROOT, machine, table
from src import cli
from src.config import Config
from src.platform import environment
from src.platform.signals import Requests

CASES = ["50:224:8:10", "18:224:16:10", "18:64:32:20"]
EPOCHS_WATCHED = 2  # from outside, after the first
EPOCH_LINE = re.compile(r'"step": \[\d+\],')  # of the dllogger log
SMALL = 64  # pixels; images for it need not be photographs of 500
# Parts of an epoch that are not its steps, in the report's names.
PARTS = ("train.data_time", "train.other_time", "checkpoint_time")


class InMemory:
    """Stands in for TrainPipeline: the same ready batches in every epoch."""

    def __init__(self, batches: list, pipeline: Any) -> None:
        self.batches, self.pipeline = batches, pipeline

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pipeline, name)

    def epoch(self, epoch: int, first_step: int = 0) -> Any:
        import mindspore.dataset as ds

        return ds.GeneratorDataset(
            self.batches, ["image", "label"], shuffle=False, python_multiprocessing=False
        )


@dataclass
class Case:
    """A network at a size, its built run, and the images/s of each round."""

    words: list[str]
    batch: int
    steps: int
    fitting: Any
    batches: list
    config: Config
    rates: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)  # seconds of the processor
    parts: dict[str, list[float]] = field(default_factory=dict)  # seconds of an epoch

    def note(self, name: str, seconds: float, steps: int | None = None) -> None:
        self.rates.setdefault(name, []).append((steps or self.steps) * self.batch / seconds)

    def measure(self, name: str, loop: Callable[..., float], *arguments: Any) -> float:
        """Seconds of a loop."""
        begin = time.process_time()
        seconds = loop(self, *arguments)
        self.cpu.setdefault(name, []).append(time.process_time() - begin)
        self.note(name, seconds)
        return seconds


def prepared(name: str, data: list[str], workspace: Path) -> Case:
    """Built, compiled, and an epoch's batches in memory."""
    from src.data.splits import open_splits
    from src.platform.distributed import init
    from src.train.fit import build

    layers, size, batch, steps = (int(number) for number in name.split(":"))
    words = [*data, "--num-layers", layers, "--image-shape", f"3,{size},{size}", "-b", batch, "-e", 1]
    words += ["--benchmark-iters", steps, "--mode", "train", "--warmup-epochs", 0, "--lr", 0.01]
    words += ["--workspace", workspace, "--overwrite", "--device-target", "CPU"]
    words = [str(word) for word in words]
    config: Config = cli.parse(words, "benchmark")
    fitting = build(config, init("CPU"), open_splits(config, train=True, val=False), seed=0)
    fitting.step.set_train()
    batches = list(fitting.pipeline.epoch(0).create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert len(batches) == steps, f"{len(batches)} batches of {batch}: there are too few images for {steps}"
    case = Case(words, batch, steps, fitting, batches, config)
    bare(case, 2)  # compile and warm up
    return case


def bare(case: Case, steps: int | None = None) -> float:
    """Seconds for the batches, the tensors made as any loop must."""
    import mindspore as ms

    begin = time.perf_counter()
    for images, labels in case.batches[:steps]:
        loss = case.fitting.step(ms.Tensor(images), ms.Tensor(labels))
    loss.asnumpy()
    return time.perf_counter() - begin


def epoch(case: Case, pipeline: Any) -> float:
    """Seconds for one epoch through fit's loop, callbacks and files."""
    from src.platform.distributed import World
    from src.report.journal import Journal
    from src.report.report import Report
    from src.train.fit import fit

    workspace = case.config.output.workspace
    workspace.mkdir(exist_ok=True)
    report = Report(
        workspace / "report.json", model="", num_devices=1, cmd=[], config={}, environment={}, dataset={}
    )
    files = {"log": workspace / "log", "dllogger": workspace / "dllogger"}
    journal = Journal.open(**files, report=report, append=False)
    run = dataclasses.replace(case.fitting, pipeline=pipeline)
    with contextlib.redirect_stdout(sys.stderr):  # the console's lines; Markdown goes to standard output
        begin = time.perf_counter()
        fit(run, case.config, World(), journal, Requests())
        return time.perf_counter() - begin


def in_turn(case: Case, rounds: int, log: Callable[[str], None]) -> None:
    """Fills `rates` and `parts`."""
    memory, metrics = InMemory(case.batches, case.fitting.pipeline), case.fitting.record
    epoch(case, memory)
    for number in range(rounds):
        case.measure("bare", bare)
        case.measure("memory", epoch, memory)
        seconds = case.measure("epoch", epoch, case.fitting.pipeline)
        told = metrics.metrics
        case.note("steps", seconds - told["checkpoint_time"])
        case.rates.setdefault("report", []).append(told["train.total_ips"])
        for part in PARTS:
            case.parts.setdefault(part, []).append(told[part])
        case.parts.setdefault("epoch", []).append(seconds)
        waits = metrics.times.waits
        case.parts.setdefault("first batch", []).append(waits[0])
        log(f"round {number + 1}: " + ", ".join(f"{n} {r[-1]:.2f}" for n, r in case.rates.items()))


def from_outside(case: Case, rounds: int, log: Callable[[str], None]) -> None:
    """Fills `rates` with "command" and, in as many rounds, "bare beside it"."""
    words = [sys.executable, "train.py", *case.words, "-e", str(1 + EPOCHS_WATCHED)]
    lines = case.config.output.workspace / "dllogger_log.log"
    for number in range(rounds):
        before = bare(case)
        lines.unlink(missing_ok=True)
        with subprocess.Popen(
            words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            seen: list[float] = []
            while process.poll() is None:
                text = lines.read_text(encoding="utf-8") if lines.exists() else ""
                seen += [time.perf_counter()] * (len(EPOCH_LINE.findall(text)) - len(seen))
                time.sleep(0.01)
            if process.returncode or len(seen) != 1 + EPOCHS_WATCHED:
                told = process.stderr.read() if process.stderr else ""
                raise RuntimeError(f"train.py ended with {process.returncode}: {told[-500:]}")
        case.note("bare beside it", before + bare(case), 2 * case.steps)
        case.note("command", seen[-1] - seen[0], EPOCHS_WATCHED * case.steps)
        log(f"round {number + 1}: from outside {case.rates['command'][-1]:.2f}")


def rows(name: str, case: Case) -> list[list[object]]:
    layers, size, batch, steps = name.split(":")
    title, found = f"ResNet-{layers}, {size} px, batch {batch}, {steps} steps", []
    for loop, rates in case.rates.items():
        base = case.rates["bare beside it" if loop == "command" else "bare"]
        ratios = [a / b for a, b in zip(rates, base)]
        spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        speed = f"{statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})"
        ms = 1e3 * case.batch / statistics.median(rates)
        times = [b / a for a, b in zip(case.cpu.get(loop, []), case.cpu["bare"])]
        cpu = f"{statistics.median(times):.3f} ({min(times):.3f} to {max(times):.3f})" if times else ""
        found.append([title, loop, speed, f"{ms:.1f}", *(("1", "1") if loop == "bare" else (spread, cpu))])
    return found


def difference(name: str, case: Case) -> list[object]:
    """Where an epoch's time beside its steps went, medians in seconds."""
    parts = {part: statistics.median(seconds) for part, seconds in case.parts.items()}
    between = statistics.median(
        e - case.steps * case.batch / b for e, b in zip(case.parts["epoch"], case.rates["bare"])
    )
    return [name, *(f"{parts[p]:.3f}" for p in ("epoch", "first batch", *PARTS)), f"{between:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", default=CASES, metavar="LAYERS:PIXELS:BATCH:STEPS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--command", action="store_true", help="watch train.py from outside, too")
    args = parser.parse_args()
    for notice in environment.prepare("CPU"):
        print(notice, file=sys.stderr)

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    measured = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for text in args.case:
            _, size, batch, steps = (int(number) for number in text.split(":"))
            archive = records.archive(records.SMALL_IMAGES if size <= SMALL else records.PHOTOGRAPHS)
            data = ["--data-backend", "synthetic", "--num-classes", "1000", "--num-examples"]
            data.append(str(batch * steps))
            if archive is not None:
                folder = scratch / archive.stem
                data = ["--data-root", str(folder / "records")]
                if not folder.exists():
                    records.made_from(archive, folder)
            log(f"{text}: {archive.name if archive else 'made-up images'}")
            case = measured[text] = prepared(text, data, scratch / "run")
            in_turn(case, args.rounds, log)
            if args.command:
                from_outside(case, args.rounds, log)
    print(f"{machine()}; medians of {args.rounds} rounds (lowest to highest)\n")
    head = [
        "case",
        "loop",
        "images/s",
        "ms per step",
        "images/s over bare",
        "images per CPU second over bare",
    ]
    print(table(head, [row for text, case in measured.items() for row in rows(text, case)]))
    head = ["case", "epoch, s", "first batch", "waiting for data, steady", "between steps, steady"]
    head += ["checkpoint", "more than the bare steps"]
    print("\n" + table(head, [difference(text, case) for text, case in measured.items()]))


if __name__ == "__main__":
    main()
