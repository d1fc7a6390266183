"""A plug-in of writer.py: copy this folder, then describe your own data here.

It runs as it is: it makes up small images of three colours.

    python writer.py --mindrecord_script template --mindrecord_file COLOURS/train/train.mindrecord

writer.py decodes every image once, repairs or refuses what MindSpore cannot read, and writes `manifest.json`.
"""

from __future__ import annotations

import io
import random

from PIL import Image

# Needed: the fields of a row and their types: int32, int64, float32, float64, string, bytes; a number with a
# "shape" is a numpy array.  The trainer of this suite reads these three.
mindrecord_schema = {"image": {"type": "bytes"}, "label": {"type": "int32"}, "file_name": {"type": "string"}}

# May be left out: the fields that MindRecord can search by.
mindrecord_index_fields = ["label"]

# May be left out: the bytes fields that hold encoded images, which are checked (default: "image").
mindrecord_image_fields = ["image"]

COLOURS = [("red", (200, 30, 30)), ("green", (30, 200, 30)), ("blue", (30, 30, 200))]
SETTINGS = {"images": 8, "seed": 0}


def mindrecord_options(parser):
    """May be left out: options of your own, added to writer.py's."""
    parser.add_argument(
        "--images", type=int, default=SETTINGS["images"], help="images per colour (%(default)s)"
    )


def mindrecord_configure(args):
    """May be left out: called once, before everything below, with all parsed options (writer.py's too).

    Raise argparse.ArgumentTypeError(sentence) for a wrong option, ValueError(sentence) for unusable data.
    """
    if args.images < 1:
        raise ValueError(f"--images {args.images}: there must be at least one image")
    SETTINGS.update(images=args.images, seed=args.mindrecord_seed)


def mindrecord_task_number():
    """Needed: N, how many tasks the reading can be split into.  1 reads everything in one process.

    Each shard gets a run of neighbouring tasks, so N must be at least the number of shards.  A task may be a
    folder, a file, a part of one ("rows with count % N == task_id"), or, as here, a single image.
    """
    return SETTINGS["images"] * len(COLOURS)


def mindrecord_dict_data(task_id):
    """Needed: yields the rows (dicts) of task `task_id`, 0 <= task_id < N; the same ones on every call.

    Tasks are written in their order, so the order of tasks is the place to shuffle.  A file that could not be
    read is reported by yielding the OSError in place of its bytes.
    """
    order = list(range(mindrecord_task_number()))
    random.Random(SETTINGS["seed"]).shuffle(order)
    number, label = divmod(order[task_id], len(COLOURS))
    name, colour = COLOURS[label]
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), tuple(value + number % 20 for value in colour)).save(buffer, "PNG")
    yield {"image": buffer.getvalue(), "label": label, "file_name": f"{name}/{number:04d}.png"}


def mindrecord_classes():
    """May be left out: (folder or identifier, name) of label 0, 1, ...; labels outside are refused."""
    return [(name, name) for name, _ in COLOURS]


def mindrecord_sizes():
    """May be left out: (bytes of all rows, bytes of the largest), estimated, which decides shards and pages.

    Without it a shard takes at least 9 MB.
    """
    return 200 * mindrecord_task_number(), 200


def mindrecord_task_sizes():
    """May be left out: bytes of each task, 0 to N - 1, estimated, to give every shard about as many bytes.

    Without it, every shard gets about as many tasks.
    """
    return [200] * mindrecord_task_number()


def mindrecord_fingerprint():
    """May be left out: a text that changes when the sources do, such as a checksum of their names, sizes and
    times of change (os.stat(path).st_mtime_ns).

    A run that goes on where another was killed keeps finished shards if the text is the same; without it, it
    reads the sources of those shards again, and compares.  Options and this file are compared anyway.
    """
    return "made up, so that nothing can change"
