"""Finds the images of one split and their labels, whatever form the split has."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Optional

from .class_map import read_map
from .folders import SPLIT_NAMES, ClassFolders, FlatFolder, class_folder_names, is_image_name
from .ground_truth import BUNDLED, bundled_classes, read_truth
from .index import Index, Item, Tally, held_out
from .tars import ClassTars, FlatTar, files_in

Note = Callable[[str], None]


@dataclass
class Found:
    """`source` reads what `index` lists; labels are positions in `classes`: (class folder, name)."""

    source: Any = None
    classes: list[tuple[str, str]] = field(default_factory=list)
    index: Index = field(default_factory=Index)
    num_before_holding_out: int = 0
    single: Tally = field(default_factory=Tally)  # classes of one image
    empty: Tally = field(default_factory=Tally)  # classes without one, here


def find_images(args: Any, note: Note) -> Found:
    """`args`: the plug-in's options; `note` tells what is odd but no error.  Raises ValueError, OSError."""
    classes = given_classes(args)
    source = open_source(args, classes)
    if classes is None:
        classes = named(source.names)
        warn_of_numeric_order(source.names, note)
    refuse_unknown(source.names, classes, args, note)
    found, names = Found(source, classes), set(source.names)
    for label, (wnid, _) in enumerate(classes):
        items = source.items_of(wnid) if wnid in names else []
        if len(items) == 1:
            found.single.add(wnid)
        found.num_before_holding_out += len(items)
        found.index.add(label, part_of(wnid, items, args) if args.part else items)
    filled = set(found.index.labels)
    for label, (wnid, _) in enumerate(classes):
        if label not in filled:
            found.empty.add(wnid)
    refuse_wrong_counts(found, args)
    tell_what_is_odd(found, args, note)
    return found


def refuse_unknown(names: list[str], classes: list[tuple[str, str]], args: Any, note: Note) -> None:
    known, unknown = {wnid for wnid, _ in classes}, Tally()
    for name in names:
        if name not in known:
            unknown.add(name)
    if unknown.count and not args.subset:
        raise ValueError(
            f"{args.dir} holds classes that {args.map_file or args.classes_from} does not know: {unknown}; "
            "remove them, or use the mapping that they belong to"
        )
    if unknown.count:
        note(f"classes of {args.dir} left out, which are not in the subset: {unknown}")


def given_classes(args: Any) -> Optional[list[tuple[str, str]]]:
    if args.map_file:
        return read_map(args.map_file)
    if args.classes_from:
        return manifest_classes(args.classes_from)
    return bundled_classes() if args.val_labels == BUNDLED else None


def named(names: Iterable[str]) -> list[tuple[str, str]]:
    """(class folder, name): the folder again, or what ILSVRC calls it if it knows every one."""
    known = dict(bundled_classes())
    ours = all(name in known for name in names)
    return [(name, known[name] if ours else name) for name in names]


def open_source(args: Any, classes: Optional[list[tuple[str, str]]]) -> Any:
    """The form of the data at --dir is decided by what is there.  Raises ValueError with a hint."""
    path = args.dir
    form = form_of(path)
    if form not in ("flat folder", "flat tar"):
        if args.val_labels:
            raise ValueError(
                f"--dir {path} holds classes, and --val_labels is for images without class folders"
            )
        return ClassTars(path) if "class tars" in form else ClassFolders(path)
    if not args.val_labels:
        raise ValueError(
            f"--dir {path} holds images but no class folders: give the folder above if this is one class, "
            "or, for the flat validation set of ILSVRC 2012, --val_labels ilsvrc2012 or a list of your own"
        )
    if classes is None:
        raise ValueError(
            f"--val_labels {args.val_labels}: say what the labels of its classes are, with --classes_from "
            "TRAIN/manifest.json or --map_file"
        )
    truth = read_truth(args.val_labels, args.devkit, {wnid for wnid, _ in classes}, args.subset)
    return (FlatFolder if form == "flat folder" else FlatTar)(path, truth, args.subset)


