"""The options of writer.py, and how all programs of this folder read theirs."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, NoReturn, Optional

from failure import WRONG_OPTIONS, ConvertError
from images import JPEG_QUALITY
from watch import IMAGE_TIMEOUT_S


class Parser(argparse.ArgumentParser):
    """One sentence instead of argparse's usage screen; `-` and `_` are the same in option names."""

    def error(self, message: str) -> NoReturn:
        raise ConvertError(f"{message}; see --help", WRONG_OPTIONS)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known = {name.replace("-", "_"): name for name in self._option_string_actions}
        spelled = []
        for word in sys.argv[1:] if args is None else args:
            name, equals, value = word.partition("=")
            spelled.append(known.get(name.replace("-", "_"), name) + equals + value)
        return super().parse_known_args(spelled, namespace)


def partitions(text: str) -> Optional[int]:
    return None if text == "auto" else whole(text, 1, 1000)


def whole(text: str, lowest: int, highest: int) -> int:
    if not text.isdecimal() or not lowest <= int(text) <= highest:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {lowest} to {highest}")
    return int(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--mindrecord_script", required=True, metavar="XYZ", help="plug-in: a folder that holds mr_api.py")
    add(
        "--mindrecord_file",
        required=True,
        metavar="FOLDER/NAME",
        help="base name of the shards, in their own folder",
    )
    add(
        "--mindrecord_partitions",
        "--partitions",
        type=partitions,
        metavar="P",
        help="number of shards (auto: one for 64 MB, 64 at most; many are a multiple of 8)",
    )
    add(
        "--mindrecord_workers",
        "--workers",
        type=lambda text: whole(text, 1, 1024),
        default=os.cpu_count() or 1,
        metavar="W",
        help="processes; each writes one shard at a time (%(default)s); changes nothing in the result",
    )
    add(
        "--mindrecord_seed",
        type=lambda text: whole(text, 0, 2**32 - 1),
        default=0,
        metavar="S",
        help="for plug-ins that shuffle (%(default)s); recorded in the manifest",
    )
    add("--overwrite", action="store_true", help="replace an existing set, once the new one is whole")
    add_node_options(parser.add_argument_group("several machines"))
    add_image_options(parser.add_argument_group("images"))


def add_node_options(group: Any) -> None:
    group.add_argument(
        "--nodes",
        type=lambda text: whole(text, 1, 1000),
        default=1,
        metavar="N",
        help="machines that share the work; each writes some shards, and `records.py merge` joins them",
    )
    group.add_argument(
        "--node_rank",
        type=lambda text: whole(text, 0, 999),
        default=0,
        metavar="K",
        help="which of them this is, from 0",
    )


def add_image_options(group: Any) -> None:
    add = group.add_argument
    add(
        "--on_bad_image",
        choices=("error", "skip"),
        default="error",
        help="error (default): name every bad image, publish nothing; skip: leave them out and list them",
    )
    add(
        "--check",
        choices=("full", "header", "none"),
        default="full",
        help="full (default): decode every image; header: only open it; none: pass all bytes through",
    )
    add(
        "--image_timeout",
        type=lambda text: whole(text, 1, 86400),
        default=IMAGE_TIMEOUT_S,
        metavar="S",
        help="seconds: an image that takes longer to decode is bad, and a disk that takes longer to read one "
        "ends the run (%(default)s)",
    )
    add(
        "--resize",
        type=lambda text: whole(text, 8, 65535),
        metavar="N",
        help="shrink images whose shorter side is longer than N (default: store the files as they are)",
    )
    add(
        "--quality",
        type=lambda text: whole(text, 1, 100),
        default=JPEG_QUALITY,
        metavar="Q",
        help="of JPEGs that are encoded anew (%(default)s)",
    )
    add(
        "--apply_exif_orientation",
        action="store_true",
        help="turn photographs upright (default: as the usual ImageNet training does, ignore it)",
    )


def check_options(args: argparse.Namespace) -> None:
    """What the options must not say together.  Raises ConvertError."""
    if args.node_rank >= args.nodes:
        raise ConvertError(
            f"--node-rank {args.node_rank} of --nodes {args.nodes}: it counts from 0 to {args.nodes - 1}",
            WRONG_OPTIONS,
        )
    changes = {"--resize": args.resize, "--apply-exif-orientation": args.apply_exif_orientation}
    given = [name for name, value in changes.items() if value]
    if args.check == "none" and given:
        raise ConvertError(
            f"{given[0]} must look into the images, and --check none does not: leave one of them out",
            WRONG_OPTIONS,
        )
