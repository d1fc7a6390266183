"""Class folders, DIR/<class>/**/*.JPEG, and a flat folder of validation images: what is an image in them."""

from __future__ import annotations

import os
from typing import Optional

from .ground_truth import GroundTruth, assign
from .index import Item, Tally, sort_by_bytes

# A name only says that a file is meant to be an image; what it is, its content decides.
IMAGE_SUFFIXES = {".jpeg", ".jpg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".jfif"}
JUNK_FOLDERS = {"__MACOSX", "__pycache__", "@eaDir", "lost+found"}
MOST_AT_ONCE = 1 << 24  # bytes of a file that is not as long as it was
SPLIT_NAMES = {"train", "val", "valid", "validation", "test"}


def is_junk(name: str) -> bool:
    return name.startswith(".") or name in JUNK_FOLDERS


def is_image_name(name: str) -> bool:
    return not is_junk(name) and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES


def class_folder_names(folder: str) -> list[str]:
    """Names of the class folders, sorted by bytes.  Raises ValueError if the link of one leads nowhere."""
    found = []
    for entry in os.scandir(folder):
        if is_junk(entry.name):
            continue
        if entry.is_dir():
            found.append(entry.name)
        elif entry.is_symlink() and not os.path.exists(entry.path) and not is_image_name(entry.name):
            raise ValueError(
                f"{entry.path} is a link to {os.readlink(entry.path)}, which does not exist: without this "
                "class all labels after it would shift"
            )
    return sort_by_bytes(found)


class ClassFolders:
    """A class is a folder; folders in it are searched too, and links belong to the class that they are in."""

    def __init__(self, folder: str) -> None:
        self.folder, self.ignored = folder, Tally()
        self.names = class_folder_names(folder)
        for name in sort_by_bytes(list(set(os.listdir(folder)) - set(self.names))):
            self.ignored.add(name)
        self.kind = f"{len(self.names):,} class folders"

    def items_of(self, wnid: str) -> list[Item]:
        """The images of one class, sorted by bytes."""
        found: list[Item] = []
        # A folder below that of the class, and the real paths of those above it.
        pending: list[tuple[str, frozenset[str]]] = [("", frozenset())]
        while pending:
            below, above = pending.pop()
            folder = os.path.join(self.folder, wnid, below)
            real = os.path.realpath(folder)
            if real in above:  # a link to a folder that it is in
                self.ignored.add(os.path.join(wnid, below))
                continue
            for entry in os.scandir(folder):
                path = os.path.join(below, entry.name)
                size, time = size_and_time(entry)
                if is_junk(entry.name):
                    self.ignored.add(os.path.join(wnid, path))
                elif entry.is_dir():
                    pending.append((path, above | {real}))
                elif is_image_name(entry.name) or size is None:
                    found.append(Item(os.fsencode(path), size or 0, time=time))
                else:
                    self.ignored.add(os.path.join(wnid, path))
        return sorted(found)

    def read(self, wnid: str, item: Item) -> bytes:
        return read_file(os.path.join(self.folder, wnid, os.fsdecode(item.name)), item.size)


class FlatFolder:
    """Images without class folders; a ground-truth list says which class each one is of."""

    def __init__(self, folder: str, truth: GroundTruth, subset: bool) -> None:
        self.folder, self.ignored = folder, Tally()
        items = []
        for entry in os.scandir(folder):
            if is_image_name(entry.name) and not entry.is_dir():
                size, time = size_and_time(entry)
                items.append(Item(os.fsencode(entry.name), size or 0, time=time))
            else:
                self.ignored.add(entry.name)
        self.by_class = group(items, truth, subset)
        self.names = sort_by_bytes(list(self.by_class))
        self.kind = "a flat folder of images"

    def items_of(self, wnid: str) -> list[Item]:
        return sorted(self.by_class[wnid])

    def read(self, wnid: str, item: Item) -> bytes:
        return read_file(os.path.join(self.folder, os.fsdecode(item.name)), item.size)


def group(items: list[Item], truth: GroundTruth, subset: bool) -> dict[str, list[Item]]:
    by_class: dict[str, list[Item]] = {}
    for item, wnid in zip(items, assign([os.fsdecode(item.name) for item in items], truth, subset)):
        by_class.setdefault(wnid, []).append(item)
    return by_class


def read_file(path: str, size: int) -> bytes:
    """A file of `size` bytes when it was listed, by one read; `open` would ask for its size, and twice."""
    handle = os.open(path, os.O_RDONLY)
    try:
        data = os.read(handle, size + 1)
        while len(data) != size and (more := os.read(handle, MOST_AT_ONCE)):
            data += more
        return data
    finally:
        os.close(handle)


def size_and_time(entry: os.DirEntry) -> tuple[Optional[int], int]:
    """Bytes and time of change (ns); no size for a link that leads nowhere.

    Reading that will fail, and be reported with the bad images.
    """
    try:
        found = entry.stat()
    except OSError:
        return None, 0
    return found.st_size, found.st_mtime_ns