def form_of(path: str) -> str:
    """What --dir is: class folders, flat folder, folder of class tars, tar of class tars, or flat tar."""
    if os.path.isfile(path):
        for member in files_in(path, 0, os.path.getsize(path), path):
            if is_image_name(os.path.basename(member.name)):
                return "flat tar"
            if member.name.endswith(".tar"):
                return "tar of class tars"
        raise ValueError(f"--dir {path} is a tar file with neither images nor class tars in it")
    try:
        folders = class_folder_names(path)
        files = [entry.name for entry in os.scandir(path) if not entry.is_dir()]
    except OSError as error:
        raise ValueError(f"--dir {path}: {error.strerror}") from None
    splits = [name for name in folders if name.lower() in SPLIT_NAMES]
    if splits and len(splits) == len(folders):
        raise ValueError(
            f"--dir {path} holds {', '.join(splits)}: give one of them, such as {path}/{splits[0]}"
        )
    if folders:
        return "class folders"
    if any(map(is_image_name, files)):
        return "flat folder"
    if any(name.endswith(".tar") and not name.startswith("ILSVRC") for name in files):
        return "folder of class tars"
    raise ValueError(f"--dir {path} holds no class folders: expected {path}/<class>/*.JPEG")


def part_of(wnid: str, items: list[Item], args: Any) -> list[Item]:
    val = held_out(wnid, items, args.val_share, args.mindrecord_seed)
    return [item for item in items if (item.name in val) == (args.part == "val")]


def manifest_classes(path: str) -> list[tuple[str, str]]:
    """The classes that another split was packed with.  Raises ValueError."""
    try:
        classes = json.loads(Path(path).read_text("utf-8"))["classes"]
        return [(item["wnid"], item["name"]) for item in sorted(classes, key=lambda item: item["index"])]
    except OSError as error:
        raise ValueError(f"--classes_from {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"--classes_from {path} is no manifest.json of this converter") from None


def warn_of_numeric_order(folders: list[str], note: Note) -> None:
    if all(name.isdecimal() for name in folders) and folders != sorted(folders, key=int):
        order = ", ".join(folders[:4])
        note(f"the class folders are numbers, and labels follow their order as text: {order}, ...; "
             "give --map_file for another order")  # fmt: skip


def refuse_wrong_counts(found: Found, args: Any) -> None:
    total = len(found.index)
    num_filled = len(found.classes) - found.empty.count
    if args.expect_images not in (None, total):
        without = f"; without an image: {found.empty}" if found.empty.count else ""
        raise ValueError(
            f"{args.dir} holds {total:,} images of {num_filled:,} classes, and there should be "
            f"{args.expect_images:,} of {len(found.classes):,}{without}; "
            "prepare_imagenet.sh takes a part of ImageNet with --subset"
        )
    if not total and args.part == "val" and found.num_before_holding_out:
        raise ValueError(f"no class of {args.dir} has two images, so that none can be held out")
    if not total:
        raise ValueError(f"{args.dir} holds {found.source.kind}, but not one image in them")


def tell_what_is_odd(found: Found, args: Any, note: Note) -> None:
    """Empty classes keep their label: a notice."""
    if args.part == "train":
        before = found.num_before_holding_out
        num_val = before - len(found.index)
        note(
            f"held out {num_val:,} of {before:,} images ({100 * num_val / before:.1f} %) for validation, "
            f"{args.val_share:g} of each class but at least one, by seed {args.mindrecord_seed}"
        )
        if found.single.count:
            note(f"classes of a single image, which stays in train: {found.single}")
    if found.empty.count:
        note(f"classes without an image in {args.dir}, which keep their labels: {found.empty}")
    if found.source.ignored.count:
        note(f"files and folders ignored, hidden or not images by name: {found.source.ignored}")
