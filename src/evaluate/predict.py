"""Classifying single images: the likeliest classes with their names."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from PIL import Image, UnidentifiedImageError

from src.data.pipeline import fill_up, val_batches
from src.data.sources import IMAGE_SUFFIXES, ClassLabel, ImageFolderSource
from src.errors import DataError

if TYPE_CHECKING:
    from src.config import Config

TOP = 10
MINDSPORE_FORMATS = ("BMP", "JPEG", "PNG", "TIFF")


@dataclass(frozen=True)
class Prediction:
    """The likeliest classes of one image, most likely first: (index, wnid, name, probability)."""

    file: str
    classes: list[tuple[int, str, str, float]]

    def as_dict(self) -> dict[str, Any]:
        keys = ("index", "wnid", "name", "probability")
        return {"file": self.file, "classes": [dict(zip(keys, row)) for row in self.classes]}


def find_images(pattern: str) -> list[str]:
    """The files that --data-pred names: a file, the images below a folder, or a glob, sorted.

    Raises DataError when there are none.
    """
    path = Path(pattern)
    if path.is_dir():
        found = [str(p) for p in path.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES and p.is_file()]
    elif path.is_file():
        found = [pattern]
    else:
        found = [name for name in glob.glob(pattern, recursive=True) if Path(name).is_file()]
    if not found:
        raise DataError(f"--data-pred {pattern}: no image there")
    return sorted(found)


def fault(file: str) -> str:
    """What is wrong with an image file, or "". A cut file could kill MindSpore's decoder, hence this look."""
    try:
        with Image.open(file) as image:
            kind = image.format
            image.load()
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError) as error:
        return f"cannot be decoded: {error}"
    if kind not in MINDSPORE_FORMATS:
        return f"is a {kind}; only {', '.join(MINDSPORE_FORMATS)} can be read"
    return ""


class Probabilities(nn.Cell):
    """Images -> class probabilities, float32 (batch, num_classes)."""

    def __init__(self, network: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.network = network

    def construct(self, images: ms.Tensor) -> ms.Tensor:
        return ops.softmax(ops.cast(self.network(images), ms.float32), -1)


def predict(
    network: nn.Cell, config: Config, files: Sequence[str], classes: Sequence[ClassLabel]
) -> list[Prediction]:
    """Classify whole image files (see `fault`), with the preprocessing of validation."""
    cell = Probabilities(network).set_train(False)
    source = ImageFolderSource(Path(), list(classes), [(file, 0) for file in files])
    batch_size = min(config.training.batch_size, len(files))
    rows: list[np.ndarray] = []
    for images, labels in val_batches(config, source, np.arange(len(files)), 1, batch_size):
        full, _ = fill_up(images, labels, batch_size)
        rows.extend(cell(ms.Tensor(full)).asnumpy()[: len(images)])
    return [Prediction(file, _likeliest(row, classes)) for file, row in zip(files, rows)]


def _likeliest(row: np.ndarray, classes: Sequence[ClassLabel]) -> list[tuple[int, str, str, float]]:
    order = np.argsort(-row, kind="stable")[:TOP].tolist()
    named = [classes[k] if k < len(classes) else ClassLabel(str(k), f"class {k}") for k in order]
    return [(k, label.wnid, label.name, float(row[k])) for k, label in zip(order, named)]
