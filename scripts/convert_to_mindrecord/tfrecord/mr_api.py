"""TFRecord files of encoded images, read without TensorFlow.

    python writer.py --mindrecord_script tfrecord --mindrecord_file DST/train/train.mindrecord \\
        --tfrecord 'SRC/train-*-of-01024' --label_offset 1

Rows are shuffled across all files, by --mindrecord_seed: each record is a task, read where it is.  With
--tfrecord_order files they keep the order of the files: each of several files is a task; one file has N
tasks, and task K takes the records whose number % N is K.
"""

from __future__ import annotations

import argparse
import collections
import glob
import hashlib
import os
import sys
from typing import Iterable, Iterator, Optional

import numpy as np

from .classes import manifest_classes, scan
from .source import FEATURES, Source

mindrecord_schema = {"image": {"type": "bytes"}, "label": {"type": "int32"}, "file_name": {"type": "string"}}
mindrecord_index_fields = ["label"]

TASKS_OF_ONE_FILE = 16

FOUND = Source()
CLASSES: list[tuple[str, str]] = []
NUM_TASKS = 1
ORDER: Optional[np.ndarray] = None  # task -> number of its record, if they are shuffled


def mindrecord_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tfrecord", metavar="GLOB", required=True, help="the files, as a pattern in quotes")
    parser.add_argument(
        "--label_offset",
        type=int,
        metavar="N",
        help="subtracted from every label: 1 where they count from 1, as TensorFlow's ImageNet files do (0)",
    )
    parser.add_argument(
        "--classes_from",
        metavar="MANIFEST",
        help="classes and labels of another split's manifest.json (else from the records, by a first pass)",
    )
    parser.add_argument(
        "--tfrecord_order",
        choices=("shuffled", "files"),
        default="shuffled",
        help="of the rows: shuffled across all files (default), or as in the files: for a slow hard disk",
    )
    parser.add_argument(
        "--tfrecord_tasks",
        type=int,
        metavar="N",
        help="with --tfrecord_order files: into how many tasks a single file is split, at least the number "
        f"of shards ({TASKS_OF_ONE_FILE})",
    )
    for name, feature in FEATURES.items():
        parser.add_argument(f"--{name}_feature", default=feature, metavar="NAME", help="(%(default)s)")


def mindrecord_configure(args: argparse.Namespace) -> None:
    global FOUND, CLASSES, NUM_TASKS, ORDER
    found = sorted(path for path in glob.glob(args.tfrecord, recursive=True) if os.path.isfile(path))
    check_options(args, len(found))
    FOUND = Source(
        found, {name: getattr(args, f"{name}_feature") for name in FEATURES}, args.label_offset or 0
    )
    if args.classes_from:
        CLASSES = manifest_classes(args.classes_from)
        collections.deque(FOUND.read(skip=True), maxlen=0)
    else:
        num_bytes = sum(os.path.getsize(path) for path in found)
        note(f"reading the labels of {len(found):,} file(s), {num_bytes / 1e6:,.0f} MB")
        CLASSES = scan(FOUND, args.label_offset)
    if not len(FOUND.index):
        raise ValueError(f"--tfrecord {args.tfrecord}: there is no record in it")
    if args.tfrecord_order == "shuffled":
        ORDER = np.random.RandomState(args.mindrecord_seed).permutation(len(FOUND.index))  # 8 bytes a record
        NUM_TASKS = len(ORDER)
    else:
        ORDER, NUM_TASKS = None, len(found) if len(found) > 1 else args.tfrecord_tasks or TASKS_OF_ONE_FILE


def check_options(args: argparse.Namespace, num_files: int) -> None:
    if not num_files:
        raise ValueError(f"--tfrecord {args.tfrecord}: no file there (put the pattern in quotes)")
    if args.tfrecord_tasks is None:
        return
    if args.tfrecord_tasks < 1:
        raise argparse.ArgumentTypeError(f"--tfrecord_tasks {args.tfrecord_tasks}: at least 1 is needed")
    if args.tfrecord_order == "shuffled" or num_files > 1:
        raise argparse.ArgumentTypeError(
            f"--tfrecord_tasks {args.tfrecord_tasks} is for a single file with --tfrecord_order files: leave "
            "it out"
        )


def mindrecord_task_number() -> int:
    return NUM_TASKS


def numbers_of(task_id: int) -> Iterable[int]:
    """Of the records of a task."""
    if ORDER is not None:
        return [int(ORDER[task_id])]
    if len(FOUND.files) > 1:
        return FOUND.index.numbers_of(task_id)
    return range(task_id, len(FOUND.index), NUM_TASKS)


def mindrecord_dict_data(task_id: int) -> Iterator[dict]:
    for number in numbers_of(task_id):
        try:
            record = FOUND.index.read(number)
            if record.is_whole():
                yield FOUND.row(record)
                continue
            damage = OSError("the checksum of the record's data does not match")
        except OSError as error:
            damage = error
        # Told, or left out, with the other bad images.
        yield {"image": damage, "label": 0, "file_name": FOUND.index.place(number)}


def mindrecord_classes() -> list[tuple[str, str]]:
    return CLASSES


def mindrecord_sizes() -> tuple[int, int]:
    return sum(FOUND.index.lengths), max(FOUND.index.lengths)


def mindrecord_task_sizes() -> Iterable[int]:
    lengths = np.frombuffer(FOUND.index.lengths, np.int64)
    if ORDER is not None:
        return lengths[ORDER]
    return [int(lengths[list(numbers_of(task))].sum()) for task in range(NUM_TASKS)]


def mindrecord_fingerprint() -> str:
    """Changes with any file's name, size or time."""
    states = [
        (os.path.basename(path), os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in FOUND.files
    ]
    return hashlib.sha256(repr((states, CLASSES)).encode()).hexdigest()


def note(sentence: str) -> None:
    print(f"tfrecord: {sentence}", file=sys.stderr)
