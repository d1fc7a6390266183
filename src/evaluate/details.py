"""What validation answered for each image, and what a person wants to see of it."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np
from PIL import Image

from src.data.sampling import IGNORED_LABEL

if TYPE_CHECKING:
    from src.data.sources import ClassLabel, Source
    from src.platform.distributed import World

MOST_CONFUSED, MISTAKES = 30, 24  # pairs and images that are kept
THUMBNAIL, QUALITY = 128, 80  # longer side in pixels, of a JPEG of about 4 kB


@dataclass
class Answers:
    """By row of the set: label and answer, both plus 2 so that 0 means unseen, and confidence; float32.

    An answer of -1 is that of a network which gave no number. 12 bytes an image, however many classes.
    """

    table: np.ndarray  # (3, num_images)

    @classmethod
    def none_yet(cls, num_images: int) -> Answers:
        return cls(np.zeros((3, num_images), np.float32))

    def add(self, rows: np.ndarray, labels: np.ndarray, answers: np.ndarray) -> None:
        """`rows` (n,) of a batch whose `labels` (b,) and `answers` (2, b) may be filled up, b >= n."""
        n = len(rows)
        self.table[:, rows] = np.stack([labels[:n] + 2.0, answers[0, :n] + 2.0, answers[1, :n]])

    def over_ranks(self, world: World) -> Answers:
        """Those of all ranks, each of which saw other rows; whole numbers, and so all counts, are exact."""
        (mean,) = world.mean_arrays([self.table])
        summed = mean.astype(np.float64) * world.size
        summed[:2] = np.rint(summed[:2])
        return Answers(summed.astype(np.float32))

    @property
    def counted(self) -> np.ndarray:
        """Rows that were scored: seen, and no bad file."""
        return np.flatnonzero(self.table[0] > IGNORED_LABEL + 2)

    @property
    def labels(self) -> np.ndarray:
        return self.table[0].astype(np.int64) - 2

    @property
    def predicted(self) -> np.ndarray:
        return self.table[1].astype(np.int64) - 2


def document(answers: Answers, classes: Sequence[ClassLabel], epoch: int) -> dict[str, Any]:
    """Right answers by class, the pairs most often confused, and the most confident mistakes."""
    rows = answers.counted
    labels, predicted = answers.labels[rows], answers.predicted[rows]
    images = np.bincount(labels, minlength=len(classes))
    right = np.bincount(labels[labels == predicted], minlength=len(classes))
    wrong = np.flatnonzero(labels != predicted)
    pairs, counts = np.unique(np.stack([labels[wrong], predicted[wrong]]), axis=1, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:MOST_CONFUSED]
    surest = wrong[np.argsort(-answers.table[2][rows[wrong]], kind="stable")[:MISTAKES]]
    return {
        "epoch": epoch,
        "num_images": len(rows),
        "classes": [
            {"wnid": label.wnid, "name": label.name, "images": int(n), "right": int(k)}
            for label, n, k in zip(classes, images, right)
        ],
        "confused": [
            {"label": int(pairs[0, i]), "predicted": int(pairs[1, i]), "images": int(counts[i])} for i in most
        ],
        "mistakes": [
            {
                "row": int(rows[i]),
                "label": int(labels[i]),
                "predicted": int(predicted[i]),
                "confidence": float(answers.table[2][rows[i]]),
            }
            for i in surest
        ],
    }


def add_thumbnails(details: dict[str, Any], source: Source) -> None:
    """Read the images of the mistakes back from the data set, each as a small JPEG in base64."""
    mistakes = details["mistakes"]
    if not mistakes:
        return
    dataset = source.open(np.array([mistake["row"] for mistake in mistakes]), 1)
    rows = dataset.create_dict_iterator(num_epochs=1, output_numpy=True)
    for mistake, row in zip(mistakes, rows):
        image = row["image"]
        picture = Image.open(io.BytesIO(image.tobytes())) if source.encoded else Image.fromarray(image)
        picture = picture.convert("RGB")
        picture.thumbnail((THUMBNAIL, THUMBNAIL))
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=QUALITY)
        mistake["thumbnail"] = base64.b64encode(file.getvalue()).decode("ascii")
