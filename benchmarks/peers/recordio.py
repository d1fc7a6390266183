"""Photographs in MXNet's record format, which DALI reads too; standard library alone.

The format is dmlc-core's recordio (a magic number, a length, the payload, padding to four bytes), and the
payload MXNet's image record: `struct IRHeader {uint32 flag; float label; uint64 id, id2}` and the file.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Iterable

MAGIC = struct.pack("<I", 0xCED7230A)
HEADER = "<IfQQ"


def write(target: Path, rows: Iterable[tuple[bytes, int]]) -> int:
    """TARGET.rec and TARGET.idx from (file, label); the number of rows."""
    number = -1
    with target.with_suffix(".rec").open("wb") as records, target.with_suffix(".idx").open("w") as index:
        for number, (data, label) in enumerate(rows):
            payload = struct.pack(HEADER, 0, label, number, 0) + data
            # A magic number inside, on a multiple of four, would have to be cut out; photographs have none.
            assert all(payload[at : at + 4] != MAGIC for at in _found(payload)), f"row {number}"
            index.write(f"{number}\t{records.tell()}\n")
            records.write(MAGIC + struct.pack("<I", len(payload)) + payload)
            records.write(b"\0" * (-len(payload) % 4))
    return number + 1


def _found(payload: bytes) -> Iterable[int]:
    """Where the magic number is, of the places that are a multiple of four."""
    at = payload.find(MAGIC)
    while at >= 0:
        if at % 4 == 0:
            yield at
        at = payload.find(MAGIC, at + 1)
