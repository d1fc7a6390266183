"""The classes of a set of TFRecord files: from all of its records, or from another split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Optional

from .records import Record
from .source import Source

MOST_CLASSES = 1_000_000


def scan(source: Source, offset: Optional[int]) -> list[tuple[str, str]]:
    """(identifier, name) of each label, from a pass over all records.  Raises ValueError."""
    classes: dict[int, tuple[str, str]] = {}
    for record in source.read():
        try:
            found = source.found(record, "label", "id", "text")
            label = source.label_of(record, found)
            name = source.text(found, "text")
            identifier = source.text(found, "id") or name or str(label)
            if label in classes and classes[label][0] == identifier:
                continue
            if not 0 <= label < MOST_CLASSES or label in classes:
                raise ValueError(contradiction(source, record, label, identifier, classes))
        except ValueError:
            if record.is_whole():
                raise
            continue  # it will be told when it is converted
        if record.is_whole():
            classes[label] = (identifier, name or identifier)
    if not classes:
        raise ValueError(
            f"there is not one whole record in {source.files[0]}{' ...' * (len(source.files) > 1)}"
        )
    if min(classes) > 0 and offset is None:
        raise ValueError(
            f"labels run from {min(classes)} to {max(classes)}, and the suite's from 0: give --label_offset "
            f"{min(classes)}, or --label_offset 0 if the classes below have no images"
        )
    return [classes.get(label, (str(label), str(label))) for label in range(max(classes) + 1)]


def contradiction(source: Source, record: Record, label: int, identifier: str, classes: dict) -> str:
    if label in classes:
        return (
            f"{record.place}: label {label} is {identifier!r} here and {classes[label][0]!r} before: see "
            "--id_feature and --text_feature"
        )
    shift = f" (after --label_offset {source.offset})" if source.offset else ""
    return f"{record.place}: label {label}{shift} is outside 0..{MOST_CLASSES - 1}"


def manifest_classes(path: str) -> list[tuple[str, str]]:
    """The classes that another split was packed with.  Raises ValueError."""
    try:
        classes = json.loads(Path(path).read_text("utf-8"))["classes"]
        return [(item["wnid"], item["name"]) for item in sorted(classes, key=lambda item: item["index"])]
    except OSError as error:
        raise ValueError(f"--classes_from {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"--classes_from {path} is no manifest.json of this converter") from None
