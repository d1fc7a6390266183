"""The forms in which people have ImageNet (ILSVRC 2012), told apart by the names of folders and tar files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Optional

from conversion import DATA_UNUSABLE, WRONG_OPTIONS, PrepareError, Split, classes_of_train
from convert_to_mindrecord.imagenet.find import form_of, named, open_source
from convert_to_mindrecord.imagenet.ground_truth import BUNDLED, CLASSES_FILE, bundled_classes
from dry_run import plugin_arguments

NUM_IMAGES = {"train": 1_281_167, "val": 50_000}
TARS = {"train": "ILSVRC2012_img_train.tar", "val": "ILSVRC2012_img_val.tar"}
KAGGLE_IMAGES, KAGGLE_LABELS = Path("ILSVRC", "Data", "CLS-LOC"), "LOC_val_solution.csv"
FLAT = ("flat folder", "flat tar")
EXPECTED = "{0}/train/<wnid>/*.JPEG, or {0}/ILSVRC2012_img_train.tar"


def place_of(source: Path, split: str) -> Optional[Path]:
    """The folder or tar file of one split, if SRC holds it."""
    folders = [source / KAGGLE_IMAGES / split, source / split, source / TARS[split].removesuffix(".tar")]
    candidates = [path for path in folders if path.is_dir() and any(path.iterdir())]
    return next((path for path in (*candidates, source / TARS[split]) if path.exists()), None)


def meant(source: Path) -> Optional[Path]:
    """A folder above or below SRC that holds what SRC does not."""
    source = source.absolute()
    for above in list(source.parents)[:4]:
        place = place_of(above, "train")
        related = place and (source in (place, *place.parents) or place in source.parents)
        if place and (related or source.name == "val"):
            return above
    below = [path for pattern in ("*", "*/*") for path in sorted(source.glob(pattern)) if path.is_dir()]
    return next((path for path in below if place_of(path, "train")), None)


def find_splits(args: argparse.Namespace) -> list[Split]:
    """What SRC holds, told apart by names alone.  Raises PrepareError with a hint."""
    source = Path(args.source)
    if not source.is_dir():
        hint = f": give the folder that holds it, {source.parent}" if source.is_file() else ""
        raise PrepareError(f"{source} is no folder{hint}", DATA_UNUSABLE)
    places = {split: place_of(source, split) for split in ("train", "val")}
    wanted = [args.only] if args.only else ["train", "val"]
    if not any(places.values()):
        right = meant(source)
        hint = f"did you mean {right}?" if right else f"expected {EXPECTED.format(source)}"
        raise PrepareError(f"{source} holds no ImageNet: {hint}", DATA_UNUSABLE)
    splits = []
    for split in wanted:
        place = places[split]
        if place is None:
            other = next(name for name in ("train", "val") if name != split)
            raise PrepareError(
                f"{source} holds {places[other]}, but neither a folder {split} nor {TARS[split]}: add it, or "
                f"convert one alone with --only {other}",
                DATA_UNUSABLE,
            )
        splits.append(Split(split, place))
    return splits


def label_options(args: argparse.Namespace, split: Split) -> list[str]:
    """Where the classes of single images come from, if they are not in class folders or tars."""
    if args.devkit and not args.val_labels:
        raise PrepareError(
            "--devkit is of use only with --val-labels, a list that holds its numbers", WRONG_OPTIONS
        )
    if split.name == "train":
        return []
    if form_of(str(split.images)) not in FLAT:
        if args.val_labels:
            raise PrepareError(f"--val-labels: {split.images} is not flat, but holds classes", WRONG_OPTIONS)
        return []
    if args.val_labels:
        return [f"--val_labels={args.val_labels}", *([f"--devkit={args.devkit}"] if args.devkit else [])]
    kaggle = Path(args.source, KAGGLE_LABELS)
    return [f"--val_labels={kaggle if kaggle.is_file() else BUNDLED}"]


def class_options(args: argparse.Namespace, split: Split) -> list[str]:
    """What says what the classes are: all 1,000, or with --subset those that train has."""
    if args.map_file:
        return [f"--map_file={args.map_file}"]
    if not args.subset:
        return [f"--map_file={CLASSES_FILE}"]
    return [classes_of_train(args)] if split.name == "val" else []


def class_options_before(args: argparse.Namespace, split: Split, folder: str) -> list[str]:
    """The same, before train is converted.  `folder` takes a mapping file for as long as it is needed."""
    options = class_options(args, split)
    if args.only == "val" or classes_of_train(args) not in options:
        return options
    path = Path(folder, "classes.txt")
    source = open_source(plugin_arguments([f"--dir={place_of(Path(args.source), 'train')}"]), None)
    lines = [f"{wnid}\t{label}\t{name}\n" for label, (wnid, name) in enumerate(named(source.names))]
    path.write_text("".join(lines), "utf-8")
    return [f"--map_file={path}"]


def check_classes(split: Split) -> None:
    """That the folders are the classes of ILSVRC, before all images are counted."""
    if form_of(str(split.images)) in FLAT:
        if split.name == "train":
            raise PrepareError(f"{split.images} holds images without class folders", DATA_UNUSABLE)
        return
    names = open_source(plugin_arguments([f"--dir={split.images}"]), None).names
    known = dict(bundled_classes())
    foreign = [name for name in names if name not in known]
    if foreign:
        raise PrepareError(
            f"{split.images} holds {', '.join(foreign[:3])}, and ILSVRC 2012 has no such class (they are "
            "called n01440764 to n15075141): scripts/prepare_dataset.py converts other data",
            DATA_UNUSABLE,
        )
