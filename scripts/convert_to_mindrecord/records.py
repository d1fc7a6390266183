"""Looks after sets of records that writer.py has made.

    python records.py verify  DATA                     read everything again, name what is wrong (exit code 3)
    python records.py info    DATA                     what is in it
    python records.py extract DATA/train OUT --class tench --number 20
    python records.py reshard DATA/train DATA2/train --partitions 256
    python records.py merge   DATA/train SHARE0/train SHARE1/train ...

Exit codes: 0 done, 2 wrong options, 3 data unusable, 1 anything else, 130/143 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from extract import extract
from failure import DATA_UNUSABLE, ConvertError
from info import describe
from manifest import load_manifest, num_bytes
from merge import merge
from options import Parser, whole
from program import leave, run
from progress import Log
from reading import sets_below
from reshard import reshard
from verify import problems_of


def verify_sets(args: argparse.Namespace, log: Log) -> None:
    wrong = 0
    for folder in [folder for given in args.sets for folder in sets_below(given)]:
        start = time.monotonic()
        problems = problems_of(folder, args.workers, log)
        for problem in problems:
            print(f"{folder}: {problem}", file=sys.stderr)
        wrong += len(problems)
        if not problems:
            manifest = load_manifest(folder)
            seconds = time.monotonic() - start
            print(
                f"{folder}: {manifest['num_images']:,} images of {len(manifest['classes'])} classes in "
                f"{len(manifest['shards'])} shard(s) are as manifest.json says; "
                f"{num_bytes(manifest) / 1e6:,.1f} MB in {seconds:.1f} s"
            )
    if wrong:
        raise ConvertError(
            f"{wrong} thing(s) wrong, named above: restore them or convert the data anew", DATA_UNUSABLE
        )


def show_info(args: argparse.Namespace, log: Log) -> None:
    for folder in [folder for given in args.sets for folder in sets_below(given)]:
        print(describe(folder, args.all))


def extract_images(args: argparse.Namespace, log: Log) -> None:
    number = extract(Path(args.set), Path(args.out), args.rows, args.classes, args.number)
    print(f"{args.out}: {number} images and labels.csv")


def reshard_set(args: argparse.Namespace, log: Log) -> None:
    print(reshard(Path(args.set), Path(args.target), args.partitions, args.overwrite, args.workers, log))


def merge_shares(args: argparse.Namespace, log: Log) -> None:
    print(merge(Path(args.target), [Path(x) for x in args.shares], args.overwrite, args.workers, log))


class Commands:
    """The parser of the program, filled command by command."""

    def __init__(self) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        self.parser = Parser(prog="records.py", description=__doc__, formatter_class=formatter)
        self.commands = self.parser.add_subparsers(required=True, dest="command", metavar="COMMAND")

    def add(self, name: str, work: Any, text: str, aliases: tuple[str, ...] = ()) -> Any:
        """The function that adds an option to the new command."""
        one = self.commands.add_parser(name, aliases=aliases, help=text, description=text, allow_abbrev=False)
        one.set_defaults(work=work)
        return one.add_argument


def parser() -> argparse.ArgumentParser:
    commands = Commands()
    add = commands.add("verify", verify_sets, "read everything again and name what is wrong")
    add("sets", nargs="+", metavar="DATA", help="a set, or a folder of sets")
    add_workers(add)
    add = commands.add("info", show_info, "what is in it")
    add("sets", nargs="+", metavar="DATA", help="a set, or a folder of sets")
    add("--all", action="store_true", help="all classes and all files, however many")
    add = commands.add("extract", extract_images, "write some images and their labels out", ("head",))
    add("set", metavar="SET")
    add("out", metavar="OUT", help="folder to make: OUT/<class>/<file> and OUT/labels.csv")
    add("--number", type=count, default=10, metavar="N", help="how many (%(default)s)")
    add("--rows", metavar="0,5,100:110", help="these rows, counted from 0, instead of the first N")
    add("--class", dest="classes", action="append", default=[], metavar="C", help="folder, name or label")
    add = commands.add("reshard", reshard_set, "the same rows in the same order, in other shards")
    add("set", metavar="SET")
    add("target", metavar="TARGET", help="folder of the new set")
    add("--partitions", required=True, type=count, metavar="P", help="number of shards")
    add_overwrite(add)
    add_workers(add)
    add = commands.add("merge", merge_shares, "join the shares that several machines have written")
    add("target", metavar="TARGET", help="folder of the whole set")
    add("shares", nargs="+", metavar="SHARE", help="folders written with --nodes N --node-rank K")
    add_overwrite(add)
    add_workers(add)
    return commands.parser


def count(text: str) -> int:
    return whole(text, 1, 10**9)


def add_overwrite(add: Any) -> None:
    add("--overwrite", action="store_true", help="replace an existing set, once the new one is whole")


def add_workers(add: Any) -> None:
    add(
        "--workers",
        type=lambda text: whole(text, 1, 1024),
        default=os.cpu_count() or 1,
        metavar="W",
        help="processes (%(default)s)",
    )


def work(argv: list[str], log: Log) -> None:
    os.environ.setdefault("GLOG_v", "4")  # our own sentences say what MindSpore's warnings would
    args = parser().parse_args(argv)
    args.work(args, log)


if __name__ == "__main__":
    leave(run("records.py", work, sys.argv[1:]))
