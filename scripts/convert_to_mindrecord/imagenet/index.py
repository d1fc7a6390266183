"""Where all images of a set are, in about 60 bytes each, so that 1.3 million fit into any worker."""

from __future__ import annotations

import hashlib
import os
from array import array
from dataclasses import dataclass, field
from typing import NamedTuple


class Item(NamedTuple):
    """One image: its name within its class, its size, where it begins in its archive (0 for a file), and when
    the file that holds it was last changed (ns).
    """

    name: bytes
    size: int
    offset: int = 0
    time: int = 0


class Index:
    """Items and their labels, in the order in which they were added."""

    def __init__(self) -> None:
        self.names, self.ends = bytearray(), array("q", [0])
        self.labels, self.sizes, self.offsets = array("i"), array("q"), array("q")
        self.digest = hashlib.sha256()  # of everything, times included

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, label: int, items: list[Item]) -> None:
        self.digest.update(repr((label, items)).encode())
        for item in items:
            self.names += item.name
            self.ends.append(len(self.names))
            self.labels.append(label)
            self.sizes.append(item.size)
            self.offsets.append(item.offset)

    def __getitem__(self, number: int) -> tuple[int, Item]:
        name = bytes(self.names[self.ends[number] : self.ends[number + 1]])
        return self.labels[number], Item(name, self.sizes[number], self.offsets[number])


@dataclass
class Tally:
    """A count, and the first few of what was counted."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        self.count += 1
        if len(self.first) < 3:
            self.first.append(name)

    def __str__(self) -> str:
        return f"{self.count:,} ({', '.join(self.first)}{', ...' if self.count > len(self.first) else ''})"


def sort_by_bytes(names: list[str]) -> list[str]:
    """Not by locale, nor by code points: the same on every machine."""
    return sorted(names, key=os.fsencode)


def num_held_out(num_images: int, share: float) -> int:
    """At least one of two, never all: every class keeps an image to train on."""
    return min(max(int(num_images * share + 0.5), 1), num_images - 1) if num_images else 0


def held_out(wnid: str, items: list[Item], share: float, seed: int) -> set[bytes]:
    """Names of the validation images of a class.

    Those whose hash with the seed is lowest: no image's fate depends on other classes, on their order, on
    workers or on versions, and an added image moves at most one other.
    """

    def rank(item: Item) -> bytes:
        return hashlib.sha256(b"\0".join((str(seed).encode(), os.fsencode(wnid), item.name))).digest()

    return {item.name for item in sorted(items, key=rank)[: num_held_out(len(items), share)]}
