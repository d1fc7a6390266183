"""The class of each image of a flat validation set: from the suite's own list, or from one of the user's."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from .class_map import read_lines, read_map
from .devkit import read_devkit

DATA = Path(__file__).resolve().parent / "data"
BUNDLED = "ilsvrc2012"  # in place of a file's name: the list that comes with the suite
CLASSES_FILE, LABELS_FILE = DATA / "ilsvrc2012_classes.txt", DATA / "ilsvrc2012_val_labels.txt"
BUNDLED_NAME = re.compile(r"ILSVRC2012_val_\d{8}")
NUMBERED = re.compile(r"ILSVRC\d{4}_val_(\d{8})")
KAGGLE_HEADER = "ImageId"


@dataclass
class GroundTruth:
    """Classes by line (image 1 is on line 1) or, where the list names the images, by name without suffix."""

    path: str
    by_line: list[str] = field(default_factory=list)
    by_name: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.by_line) or len(self.by_name)


def bundled_classes() -> list[tuple[str, str]]:
    """(wnid, name) of the 1,000 classes of ILSVRC 2012, by label."""
    return read_map(str(CLASSES_FILE))


def bundled_truth() -> GroundTruth:
    wnids = [wnid for wnid, _ in bundled_classes()]
    labels = LABELS_FILE.read_text("ascii").split()
    return GroundTruth(BUNDLED, by_line=[wnids[int(label)] for label in labels])


def read_truth(source: str, devkit: Optional[str], known: set[str], subset: bool = False) -> GroundTruth:
    """`source`: "ilsvrc2012" or a file of one of these forms, told apart by its first line.

    * a class folder's name (wnid) on each line; or the devkit's number of it, with the devkit's table;
    * an image's name and its class, separated by spaces, a tab or a comma;
    * Kaggle's LOC_val_solution.csv.

    A byte order mark, CRLF and blank lines at the end are accepted; classes that are not `known` only in a
    subset.  Raises ValueError with the number of the line.
    """
    if source == BUNDLED:
        return bundled_truth()
    lines = [line.strip() for line in read_lines(source, "ground-truth list")]
    while lines and not lines[-1]:
        lines.pop()
    table = read_devkit(devkit) if devkit else None
    truth = GroundTruth(source)
    start = 1 if lines and lines[0].startswith(KAGGLE_HEADER) else 0
    num_columns = 0
    for number, line in enumerate(lines[start:], start=start + 1):
        where = f"{source}, line {number}"
        words = re.split(r"\s*,\s*|\s+", line)[: 2 if start else None]
        num_columns = num_columns or len(words)
        if not line or len(words) != num_columns or num_columns > 2:
            shown = repr(line[:60]) if line else "a blank line, which would shift all labels after it,"
            raise ValueError(
                f"{where}: {shown} is neither a class nor an image and its class, like line {start + 1}"
            )
        wnid = class_of(words[-1], where, table, known, subset)
        if num_columns == 1:
            truth.by_line.append(wnid)
        elif truth.by_name.setdefault(stem(words[0]), wnid) != wnid:
            raise ValueError(f"{where}: {words[0]} has another class on an earlier line")
    if not len(truth):
        raise ValueError(f"{source} holds no class: expected one on each line")
    return truth


def class_of(word: str, where: str, table: Optional[dict[int, str]], known: set[str], subset: bool) -> str:
    if table is not None:
        if not word.isdecimal() or int(word) not in table:
            zero = " (the devkit counts from 1)" if word == "0" else ""
            raise ValueError(f"{where}: {word!r} is not in the devkit's table{zero}")
        word = table[int(word)]
    if word in known:
        return word
    if word.isdecimal():
        raise ValueError(
            f"{where}: {word!r} is a number: if the list is the devkit's, give its table as well "
            "(--devkit .../data/meta.mat), because its numbers do not follow the order of the classes"
        )
    if subset:
        return word
    raise ValueError(f"{where}: {word!r} is not one of the {len(known):,} classes")


def stem(name: str) -> str:
    return os.path.splitext(os.path.basename(name))[0]


def assign(names: list[str], truth: GroundTruth, subset: bool = False) -> list[str]:
    """The class of each image.  `subset`: fewer images than the list knows are accepted.

    Raises ValueError if counts or names do not fit: labels are never shifted.
    """
    stems = [stem(name) for name in names]
    if len(set(stems)) != len(stems):
        twice = next(one for one in sorted(stems) if stems.count(one) > 1)
        raise ValueError(f"there is more than one image {twice}")
    if truth.path == BUNDLED:
        foreign = [name for name, one in zip(names, stems) if not BUNDLED_NAME.fullmatch(one)]
        if foreign:
            raise ValueError(
                f"{foreign[0]!r} is not named as the validation images of ILSVRC 2012 are "
                "(ILSVRC2012_val_00000001.JPEG): give a list of your own, --val-labels FILE"
            )
    if truth.by_name:
        places: list = stems
        by_place: dict = truth.by_name
    else:
        numbers = [NUMBERED.fullmatch(one) for one in stems]
        by_place = dict(enumerate(truth.by_line, start=1))
        if all(numbers):
            places = [int(match.group(1)) for match in numbers if match]
        else:
            order = sorted(range(len(names)), key=lambda index: os.fsencode(names[index]))
            places = [0] * len(names)
            for line, index in enumerate(order, start=1):
                places[index] = line
            subset = False  # without numbers, a missing image shifts all after it
    check_fit(names, places, by_place, truth.path, subset)
    return [by_place[place] for place in places]


def check_fit(names: list[str], places: list, by_place: dict, path: str, subset: bool) -> None:
    counts = f"{path} has {len(by_place):,} classes for {len(names):,} images"
    strange = [name for name, place in zip(names, places) if place not in by_place]
    if strange:
        raise ValueError(f"{counts}, and none for {strange[0]}")
    if len(by_place) > len(names) and not subset:
        raise ValueError(f"{counts}: image {min(set(by_place) - set(places))} is missing")
