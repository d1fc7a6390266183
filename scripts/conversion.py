"""What the preparations of data share: their options, and a run of the converter for each split."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from convert_to_mindrecord.failure import DATA_UNUSABLE, WRONG_OPTIONS

WRITER = Path(__file__).resolve().parent / "convert_to_mindrecord" / "writer.py"
VENV = WRITER.parents[2] / ".venv"


class PrepareError(Exception):
    """One sentence and an exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


@dataclass
class Split:
    """`train` or `val`: where its images are, and what else the imagenet plug-in is to know of them."""

    name: str
    images: Path
    options: list[str] = field(default_factory=list)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those that are the same for every source."""
    add = parser.add_argument
    add("--only", choices=("train", "val"), help="convert one of both alone")
    add("--workers", metavar="W", help="processes (default: all processors); changes nothing in the result")
    add("--partitions", metavar="P", help="shards of each split (default: by size)")
    add("--seed", metavar="S", help="of the order of the rows, and of what is held out (default: 0)")
    add("--overwrite", action="store_true", help="replace existing sets, each once the new one is whole")
    add(
        "--on-bad-image",
        "--on_bad_image",
        choices=("error", "skip"),
        default="error",
        help="default: %(default)s",
    )


def check_targets(target: Path, splits: list[Split], overwrite: bool) -> None:
    """All of them, before the work on the first."""
    for split in splits:
        folder = target / split.name
        if not overwrite and folder.exists() and (not folder.is_dir() or os.listdir(folder)):
            rest = [other.name for other in splits if not (target / other.name).exists()]
            hint = f", or --only {rest[0]} to make what is missing" if rest else ""
            raise PrepareError(f"{folder} exists already: add --overwrite to replace it{hint}", WRONG_OPTIONS)
        if Path(os.path.realpath(split.images)) in (real := Path(os.path.realpath(folder))).parents:
            raise PrepareError(
                f"{real} is inside {split.images}, whose folders are classes: name another place",
                WRONG_OPTIONS,
            )


def interpreter() -> str:
    """This Python if it has what writer.py needs, else that of the suite's environment, if there is one."""
    own = VENV / "bin" / "python"
    fits = all(importlib.util.find_spec(package) for package in ("numpy", "PIL"))
    return sys.executable if fits or not own.exists() else str(own)


def writer_command(args: argparse.Namespace, split: Split, classes: list[str]) -> list[str]:
    """`classes`: the option that says what the classes are."""
    target = Path(args.target)
    command = [interpreter(), str(WRITER), "--mindrecord_script=imagenet"]
    command += [f"--mindrecord_file={target / split.name / split.name}.mindrecord", f"--dir={split.images}"]
    command += [*classes, *split.options]
    given = {"workers": args.workers, "partitions": args.partitions, "seed": args.seed}
    command += [f"--mindrecord_{name}={value}" for name, value in given.items() if value is not None]
    command.append(f"--on_bad_image={args.on_bad_image}")
    return command + ["--overwrite"] * args.overwrite + args.further


def classes_of_train(args: argparse.Namespace) -> str:
    """What gives val the classes of train, once that is converted."""
    return f"--classes_from={Path(args.target) / 'train' / 'manifest.json'}"


def run(command: list[str]) -> int:
    """The command's exit code; signals are passed on, so that it can clean up."""
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda number, frame: child.send_signal(number))
    signal.signal(signal.SIGINT, lambda number, frame: None)  # the terminal sends it to the child as well
    code = child.wait()
    return code if code >= 0 else 128 - code


def exit_code_of(work: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Do it, with one sentence for whatever ends it."""
    try:
        return work(args)
    except (PrepareError, ValueError, OSError) as error:
        say(str(error).removeprefix("--dir "))
        return getattr(error, "exit_code", DATA_UNUSABLE)
    except KeyboardInterrupt:
        say("interrupted; nothing was published")
        return 130


def say(sentence: str) -> None:
    print(f"{Path(sys.argv[0]).name}: {sentence}", file=sys.stderr, flush=True)
