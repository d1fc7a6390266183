"""Convert a folder of images to MindRecord: DST/train and DST/val.

    python scripts/prepare_dataset.py SRC DST [--dry-run] [--val-share 0.1] [--map-file FILE] [--overwrite]

SRC holds train/<class>/*.JPEG and val/<class>/*.JPEG; the classes are those of train.  Without val/, or if
SRC holds the class folders themselves, a share of each class is held out for validation: chosen by the seed,
at least one image, and never the last one.  The work is done by scripts/convert_to_mindrecord/writer.py, once
for each split; options of its own that are not listed here are passed on to it, and stand after SRC and DST.
Exit codes: 0 done, 2 wrong options, 3 data unusable, 1 anything else.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Optional

from conversion import (
    DATA_UNUSABLE,
    WRONG_OPTIONS,
    PrepareError,
    Split,
    add_options,
    check_targets,
    classes_of_train,
    exit_code_of,
    run,
    say,
    writer_command,
)
from convert_to_mindrecord.imagenet.class_map import read_map
from convert_to_mindrecord.imagenet.find import form_of
from convert_to_mindrecord.imagenet.folders import ClassFolders, class_folder_names, is_image_name
from dry_run import add_dry_run, look, tell, tell_plan

DEFAULT_VAL_SHARE = 0.1
OTHER_NAMES_OF_VAL = ("valid", "validation", "test")


def find_splits(source: Path, val_share: Optional[float]) -> list[Split]:
    """Both splits, or train alone.  Raises PrepareError, saying which folder was probably meant."""
    if not source.is_dir():
        raise PrepareError(f"{source} is no folder", DATA_UNUSABLE)
    train, val = source / "train", source / "val"
    if train.is_dir() and val.is_dir():
        if val_share:
            raise PrepareError(
                f"{source} holds a folder val: --val-share is for sources without one", WRONG_OPTIONS
            )
        return [Split("train", train), Split("val", val)]
    others = [source / name for name in OTHER_NAMES_OF_VAL if (source / name).is_dir()]
    if train.is_dir() and others and val_share is None:
        raise PrepareError(
            f"{source} holds train and {others[0].name}: rename {others[0]} to val if it is for validation, "
            "or give --val-share to hold images of train out instead",
            DATA_UNUSABLE,
        )
    images = train if train.is_dir() else source
    if images == source:
        check_level(source)
    share = DEFAULT_VAL_SHARE if val_share is None else val_share
    if share and has_two_images(images):
        options = [f"--val_share={share:g}"]
        return [Split(name, images, [*options, f"--part={name}"]) for name in ("train", "val")]
    why = "no class has two images" if share else "--val-share 0"
    say(f"{source} holds no folder val, and none is made of it ({why}): training data only")
    return [Split("train", images)]


def check_level(source: Path) -> None:
    """Of a source without train/: are its folders the classes?  Raises PrepareError with a hint."""
    above = source.parent
    classes = class_folder_names(str(source))
    below = [path.parent for path in sorted(source.glob("*/train")) if path.is_dir()]
    is_split = source.name in ("train", "val") and (above / "train").is_dir()
    if len(classes) > 1 and not (below or is_split or (source / "val").is_dir()):
        return
    meant = None
    if is_split:
        meant = above
    elif below:
        meant = below[0]
    elif len(classes) == 1 and classes != ["val"] and len(class_folder_names(f"{source}/{classes[0]}")) > 1:
        meant = source / classes[0]
    elif not classes and any(is_image_name(name) for name in os.listdir(source)):  # the folder of one class
        meant = above.parent if above.name in ("train", "val") else above
    hint = f": did you mean {meant}?" if meant else f": expected {source}/train/<class>/*.JPEG"
    raise PrepareError(
        f"{source} holds neither a folder train nor several class folders{hint}", DATA_UNUSABLE
    )


def has_two_images(folder: Path) -> bool:
    """Whether any class has an image to spare; most often the first one answers."""
    source = ClassFolders(str(folder))
    return any(len(source.items_of(name)) > 1 for name in source.names)


def check_classes(splits: list[Split], map_file: Optional[str]) -> None:
    """What would otherwise be found only once train is converted.  Raises PrepareError, ValueError."""
    for split in splits:
        if (form := form_of(str(split.images))) != "class folders":
            raise PrepareError(
                f"{split.images} is a {form}, and should hold a folder for each class "
                "(ImageNet's other forms are read by scripts/prepare_imagenet.sh)",
                DATA_UNUSABLE,
            )
    if len(splits) == 2:
        train, val = (class_folder_names(str(split.images)) for split in splits)
        known = {wnid for wnid, _ in read_map(map_file)} if map_file else set(train)
        foreign = [name for name in val if name not in known]
        if foreign:
            source = map_file or splits[0].images
            raise PrepareError(
                f"{splits[1].images} holds classes that {source} does not have: {', '.join(foreign[:5])}",
                DATA_UNUSABLE,
            )


def check_same_share(args: argparse.Namespace, split: Split) -> None:
    """What is held out must be what an existing train left out.  Raises PrepareError."""
    path = Path(args.target, "train", "manifest.json")
    try:
        manifest = json.loads(path.read_text("utf-8"))
        there = [f"--val_share={manifest['options'].get('val_share') or 0:g}", str(manifest["seed"])]
    except (OSError, ValueError, KeyError):
        raise PrepareError(f"--only val: {path} is not there; convert train first", DATA_UNUSABLE) from None
    wanted = [split.options[0], str(args.seed or 0)]
    if there != wanted:
        raise PrepareError(
            f"--only val: {path.parent} was made with {there[0].replace('_', '-')} and --seed {there[1]}: "
            f"{wanted[0].replace('_', '-')} and --seed {wanted[1]} would hold out images that are in it",
            WRONG_OPTIONS,
        )


def prepare(args: argparse.Namespace) -> int:
    splits = [
        split for split in find_splits(Path(args.source), args.val_share) if args.only in (None, split.name)
    ]
    if not splits:
        raise PrepareError(f"--only {args.only}: {args.source} holds none", DATA_UNUSABLE)
    check_targets(Path(args.target), splits, args.overwrite)
    check_classes(splits, args.map_file)
    if args.only == "val" and splits[0].options:
        check_same_share(args, splits[0])
    commands = [writer_command(args, split, class_options(args, split)) for split in splits]
    if args.dry_run:
        return tell_what_is_there(args, splits, commands)
    return next((code for code in map(run, commands) if code), 0)  # the second only after the first


def class_options(args: argparse.Namespace, split: Split) -> list[str]:
    if args.map_file:
        return [f"--map_file={args.map_file}"]
    return [classes_of_train(args)] if split.name == "val" else []


def tell_what_is_there(args: argparse.Namespace, splits: list[Split], commands: list[list[str]]) -> int:
    held_out = any(split.options for split in splits)
    tell(f"{args.source} holds {'class folders, and no val' if held_out else 'folders of class folders'}:")
    num_bytes = 0
    with tempfile.TemporaryDirectory() as folder:
        for split in splits:
            classes = class_options(args, split)
            if classes == [classes_of_train(args)] and args.only is None:  # which is not there yet
                mapping = Path(folder, "classes.txt")
                names = class_folder_names(str(splits[0].images))
                mapping.write_text("".join(f"{name}\t{i}\t{name}\n" for i, name in enumerate(names)), "utf-8")
                classes = [f"--map_file={mapping}"]
            found = look(split, [*classes, *split.options, *args.further], args.seed)
            num_bytes += sum(found.index.sizes)
    return tell_plan(Path(args.target), splits, num_bytes, commands)


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to below 1")
    return value


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("source", metavar="SRC", help="folder with train/<class>/ and perhaps val/<class>/, or with <class>/")
    add("target", metavar="DST", help="data root to write: DST/train, DST/val")
    add_dry_run(parser)
    add("--map-file", "--map_file", help="class folder, label, name (default: sorted class folders)")
    add(
        "--val-share",
        "--val_share",
        type=share,
        metavar="S",
        help=f"share to hold out where there is no val/ (default: {DEFAULT_VAL_SHARE}; 0: train alone)",
    )
    add_options(parser)
    args, further = parser.parse_known_args(argv, argparse.Namespace())
    args.further = further
    return exit_code_of(prepare, args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
