"""ImageNet, and any other folder of class folders: DIR/<class>/**/*.JPEG."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator

import numpy as np

from .class_map import read_map

mindrecord_schema = {"image": {"type": "bytes"}, "label": {"type": "int32"}, "file_name": {"type": "string"}}
mindrecord_index_fields = ["label"]

# A name only says that a file is meant to be an image; what it is, its content decides.
IMAGE_SUFFIXES = {".jpeg", ".jpg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".jfif"}
JUNK_FOLDERS = {"__MACOSX", "__pycache__", "@eaDir", "lost+found"}
SPLIT_NAMES = {"train", "val", "valid", "validation", "test"}


@dataclass
class Images:
    """What was found: one task for each image, in the order of the seeded permutation."""

    folder: str = ""
    classes: list[tuple[str, str]] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)  # (path below the folder, label)
    total_bytes: int = 0
    largest_bytes: int = 0
    ignored: list[str] = field(default_factory=list)


FOUND = Images()


def mindrecord_options(parser) -> None:
    parser.add_argument("--dir", required=True, help="folder of class folders: DIR/<wnid>/*.JPEG")
    parser.add_argument(
        "--map_file",
        metavar="FILE",
        help="three columns: class folder, label (from 0 or 1), name (may hold spaces)",
    )
    parser.add_argument(
        "--classes_from",
        metavar="MANIFEST",
        help="take classes and labels from another split's manifest.json",
    )


def mindrecord_configure(args) -> None:
    if args.map_file and args.classes_from:
        raise argparse.ArgumentTypeError(
            "--map_file and --classes_from both say what the classes are: give one"
        )
    folders = class_folders(args.dir)
    FOUND.folder = args.dir
    if args.map_file:
        FOUND.classes = read_map(args.map_file)
    elif args.classes_from:
        FOUND.classes = manifest_classes(args.classes_from)
    else:
        FOUND.classes = [(name, name) for name in folders]
        warn_of_numeric_order(folders)
    source = args.map_file or args.classes_from or args.dir
    labels = {wnid: label for label, (wnid, _) in enumerate(FOUND.classes)}
    unknown = [name for name in folders if name not in labels]
    if unknown:
        raise ValueError(
            f"{args.dir} holds {len(unknown)} class folder(s) that {source} does not know "
            f"({', '.join(unknown[:5])}): remove them, or use the mapping that they belong to"
        )
    for name in folders:
        collect(name, labels[name])
    tell_what_is_missing(args.dir)
    order = np.random.RandomState(args.mindrecord_seed).permutation(len(FOUND.files))
    FOUND.files = [FOUND.files[index] for index in order]


def mindrecord_task_number() -> int:
    return len(FOUND.files)


def mindrecord_dict_data(task_id: int) -> Iterator[dict]:
    path, label = FOUND.files[task_id]
    try:
        data: object = Path(FOUND.folder, path).read_bytes()
    except OSError as error:  # writer.py names it with the other bad images
        data = error
    # MindRecord stores UTF-8; a name in another encoding is kept readable.
    name = os.fsencode(path).decode("utf-8", "backslashreplace")
    yield {"image": data, "label": label, "file_name": name}


def mindrecord_classes() -> list[tuple[str, str]]:
    return FOUND.classes


def mindrecord_sizes() -> tuple[int, int]:
    return FOUND.total_bytes, FOUND.largest_bytes


def is_junk(name: str) -> bool:
    return name.startswith(".") or name in JUNK_FOLDERS


def is_image_name(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES


def class_folders(folder: str) -> list[str]:
    """Names of the class folders, sorted by bytes, not by locale.  Raises ValueError."""
    try:
        entries = [entry for entry in os.scandir(folder) if not is_junk(entry.name)]
    except OSError as error:
        raise ValueError(f"--dir {folder}: {error.strerror}") from None
    folders = sorted((entry.name for entry in entries if entry.is_dir()), key=os.fsencode)
    splits = [name for name in folders if name.lower() in SPLIT_NAMES]
    if splits and len(splits) == len(folders):
        raise ValueError(
            f"--dir {folder} holds {', '.join(splits)}: give one of them, such as {folder}/{splits[0]}"
        )
    if folders:
        return folders
    images = [entry.name for entry in entries if is_image_name(entry.name)]
    if images:
        raise ValueError(
            f"--dir {folder} holds {len(images)} images ({min(images)}, ...) but no class folders: give the "
            "folder above if this is one class, or sort ILSVRC's flat validation set into class folders"
        )
    raise ValueError(f"--dir {folder} holds no class folders: expected {folder}/<class>/*.JPEG")


def collect(class_name: str, label: int) -> None:
    """Add the images of one class, sorted by bytes; folders in it are searched too, links followed."""
    found: list[tuple[str, int]] = []
    pending: list[tuple[str, frozenset[str]]] = [
        (class_name, frozenset())
    ]  # a folder, and the real paths of those above it
    while pending:
        folder, above = pending.pop()
        real = os.path.realpath(os.path.join(FOUND.folder, folder))
        if real in above:  # a link to a folder that it is in
            continue
        for entry in os.scandir(os.path.join(FOUND.folder, folder)):
            path = os.path.join(folder, entry.name)
            if is_junk(entry.name):
                continue
            if entry.is_dir():
                pending.append((path, above | {real}))
            elif is_image_name(entry.name):
                found.append((path, size_of(entry)))
            else:
                FOUND.ignored.append(path)
    found.sort(key=lambda item: os.fsencode(item[0]))
    FOUND.files += [(path, label) for path, _ in found]
    FOUND.total_bytes += sum(size for _, size in found)
    FOUND.largest_bytes = max([FOUND.largest_bytes, *(size for _, size in found)])


def size_of(entry: os.DirEntry) -> int:
    try:
        return entry.stat().st_size
    except OSError:  # a dangling link: reading it will fail and be reported
        return 0


def manifest_classes(path: str) -> list[tuple[str, str]]:
    """The classes that another split was packed with.  Raises ValueError."""
    try:
        classes = json.loads(Path(path).read_text("utf-8"))["classes"]
        return [(item["wnid"], item["name"]) for item in sorted(classes, key=lambda item: item["index"])]
    except OSError as error:
        raise ValueError(f"--classes_from {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"--classes_from {path} is no manifest.json of this converter") from None


def warn_of_numeric_order(folders: list[str]) -> None:
    if all(name.isdecimal() for name in folders) and folders != sorted(folders, key=int):
        order = ", ".join(folders[:4])
        note(f"the class folders are numbers, and labels follow their order as text: {order}, ...; "
             "give --map_file for another order")  # fmt: skip


def tell_what_is_missing(folder: str) -> None:
    """Empty classes keep their label: a notice.  Raises ValueError if there is no image at all."""
    if not FOUND.files:
        raise ValueError(f"{folder} holds class folders, but not one image in them")
    filled = {label for _, label in FOUND.files}
    empty = [wnid for label, (wnid, _) in enumerate(FOUND.classes) if label not in filled]
    if empty:
        some = ", ".join(empty[:5])
        note(f"{len(empty)} class(es) have no image in {folder} ({some}); they keep their labels")
    if FOUND.ignored:
        note(f"{len(FOUND.ignored)} file(s) ignored, not images by name ({', '.join(FOUND.ignored[:3])})")


def note(sentence: str) -> None:
    print(f"imagenet: {sentence}", file=sys.stderr)
