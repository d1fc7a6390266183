"""What a preparation finds and would do, told without writing anything."""

from __future__ import annotations

import argparse
import shlex
import shutil
from pathlib import Path
from typing import Optional

from conversion import WRONG_OPTIONS, PrepareError, Split
from convert_to_mindrecord.imagenet import mr_api as plugin
from convert_to_mindrecord.imagenet.find import Found, find_images


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run",
        "--dry_run",
        action="store_true",
        help="say what is there and what would be written; write nothing",
    )


def plugin_arguments(options: list[str], seed: Optional[str] = None) -> argparse.Namespace:
    """The plug-in's options among these; the others are the writer's."""
    if seed is not None and not seed.isdecimal():
        raise PrepareError(f"--seed {seed}: a whole number is needed", WRONG_OPTIONS)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    plugin.mindrecord_options(parser)
    args = parser.parse_known_args([with_underscores(word) for word in options])[0]
    args.mindrecord_seed = int(seed or 0)
    return args


def with_underscores(word: str) -> str:
    """As the plug-in spells its options; the writer takes `-` and `_` for the same."""
    name, equals, value = word.partition("=")
    return f"--{name[2:].replace('-', '_')}{equals}{value}" if name.startswith("--") else word


def look(split: Split, options: list[str], seed: Optional[str] = None) -> Found:
    """Counts what the plug-in finds, without converting it."""
    arguments = plugin_arguments([f"--dir={split.images}", *options], seed)
    found = find_images(arguments, lambda sentence: tell(f"  {sentence}"))
    num_classes, num_bytes = len(found.classes) - found.empty.count, sum(found.index.sizes)
    tell(f"  {split.name}: {len(found.index):,} images of {num_classes:,} classes, {size(num_bytes)}")
    return found


def tell_plan(target: Path, splits: list[Split], num_bytes: int, commands: list[list[str]]) -> int:
    """What the same command without --dry-run would do."""
    there = next(path for path in (target.absolute(), *target.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    tell(f"Dry run, nothing was written.  It would be about {size(num_bytes)}, with {size(free)} free:")
    for split in splits:
        tell(f"  {target / split.name / split.name}.mindrecord*, {target / split.name / 'manifest.json'}")
    tell("by these commands, one after the other:")
    for command in commands:
        tell(f"  {shlex.join(command)}")
    return 0


def size(num_bytes: int) -> str:
    unit, name = next((one for one in ((1e9, "GB"), (1e6, "MB")) if num_bytes >= one[0]), (1e3, "kB"))
    return f"{num_bytes / unit:,.1f} {name}"


def tell(line: str) -> None:
    print(line, flush=True)
