"""ImageNet, and any other set of class folders; also the tar files of ILSVRC 2012, and flat validation sets.

The same images give the same records, whichever form they come in.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Iterator, Optional

from .find import Found, find_images

mindrecord_schema = {"image": {"type": "bytes"}, "label": {"type": "int32"}, "file_name": {"type": "string"}}
mindrecord_index_fields = ["label"]

FOUND = Found()
ORDER: Any = ()  # task -> number in FOUND.index


def mindrecord_options(parser) -> None:
    add = parser.add_argument
    add(
        "--dir",
        required=True,
        help="folder of class folders, DIR/<wnid>/*.JPEG; or ILSVRC2012_img_train.tar, or the class tars in "
        "it; or, with --val_labels, a flat folder of images or ILSVRC2012_img_val.tar",
    )
    add("--map_file", metavar="FILE", help="class folder, label (from 0 or 1), name (may hold spaces)")
    add("--classes_from", metavar="MANIFEST", help="take the classes from another split's manifest.json")
    add(
        "--val_labels",
        metavar="FILE",
        help="ground truth of a flat validation set: the class on line i, or an image and its class on each "
        "line, or Kaggle's LOC_val_solution.csv; the word ilsvrc2012 takes the list of this plug-in",
    )
    add("--devkit", metavar="FILE", help="the devkit (or its meta.mat) whose numbers --val_labels holds")
    add("--subset", action="store_true", help="leave out images of classes that the mapping does not know")
    add("--expect_images", type=int, metavar="N", help="refuse any other number of images")
    add("--val_share", type=float, metavar="S", help="hold out this share of each class for validation")
    add("--part", choices=("train", "val"), help="with --val_share: which of both parts to convert")


def mindrecord_configure(args) -> None:
    global FOUND, ORDER
    import numpy as np  # here, so that prepare_imagenet.py can look at data with any Python

    check_options(args)
    FOUND = find_images(args, note)
    ORDER = np.random.RandomState(args.mindrecord_seed).permutation(len(FOUND.index))  # 8 bytes an image


def check_options(args) -> None:
    fault: Optional[str] = None
    if args.map_file and args.classes_from:
        fault = "--map_file and --classes_from both say what the classes are: give one"
    elif args.devkit and not args.val_labels:
        fault = "--devkit is of use only with --val_labels"
    elif (args.val_share is None) != (args.part is None):
        fault = "--val_share and --part need each other"
    elif args.val_share is not None and not 0 < args.val_share < 1:
        fault = f"--val_share {args.val_share}: a share is between 0 and 1"
    if fault:
        raise argparse.ArgumentTypeError(fault)


def mindrecord_task_number() -> int:
    return len(FOUND.index)


def mindrecord_dict_data(task_id: int) -> Iterator[dict]:
    label, item = FOUND.index[ORDER[task_id]]
    wnid = FOUND.classes[label][0]
    try:
        data: object = FOUND.source.read(wnid, item)
    except OSError as error:  # writer.py names it with the other bad images
        data = error
    # MindRecord stores UTF-8; a name in another encoding is kept readable.
    name = (os.fsencode(wnid) + b"/" + item.name).decode("utf-8", "backslashreplace")
    yield {"image": data, "label": label, "file_name": name}


def mindrecord_classes() -> list[tuple[str, str]]:
    return FOUND.classes


def mindrecord_sizes() -> tuple[int, int]:
    return sum(FOUND.index.sizes), max(FOUND.index.sizes)


def mindrecord_task_sizes() -> Any:
    import numpy as np

    return np.frombuffer(FOUND.index.sizes, np.int64)[ORDER]


def mindrecord_fingerprint() -> str:
    """Of the names, sizes and times of all images: one that is changed in place gets another time."""
    return FOUND.index.digest.hexdigest()


def note(sentence: str) -> None:
    print(f"imagenet: {sentence}", file=sys.stderr)
