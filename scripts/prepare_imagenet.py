"""Convert ImageNet (ILSVRC 2012), in the form in which you have it, to MindRecord: DST/train and DST/val.

    scripts/prepare_imagenet.sh SRC DST [--dry-run] [options]

SRC holds one of these, or a mixture (the training set in one form, the validation set in another):

    ILSVRC2012_img_train.tar, ILSVRC2012_img_val.tar     as downloaded; never unpacked, not even in part
    train/<wnid>.tar                                     the tar of each class, from within the former
    train/<wnid>/*.JPEG, val/<wnid>/*.JPEG               class folders (or ILSVRC2012_img_train/<wnid>/, ...)
    train/<wnid>/*.JPEG, val/ILSVRC2012_val_*.JPEG       a flat folder for validation
    ILSVRC/Data/CLS-LOC/{train,val}, LOC_val_solution.csv    Kaggle's tree

The same images give the same records, whichever form they come in.  Labels are the positions of the 1,000
wnids in sorted order; the class of each validation image comes with the suite, so that no devkit is needed.
All of ImageNet needs about 155 GB at DST.  Options that are not listed here are passed on to
scripts/convert_to_mindrecord/writer.py, and stand after SRC and DST.  Exit codes: 0 done, 2 wrong options, 3
data unusable, 1 anything else.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from conversion import (
    DATA_UNUSABLE,
    PrepareError,
    Split,
    add_options,
    check_targets,
    exit_code_of,
    run,
    writer_command,
)
from convert_to_mindrecord.imagenet.find import Found, form_of
from convert_to_mindrecord.imagenet.ground_truth import BUNDLED, BUNDLED_NAME, bundled_truth, stem
from dry_run import add_dry_run, look, tell, tell_plan
from imagenet_layouts import (
    NUM_IMAGES,
    check_classes,
    class_options,
    class_options_before,
    find_splits,
    label_options,
)


def tell_form(split: Split) -> None:
    labels = [word.partition("=")[2] for word in split.options if word.startswith("--val_labels")]
    source = "the list that comes with the suite" if labels == [BUNDLED] else "".join(labels)
    form = form_of(str(split.images)) + (f", with the classes from {source}" if labels else "")
    tell(f"  {split.name}: {split.images}: {form}")


def check_val(found: Found, split: Split) -> None:
    """The ground truth of ILSVRC's own validation images is known: a folder or list that differs is wrong."""
    truth = bundled_truth().by_line
    wrong = []
    for label, item in found.index:
        name, wnid = stem(os.fsdecode(item.name)), found.classes[label][0]
        number = int(name[-8:]) if BUNDLED_NAME.fullmatch(name) else 0
        if 0 < number <= len(truth) and truth[number - 1] != wnid:
            wrong.append(f"{name} is {truth[number - 1]}, not {wnid}")
    if wrong:
        raise PrepareError(
            f"{split.images}: {len(wrong):,} of {len(found.index):,} validation images have the wrong class "
            f"by the ground truth of ILSVRC 2012 ({wrong[0]}); if you mean it, give a list with --val-labels",
            DATA_UNUSABLE,
        )


def prepare(args: argparse.Namespace) -> int:
    splits = find_splits(args)
    check_targets(Path(args.target), splits, args.overwrite)
    for split in splits:
        check_classes(split)
    tell(f"{args.source} holds ImageNet in this form:")
    for split in splits:
        split.options += label_options(args, split)
        split.options += ["--subset"] if args.subset else [f"--expect_images={NUM_IMAGES[split.name]}"]
        tell_form(split)
    num_bytes = 0
    with tempfile.TemporaryDirectory() as folder:
        for split in splits:
            if args.dry_run or split.name == "val":  # the plug-in itself counts train before it converts it
                found = look(split, [*class_options_before(args, split, folder), *split.options])
                num_bytes += sum(found.index.sizes)
                if split.name == "val" and not args.val_labels:
                    check_val(found, split)
    commands = [writer_command(args, split, class_options(args, split)) for split in splits]
    if args.dry_run:
        return tell_plan(Path(args.target), splits, num_bytes, commands)
    return next((code for code in map(run, commands) if code), 0)  # the second only after the first


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="prepare_imagenet.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("source", metavar="SRC", help="folder that holds ImageNet in one of the forms above")
    add("target", metavar="DST", help="data root to write: DST/train, DST/val")
    add_dry_run(parser)
    add(
        "--subset",
        action="store_true",
        help="accept fewer images or classes than ILSVRC 2012 has; labels are then "
        "positions in the classes of train, and validation images of other classes are left out",
    )
    add(
        "--val-labels",
        "--val_labels",
        metavar="FILE",
        help="a list of your own for a flat val: the class (wnid, or "
        "number in the devkit) of image i on line i, or an image and its wnid on each line",
    )
    add(
        "--devkit",
        metavar="FILE",
        help="the devkit (its folder, archive or meta.mat), if --val-labels holds its numbers",
    )
    add("--map-file", "--map_file", metavar="FILE", help="labels in another order: class folder, label, name")
    add_options(parser)
    args, further = parser.parse_known_args(argv, argparse.Namespace())
    args.further = further
    return exit_code_of(prepare, args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
