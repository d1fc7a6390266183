"""Classifying single images: the likeliest classes with their names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from src.data.pipeline import fill_up, val_batches
from src.data.sources import ClassLabel, ImageFolderSource
from src.evaluate.flips import WithFlips
from src.platform import pulse

if TYPE_CHECKING:
    from src.config import Config

TOP = 10


@dataclass(frozen=True)
class Prediction:
    """The likeliest classes of one image, most likely first: (index, wnid, name, probability)."""

    file: str
    classes: list[tuple[int, str, str, float]]

    def as_dict(self) -> dict[str, Any]:
        keys = ("index", "wnid", "name", "probability")
        return {"file": self.file, "classes": [dict(zip(keys, row)) for row in self.classes]}


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
    """Classify whole image files (see src.data.images), with the preprocessing of validation."""
    cell = Probabilities(WithFlips(network) if config.data.test_flips else network).set_train(False)
    source = ImageFolderSource(Path(), list(classes), [(file, 0) for file in files])
    batch_size = min(config.training.batch_size, len(files))
    rows: list[np.ndarray] = []
    for images, labels in val_batches(config, source, np.arange(len(files)), 1, batch_size):
        pulse.give(pulse.Phase.VALIDATING, step=len(rows) // batch_size)
        full, _ = fill_up(images, labels, batch_size)
        rows.extend(cell(ms.Tensor(full)).asnumpy()[: len(images)])
    return [Prediction(file, _likeliest(row, classes)) for file, row in zip(files, rows)]


def _likeliest(row: np.ndarray, classes: Sequence[ClassLabel]) -> list[tuple[int, str, str, float]]:
    order = np.argsort(-row, kind="stable")[:TOP].tolist()
    named = [classes[k] if k < len(classes) else ClassLabel(str(k), f"class {k}") for k in order]
    return [(k, label.wnid, label.name, float(row[k])) for k, label in zip(order, named)]
