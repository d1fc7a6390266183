"""The tar files of ILSVRC 2012, read where they are: one for each class (alone or in a tar), and a flat one.

Only headers are read to find the images, and each image with one `pread`: any number of worker processes may
do so at once, and nothing is ever unpacked.
"""

from __future__ import annotations

import functools
import io
import os
import tarfile
from pathlib import PurePosixPath
from typing import Iterator

from .folders import group, is_image_name
from .ground_truth import GroundTruth
from .index import Item, Tally, sort_by_bytes

MOST_PADDING = 1 << 20  # after the end mark; tar pads with 10 kB
HEADER_BUFFER = 4096  # images are skipped, so that reading ahead is of no use


class Part(io.RawIOBase):
    """A run of bytes of a file, as a file."""

    def __init__(self, path: str, start: int, size: int) -> None:
        self.path, self.start, self.size, self.position = path, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        return self.position

    def readinto(self, buffer) -> int:
        wanted = max(0, min(len(buffer), self.size - self.position))
        data = read_at(self.path, self.start + self.position, wanted)
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)


@functools.lru_cache(maxsize=32)  # what falls out is closed
def opened(process: int, path: str) -> io.FileIO:
    """Each process opens its files for itself."""
    return open(path, "rb", buffering=0)


def read_at(path: str, start: int, size: int) -> bytes:
    return os.pread(opened(os.getpid(), path).fileno(), size, start)


def files_in(path: str, start: int, size: int, title: str) -> Iterator[tarfile.TarInfo]:
    """The regular files of a tar that is a part of a file.  Raises ValueError if it cannot be trusted."""
    part = Part(path, start, size)
    try:
        with tarfile.open(fileobj=io.BufferedReader(part, HEADER_BUFFER), mode="r:") as tar:
            while (member := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # tarfile would keep them all
                check_member(member, title)
                if not member.isdir():
                    yield member
    except (tarfile.TarError, EOFError, OverflowError) as error:
        kind = part_kind(read_at(path, start, 6))
        raise ValueError(f"{title} {kind or f'is damaged, incomplete or no tar file ({error})'}") from None
    rest = read_at(path, start + tar.offset, min(MOST_PADDING, size - tar.offset))
    check_end(rest, tar.offset, size, title)


def part_kind(beginning: bytes) -> str:
    for magic, name in ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz")):
        if beginning.startswith(magic):
            return f"is compressed with {name}: decompress it, so that images can be read where they are"
    return ""


def check_end(rest: bytes, offset: int, size: int, title: str) -> None:
    """tarfile takes anything that is no header for the end; after the true one there are only zeros."""
    if rest.strip(b"\0"):
        raise ValueError(f"{title} is damaged at byte {offset:,} of {size:,}, where a file should begin")
    if size - offset > MOST_PADDING:
        raise ValueError(
            f"{title} ends at byte {offset:,} of {size:,}, and the rest is not read: an incomplete download?"
        )


def check_member(member: tarfile.TarInfo, title: str) -> None:
    """Refuses what could lead outside, and what is no plain file or folder."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        fault = "points outside the archive"
    elif member.issym() or member.islnk():
        fault = f"is a link (to {member.linkname!r})"
    elif member.issparse() or member.size < 0 or not (member.isfile() or member.isdir()):
        fault = "is neither a plain file nor a folder"
    else:
        return
    raise ValueError(f"{title}: the member {member.name!r} {fault}, which no ILSVRC archive holds: refused")


def base(member: tarfile.TarInfo) -> str:
    return PurePosixPath(member.name).name


class ClassTars:
    """One tar of images for each class: `<wnid>.tar`, in a folder or in a tar."""

    def __init__(self, path: str) -> None:
        self.path, self.ignored = path, Tally()
        self.places: dict[str, tuple[str, int, int]] = {}  # class -> file, first byte, size
        if os.path.isdir(path):
            for entry in os.scandir(path):
                self.add(entry.name, entry.path, 0, entry.stat().st_size)
        else:
            for member in files_in(path, 0, os.path.getsize(path), path):
                self.add(base(member), path, member.offset_data, member.size)
        self.names = sort_by_bytes(list(self.places))
        self.kind = f"{'a folder' if os.path.isdir(path) else 'a tar'} of {len(self.names):,} class tars"

    def add(self, name: str, path: str, start: int, size: int) -> None:
        wnid, suffix = os.path.splitext(name)
        if suffix != ".tar" or name.startswith("."):
            self.ignored.add(name)
        elif wnid in self.places:
            raise ValueError(f"{self.path} holds {name} twice")
        else:
            self.places[wnid] = path, start, size

    def items_of(self, wnid: str) -> list[Item]:
        return items_in(*self.places[wnid], self.title(wnid), self.ignored)

    def title(self, wnid: str) -> str:
        return f"{wnid}.tar in {self.path}"

    def read(self, wnid: str, item: Item) -> bytes:
        path, start, _ = self.places[wnid]
        return read_image(path, start, item)


class FlatTar:
    """A tar of images; a ground-truth list says which class each one is of."""

    def __init__(self, path: str, truth: GroundTruth, subset: bool) -> None:
        self.path, self.ignored = path, Tally()
        items = items_in(path, 0, os.path.getsize(path), path, self.ignored)
        self.by_class = group(items, truth, subset)
        self.names = sort_by_bytes(list(self.by_class))
        self.kind = "a tar of images"

    def items_of(self, wnid: str) -> list[Item]:
        return sorted(self.by_class[wnid])

    def read(self, wnid: str, item: Item) -> bytes:
        return read_image(self.path, 0, item)


def items_in(path: str, start: int, size: int, title: str, ignored: Tally) -> list[Item]:
    """The images of one tar, sorted by bytes."""
    found: dict[bytes, Item] = {}
    time = os.stat(path).st_mtime_ns
    for member in files_in(path, start, size, title):
        name = base(member)
        if not is_image_name(name):
            ignored.add(f"{name} of {title}")
            continue
        item = Item(os.fsencode(name), member.size, member.offset_data, time)
        if found.setdefault(item.name, item) is not item:
            raise ValueError(f"{title} holds {name} twice")
    return sorted(found.values())


def read_image(path: str, start: int, item: Item) -> bytes:
    data = read_at(path, start + item.offset, item.size)
    if len(data) != item.size:
        raise OSError(f"only {len(data)} of {item.size} bytes are in {path}")
    return data
