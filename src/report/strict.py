"""Any value as strict JSON can hold it."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any


def strict(value: Any) -> Any:
    """`value` in plain dict, list, str, int, float, bool and None, with no NaN and no infinity (null).

    Arrays and tensors of any library become lists, or a number without dimensions.  What JSON has no
    word for becomes its text: a record of hours of training must not be lost for one odd value.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return strict(value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        # File names may hold bytes that are no text (lone surrogates): other JSON parsers refuse them.
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return _strict_container(value)


def _strict_container(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(strict(key)): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((strict(item) for item in value), key=repr)
    if isinstance(value, type):
        return value.__name__
    if dataclasses.is_dataclass(value):
        return {field.name: strict(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "tolist"):  # numpy scalars and arrays, tensors: none of them is imported here
        return strict(value.tolist())
    return strict(str(value))
