"""The mapping file: class folder, label, name, separated by spaces or tabs; the name may hold spaces."""

from __future__ import annotations

import re
from pathlib import Path

# With tabs, the class folder may hold spaces too; without, it ends before the first number that stands alone.
LINE = re.compile(r"^(?P<wnid>[^\t]+?) *\t+ *(?P<label>-?\d+) *\t+ *(?P<name>.+)$|"
                  r"^(?P<wnid_>.+?)\s+(?P<label_>-?\d+)\s+(?P<name_>.+)$")  # fmt: skip


def read_map(path: str) -> list[tuple[str, str]]:
    """(class folder, name) of each label.

    Blank lines, CRLF, a byte order mark and repeated equal lines are accepted; labels run without gaps from
    0, or from 1 and are then counted from 0.  Anything else raises ValueError with the number of the line.
    """
    by_label: dict[int, tuple[str, str]] = {}
    lines: dict[object, int] = {}  # label or class folder -> where it was seen first
    for number, text in enumerate(read_lines(path), start=1):
        if not text.strip():
            continue
        match = LINE.match(text.strip())
        if not match:
            raise ValueError(f"{path}, line {number}: {text.strip()!r} is not: class folder, label, name")
        wnid, label_text, name = (x for x in match.groups() if x is not None)
        label = int(label_text)
        if by_label.get(label) == (wnid, name):
            continue
        first = lines.get(label, lines.get(wnid))
        if first is not None:
            raise ValueError(f"{path}, line {number}: {text.strip()!r} contradicts line {first}")
        by_label[label] = (wnid, name)
        lines[label] = lines[wnid] = number
    return in_order(by_label, lines, path)


def read_lines(path: str, what: str = "mapping file") -> list[str]:
    try:
        return re.split(r"\r\n|\n|\r", Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{what} {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} {path} is not UTF-8 (byte {error.start})") from None


def in_order(
    by_label: dict[int, tuple[str, str]], lines: dict[object, int], path: str
) -> list[tuple[str, str]]:
    if not by_label:
        raise ValueError(f"mapping file {path} holds no class")
    labels = sorted(by_label)
    start = labels[0]
    if start not in (0, 1):
        raise ValueError(
            f"{path}, line {lines[start]}: the lowest label is {start}; labels begin with 0 or 1"
        )
    for expected, label in enumerate(labels, start=start):
        if label != expected:
            raise ValueError(
                f"{path}, line {lines[label]}: label {label} follows {expected - 1}: no gaps, please"
            )
    return [by_label[label] for label in labels]
