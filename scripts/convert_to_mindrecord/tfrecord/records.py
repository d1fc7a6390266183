"""TFRecord files: lengths, data and their checksums, read without TensorFlow.

A record is: length (8 bytes, little-endian), checksum of the length (4), data, checksum of the data (4).
The checksums are CRC-32C, rotated and shifted ("masked").  They are computed here by NumPy, about as fast as
a disk delivers; a library would be one more thing to install for 40 lines.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Iterator

import numpy as np

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), bits reversed
MASK_DELTA = 0xA282EAD8
BLOCK = 512  # bytes; the table of one block, 0.5 MB, stays in the processor's cache
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Record:
    """One record and where it is; `position` is that of its header, `length` that of its data, in bytes."""

    path: str
    number: int
    position: int
    length: int
    data: bytes
    checksum: int

    @property
    def place(self) -> str:
        return f"{self.path}: record {self.number} (at byte {self.position:,})"

    def is_whole(self) -> bool:
        """Whether the data are as they were written."""
        return masked(crc32c(self.data)) == self.checksum


def read_records(path: str, skip: bool = False) -> Iterator[Record]:
    """All records of a file, in their order; `skip`: without reading their data.

    Raises ValueError where the file is cut or a length is damaged, as nothing can be found behind it.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        number = position = 0
        while position < size:
            place = f"{path}: record {number} (at byte {position:,})"
            header = file.read(HEADER.size)
            if number == 0 and header.startswith(GZIP_MAGIC):
                raise ValueError(f"{path} is compressed: decompress it first (gunzip -c FILE > OTHER)")
            length, checksum = HEADER.unpack(header) if len(header) == HEADER.size else (size, 0)
            if len(header) == HEADER.size and masked(crc_by_byte(header[:8])) != checksum:
                hint = ": is this a TFRecord file?" if number == 0 else ": fetch the file again"
                raise ValueError(f"{place} has a damaged length, so nothing can be found from there on{hint}")
            end = position + HEADER.size + length + FOOTER.size
            if end > size:
                raise ValueError(f"{place} is cut off by the end of the file: fetch the file again")
            if skip:
                file.seek(end)
                yield Record(path, number, position, length, b"", 0)
            else:
                data = file.read(length)
                yield Record(path, number, position, length, data, *FOOTER.unpack(file.read(FOOTER.size)))
            number, position = number + 1, end


def masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """CRC-32C.  The checksum is linear in the bits: a block's is the exclusive or of what each byte, by its
    place in the block, contributes; then the blocks are joined in their order."""
    if len(data) < BLOCK:
        return crc_by_byte(data)
    padded = np.zeros(-(-len(data) // BLOCK) * BLOCK, np.uint8)  # zeros in front contribute nothing
    padded[len(padded) - len(data) :] = np.frombuffer(data, np.uint8)
    padded[len(padded) - len(data) :][:4] ^= 0xFF  # the register's first value
    table = block_table()
    places = padded.reshape(-1, BLOCK) + np.arange(0, 256 * BLOCK, 256)
    last, second, third, fourth = (table[256 * k : 256 * (k + 1)].tolist() for k in range(4))
    register = 0
    for block in np.bitwise_xor.reduce(table[places], axis=1).tolist():
        register = (
            block
            ^ last[register & 255]
            ^ second[register >> 8 & 255]
            ^ third[register >> 16 & 255]
            ^ fourth[register >> 24]
        )
    return register ^ 0xFFFFFFFF


def crc_by_byte(data: bytes) -> int:
    """CRC-32C of a few bytes."""
    table, register = byte_table(), 0xFFFFFFFF
    for byte in data:
        register = table[(register ^ byte) & 255] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


@lru_cache(maxsize=1)
def byte_table() -> list[int]:
    """The register after one byte, from zero."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    return table.tolist()


@lru_cache(maxsize=1)
def block_table() -> np.ndarray:
    """(BLOCK x 256,) uint32: the register after byte b at place k of a block, and zeros up to its end."""
    one = np.array(byte_table(), np.uint32)
    rows = [one]
    for _ in range(BLOCK - 1):
        rows.append(one[rows[-1] & 255] ^ (rows[-1] >> 8))
    return np.concatenate(rows[::-1])
