"""Where all records of some TFRecord files are, in 16 bytes each, and each of them read by its number."""

from __future__ import annotations

import bisect
import functools
import io
import os
from array import array

from .records import FOOTER, HEADER, Record


class Index:
    """Records are numbered from 0 over all files, in the order in which they were added."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.starts: list[int] = []  # number of the first record of each file
        self.positions, self.lengths = array("q"), array("q")

    def __len__(self) -> int:
        return len(self.positions)

    def begin(self, path: str) -> None:
        """The records that are added from now on are of this file."""
        self.files.append(path)
        self.starts.append(len(self))

    def add(self, record: Record) -> None:
        self.positions.append(record.position)
        self.lengths.append(record.length)

    def numbers_of(self, file: int) -> range:
        return range(self.starts[file], [*self.starts, len(self)][file + 1])

    def read(self, number: int) -> Record:
        """Raises OSError; also if the file has become shorter since."""
        file = bisect.bisect_right(self.starts, number) - 1
        path, position, length = self.files[file], self.positions[number], self.lengths[number]
        data = os.pread(opened(os.getpid(), path).fileno(), length + FOOTER.size, position + HEADER.size)
        if len(data) != length + FOOTER.size:
            raise OSError(f"only {len(data)} of its {length + FOOTER.size} bytes are still in the file")
        (checksum,) = FOOTER.unpack_from(data, length)
        return Record(path, number - self.starts[file], position, length, data[:length], checksum)

    def place(self, number: int) -> str:
        file = bisect.bisect_right(self.starts, number) - 1
        where = Record(self.files[file], number - self.starts[file], self.positions[number], 0, b"", 0)
        return where.place


@functools.lru_cache(maxsize=128)  # what falls out is closed
def opened(process: int, path: str) -> io.FileIO:
    """Each process opens its files for itself."""
    return open(path, "rb", buffering=0)
