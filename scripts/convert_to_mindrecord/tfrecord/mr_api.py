"""TFRecord files of encoded images, read without TensorFlow.

    python writer.py --mindrecord_script tfrecord --mindrecord_file DST/train/train.mindrecord \\
        --tfrecord 'SRC/train-*-of-01024' --label_offset 1

Several files: each is a task.  One file: N tasks, and task K takes the records whose number % N is K.
Rows keep the order that the files have; this suite's trainer draws an order of its own in every epoch.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, Optional

from .example import NoExample, parse
from .records import Record, read_records

mindrecord_schema = {"image": {"type": "bytes"}, "label": {"type": "int32"}, "file_name": {"type": "string"}}
mindrecord_index_fields = ["label"]

FEATURES = {
    "image": "image/encoded",
    "label": "image/class/label",
    "id": "image/class/synset",
    "text": "image/class/text",
    "file": "image/filename",
}
MOST_CLASSES = 1_000_000
LARGEST_EXPECTED = 16 << 20  # bytes; a larger image only makes the writer start again with larger pages


@dataclass
class Records:
    """The files, how to read them, and the classes found."""

    files: list[str] = field(default_factory=list)
    features: dict[str, str] = field(default_factory=lambda: dict(FEATURES))
    offset: int = 0
    num_tasks: int = 1
    classes: list[tuple[str, str]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # bytes of each file


FOUND = Records()


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
        "--tfrecord_tasks",
        type=int,
        default=16,
        metavar="N",
        help="into how many tasks a single file is split, at least the number of shards (%(default)s)",
    )
    for name, feature in FEATURES.items():
        parser.add_argument(f"--{name}_feature", default=feature, metavar="NAME", help="(%(default)s)")


def mindrecord_configure(args: argparse.Namespace) -> None:
    if args.tfrecord_tasks < 1:
        raise argparse.ArgumentTypeError(f"--tfrecord_tasks {args.tfrecord_tasks}: at least 1 is needed")
    found = sorted(path for path in glob.glob(args.tfrecord, recursive=True) if os.path.isfile(path))
    if not found:
        raise ValueError(f"--tfrecord {args.tfrecord}: no file there (put the pattern in quotes)")
    FOUND.files = found
    FOUND.features = {name: getattr(args, f"{name}_feature") for name in FEATURES}
    FOUND.offset = args.label_offset or 0
    FOUND.sizes = [os.path.getsize(path) for path in found]
    if args.classes_from:
        FOUND.classes = manifest_classes(args.classes_from)
    else:
        FOUND.classes = scan(args.label_offset)
    FOUND.num_tasks = len(found) if len(found) > 1 else args.tfrecord_tasks


def mindrecord_task_number() -> int:
    return FOUND.num_tasks


def mindrecord_dict_data(task_id: int) -> Iterator[dict]:
    if len(FOUND.files) > 1:
        records = read_records(FOUND.files[task_id])
    else:
        records = read_records(FOUND.files[0], every=FOUND.num_tasks, first=task_id)
    for record in records:
        if record.is_whole():
            yield row(record)
        else:  # told, or left out, with the other bad images
            damage: object = OSError("the checksum of the record's data does not match")
            yield {"image": damage, "label": 0, "file_name": record.place}


def mindrecord_classes() -> list[tuple[str, str]]:
    return FOUND.classes


def mindrecord_sizes() -> tuple[int, int]:
    return sum(FOUND.sizes), min(max(FOUND.sizes), LARGEST_EXPECTED)


def mindrecord_task_sizes() -> list[int]:
    if len(FOUND.files) > 1:
        return FOUND.sizes
    return [FOUND.sizes[0] // FOUND.num_tasks] * FOUND.num_tasks


def mindrecord_fingerprint() -> str:
    """Changes with any file's name, size or time."""
    states = [
        (os.path.basename(path), os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in FOUND.files
    ]
    return hashlib.sha256(repr((states, FOUND.classes)).encode()).hexdigest()


def row(record: Record) -> dict:
    """Raises ValueError for a record that is whole but not what was expected."""
    names = FOUND.features
    found = features(record, {names["image"], names["label"], names["file"]})
    name = text(found, "file") or f"{os.path.basename(record.path)}:{record.number}"
    return {
        "image": single(record, found, "image", bytes),
        "label": label_of(record, found),
        "file_name": name,
    }


def scan(offset: Optional[int]) -> list[tuple[str, str]]:
    """(identifier, name) of each label, from a pass over all records.  Raises ValueError."""
    note(f"reading the labels of {len(FOUND.files):,} file(s), {sum(FOUND.sizes) / 1e6:,.0f} MB")
    wanted = {FOUND.features[name] for name in ("label", "id", "text")}
    classes: dict[int, tuple[str, str]] = {}
    for record in (record for path in FOUND.files for record in read_records(path)):
        try:
            found = features(record, wanted)
            label = label_of(record, found)
            name = text(found, "text")
            identifier = text(found, "id") or name or str(label)
            if label in classes and classes[label][0] == identifier:
                continue
            if not 0 <= label < MOST_CLASSES or label in classes:
                raise ValueError(contradiction(record, label, identifier, classes))
        except ValueError:
            if record.is_whole():
                raise
            continue  # it will be told when it is converted
        if record.is_whole():
            classes[label] = (identifier, name or identifier)
    if not classes:
        raise ValueError(
            f"there is not one whole record in {FOUND.files[0]}{' ...' * (len(FOUND.files) > 1)}"
        )
    if min(classes) > 0 and offset is None:
        raise ValueError(
            f"labels run from {min(classes)} to {max(classes)}, and the suite's from 0: give --label_offset "
            f"{min(classes)}, or --label_offset 0 if the classes below have no images"
        )
    return [classes.get(label, (str(label), str(label))) for label in range(max(classes) + 1)]


def contradiction(record: Record, label: int, identifier: str, classes: dict) -> str:
    if label in classes:
        return (
            f"{record.place}: label {label} is {identifier!r} here and {classes[label][0]!r} before: see "
            "--id_feature and --text_feature"
        )
    shift = f" (after --label_offset {FOUND.offset})" if FOUND.offset else ""
    return f"{record.place}: label {label}{shift} is outside 0..{MOST_CLASSES - 1}"


def features(record: Record, wanted: set[str]) -> dict:
    try:
        return parse(record.data, wanted)
    except NoExample as error:
        raise ValueError(f"{record.place} {error}") from None


def label_of(record: Record, found: dict) -> int:
    return single(record, found, "label", int) - FOUND.offset


def single(record: Record, found: dict, which: str, kind: type):
    """The one value of a feature."""
    name = FOUND.features[which]
    if name not in found:
        raise ValueError(
            f"{record.place} has no feature {name!r}: name it with --{which}_feature "
            f"(there are {', '.join(sorted(found))})"
        )
    value = found[name]
    if isinstance(value, str) or len(value) != 1 or not isinstance(value[0], kind):
        what = "one whole number" if kind is int else "one string of bytes"
        raise ValueError(f"{record.place}: the feature {name!r} is not {what}: see --{which}_feature")
    return value[0]


def text(found: dict, which: str) -> str:
    """The text of a feature, or "" where there is none."""
    value = found.get(FOUND.features[which])
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], bytes):
        return ""
    return value[0].decode("utf-8", "backslashreplace")


def manifest_classes(path: str) -> list[tuple[str, str]]:
    """The classes that another split was packed with.  Raises ValueError."""
    try:
        classes = json.loads(Path(path).read_text("utf-8"))["classes"]
        return [(item["wnid"], item["name"]) for item in sorted(classes, key=lambda item: item["index"])]
    except OSError as error:
        raise ValueError(f"--classes_from {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"--classes_from {path} is no manifest.json of this converter") from None


def note(sentence: str) -> None:
    print(f"tfrecord: {sentence}", file=sys.stderr)
