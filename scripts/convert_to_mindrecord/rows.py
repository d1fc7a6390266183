"""One row of a plug-in: checked against the schema, measured, and summed up."""

from __future__ import annotations

import zlib
from typing import Any, Optional

import numpy as np
from failure import DATA_UNUSABLE, ConvertError

INTEGERS = (int, np.integer)
FLOATS = (int, float, np.integer, np.floating)


def row_bytes(row: dict) -> int:
    """Without numbers and short strings, which ROW_OVERHEAD covers."""
    return sum(len(v) if isinstance(v, (bytes, bytearray)) else getattr(v, "nbytes", 0) for v in row.values())


def row_checksum(row: dict, before: int) -> int:
    """CRC-32 of a plug-in's row, chained; 4 GB/s, and only to notice that a source has changed."""
    for field, value in row.items():
        before = zlib.crc32(field.encode(), before)
        if isinstance(value, np.ndarray):
            value = value.tobytes()
        elif not isinstance(value, (bytes, bytearray)):
            value = repr(value).encode("utf-8", "backslashreplace")
        before = zlib.crc32(value, before)
    return before


def checked_row(row: dict, schema: dict[str, dict], num_classes: Optional[int], place: str) -> dict:
    """The row with plain Python numbers.  MindSpore itself drops misfits with no more than a warning."""
    values = {}
    for field, description in schema.items():
        if field not in row:
            raise ConvertError(
                f"{place}: the row lacks the field {field!r} of mindrecord_schema", DATA_UNUSABLE
            )
        fits, values[field] = fitted(row[field], description)
        if not fits:
            value = row[field]
            what = f"{type(value).__name__} {str(value)[:60]!r}"
            raise ConvertError(
                f"{place}: the field {field!r} is {what}, which is no {description['type']}", DATA_UNUSABLE
            )
        if isinstance(row[field], (bytes, bytearray, np.ndarray)) and not row_bytes({field: row[field]}):
            raise ConvertError(
                f"{place}: the field {field!r} is empty, and MindRecord would read it as one zero byte",
                DATA_UNUSABLE,
            )
    label = values.get("label")
    highest = num_classes - 1 if num_classes else 2**31 - 1  # MindSpore trains on -1 without a word
    if isinstance(label, int) and not 0 <= label <= highest:
        raise ConvertError(f"{place}: label {label} is outside 0..{highest}", DATA_UNUSABLE)
    return values


def fitted(value: Any, description: dict) -> tuple[bool, Any]:
    """Whether a value is what the schema says, and the value as MindRecord's writer wants it."""
    kind = description["type"]
    if "shape" in description:
        return isinstance(value, np.ndarray) and value.dtype.name == kind, value
    if kind.startswith("int"):
        if not isinstance(value, INTEGERS) or isinstance(value, bool):
            return False, value
        highest = 2 ** (int(kind[3:]) - 1)
        return -highest <= value < highest, int(value)
    if kind.startswith("float"):
        fits = isinstance(value, FLOATS) and not isinstance(value, bool)
        return fits, float(value) if fits else value
    return isinstance(value, {"string": str, "bytes": bytes}[kind]), value
