"""tf.train.Example, the protocol-buffer message in a TFRecord of images: named lists of bytes or numbers.

Example: 1 = Features.  Features: 1 = entries (1 = name, 2 = Feature).
Feature: 1 = BytesList, 2 = FloatList, 3 = Int64List.  Each list: 1 = values.
"""

from __future__ import annotations

from typing import Iterator, Union

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3
Value = Union[list[Union[bytes, int]], str]


class NoExample(ValueError):
    """These bytes are no tf.train.Example."""


def parse(data: bytes, wanted: set[str]) -> dict[str, Value]:
    """The features of an Example: values of those in `wanted`, for others the word "not read".

    Raises NoExample.  A feature of floats is told as "floats"; an empty one as an empty list.
    """
    found: dict[str, Value] = {}
    view = memoryview(data)
    try:
        for features in messages(view, 1):
            for entry in messages(features, 1):
                name = "".join(str(key, "utf-8") for key in messages(entry, 1))
                found[name] = "not read"
                if name in wanted:
                    found[name] = [value for feature in messages(entry, 2) for value in values(feature)]
                    if any(number == FLOAT_LIST for f in messages(entry, 2) for number, _ in fields(f)):
                        found[name] = "floats"
    except (IndexError, UnicodeDecodeError) as error:
        raise NoExample("is no tf.train.Example") from error
    if not found:
        raise NoExample("is no tf.train.Example, or one without features")
    return found


def values(feature: memoryview) -> Iterator[Union[bytes, int]]:
    for number, content in fields(feature):
        if not isinstance(content, memoryview):
            raise IndexError
        if number == BYTES_LIST:
            yield from (bytes(value) for value in messages(content, 1))
        elif number == INT64_LIST:
            for _, value in fields(content):
                if isinstance(value, int):
                    yield signed(value)
                else:  # packed
                    at = 0
                    while at < len(value):
                        number, at = varint(value, at)
                        yield signed(number)


def messages(view: memoryview, number: int) -> Iterator[memoryview]:
    """The contents of the fields `number` that have a length."""
    for found, content in fields(view):
        if found == number and isinstance(content, memoryview):
            yield content


def fields(view: memoryview) -> Iterator[tuple[int, Union[int, memoryview]]]:
    """(number, content) of each field.  Raises IndexError where the bytes make no sense."""
    at = 0
    while at < len(view):
        key, at = varint(view, at)
        kind = key & 7
        if kind == VARINT:
            content, at = varint(view, at)
            yield key >> 3, content
            continue
        if kind == LENGTH:
            size, at = varint(view, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise IndexError
        if at + size > len(view):
            raise IndexError
        yield key >> 3, view[at : at + size]
        at += size


def varint(view: memoryview, at: int) -> tuple[int, int]:
    """(number, position behind it)."""
    number = shift = 0
    while True:
        byte = view[at]
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise IndexError


def signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
