"""MessagePack, as far as rows need it: a flat map of strings to whole numbers, floats and strings.

The shortest form of everything, as MindSpore's library (nlohmann::json) writes it.
"""

from __future__ import annotations

import struct
from typing import Any

UNSIGNED = ((0xCC, "B", 1 << 8), (0xCD, "H", 1 << 16), (0xCE, "I", 1 << 32), (0xCF, "Q", 1 << 64))
SIGNED = ((0xD0, "b", 1 << 7), (0xD1, "h", 1 << 15), (0xD2, "i", 1 << 31), (0xD3, "q", 1 << 63))


def packed_map(items: list[tuple[str, Any]]) -> bytes:
    """The values of a row by name, in the order given."""
    count = len(items)
    head = bytes([0x80 | count]) if count < 16 else b"\xde" + struct.pack(">H", count)
    return head + b"".join([packed_string(name) + packed(value) for name, value in items])


def packed(value: Any) -> bytes:
    if isinstance(value, str):
        return packed_string(value)
    if isinstance(value, int):
        return packed_int(value)
    return packed_float(value)


def packed_string(text: str) -> bytes:
    data = text.encode()
    size = len(data)
    if size < 32:
        return bytes([0xA0 | size]) + data
    if size < 1 << 8:
        return bytes([0xD9, size]) + data
    return (b"\xda" + struct.pack(">H", size) if size < 1 << 16 else b"\xdb" + struct.pack(">I", size)) + data


def packed_int(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack("b", value)
    kinds = UNSIGNED if value >= 0 else SIGNED
    code, form, _ = next(kind for kind in kinds if -kind[2] <= value < kind[2])
    return struct.pack(f">B{form}", code, value)


def packed_float(value: float) -> bytes:
    """Half the size where nothing is lost."""
    try:
        short = struct.pack(">f", value)
    except OverflowError:
        return b"\xcb" + struct.pack(">d", value)
    exact = struct.unpack(">f", short)[0] == value
    return b"\xca" + short if exact else b"\xcb" + struct.pack(">d", value)
