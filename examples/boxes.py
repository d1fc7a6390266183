"""A data source of one's own: objects cut out of photographs by the boxes of a CSV file.

    ./runner --data-backend generator --data-source examples/boxes.py --data-root DATA --workspace RUN

DATA/train/boxes.csv and DATA/val/boxes.csv hold the columns file, left, top, right, bottom, class; `file` is
a path below the folder of the CSV file. DATA/classes.txt holds one class a line, in the order of the labels.
"""

import csv
import pathlib

import numpy as np
from PIL import Image

MARGIN = 0.1  # of the box, kept around it on each side


def open_split(split: str, folder: pathlib.Path) -> "Boxes":
    """What the suite calls: `split` is "train" or "val", `folder` is DATA/train or DATA/val."""
    return Boxes(folder)


class Boxes:
    """Row i is (pixels (height, width, 3) uint8, label)."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.classes = (folder.parent / "classes.txt").read_text("utf-8").split()
        with open(folder / "boxes.csv", encoding="utf-8", newline="") as file:
            self.rows = list(csv.DictReader(file))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> "tuple[np.ndarray, int]":
        row = self.rows[i]
        left, top, right, bottom = (float(row[name]) for name in ("left", "top", "right", "bottom"))
        x, y = MARGIN * (right - left), MARGIN * (bottom - top)
        with Image.open(self.folder / row["file"]) as image:
            width, height = image.size
            box = (max(0, left - x), max(0, top - y), min(width, right + x), min(height, bottom + y))
            cut = image.convert("RGB").crop([round(edge) for edge in box])
        return np.asarray(cut), self.classes.index(row["class"])
