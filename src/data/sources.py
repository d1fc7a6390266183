"""Where rows come from: a source knows its classes and opens a dataset of rows in a given order."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Sequence

import numpy as np

from src.data.manifest import Manifest
from src.errors import DataError

if TYPE_CHECKING:
    import mindspore.dataset as ds

IMAGE_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff")


class ClassLabel(NamedTuple):
    """A class: its folder or WordNet id, and its name for people."""

    wnid: str
    name: str


class Source(Protocol):
    """Rows of one split."""

    @property
    def classes(self) -> Sequence[ClassLabel]: ...

    @property
    def encoded(self) -> bool:
        """True: `image` holds an image file's bytes; False: pixels (height, width, 3) uint8."""

    def __len__(self) -> int: ...

    def open(self, rows: np.ndarray, workers: int) -> ds.Dataset:
        """Columns `image` and `label` (int32) of `rows`, in exactly that order."""

    def identity(self) -> dict[str, Any]:
        """What the report says of the data set."""


class MindRecordSource:
    """Records made by scripts/convert_to_mindrecord, through the shards that the manifest names."""

    encoded = True

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.classes = [ClassLabel(c.wnid, c.name) for c in manifest.classes]

    def __len__(self) -> int:
        return self.manifest.num_images

    def open(self, rows: np.ndarray, workers: int) -> ds.Dataset:
        import mindspore.dataset as ds

        return ds.MindDataset(
            list(self.manifest.files),
            columns_list=["image", "label"],
            sampler=ds.SubsetSampler(rows.tolist()),
            num_parallel_workers=workers,
        )

    def identity(self) -> dict[str, Any]:
        return dict(self.manifest.identity())


@dataclass
class RandomAccess:
    """What GeneratorDataset reads: item i is row i of `source`."""

    source: Any

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        return self.source.row(int(row))


def open_random_access(source: Any, rows: np.ndarray, workers: int = 1) -> ds.Dataset:
    """`rows` of a source with `row(i)`, in order. One thread is enough where reading is cheap."""
    import mindspore.dataset as ds

    return ds.GeneratorDataset(
        RandomAccess(source),
        ["image", "label"],
        sampler=ds.SubsetSampler(rows.tolist()),
        num_parallel_workers=workers,
        python_multiprocessing=False,  # a fork beside MindSpore's threads could hang
    )


@dataclass
class ImageFolderSource:
    """FOLDER/<class>/<image files>: classes sorted by name, files by path; the label is the class's index."""

    folder: Path
    classes: list[ClassLabel]
    files: list[tuple[str, int]]
    encoded: bool = field(default=True, init=False)

    @classmethod
    def scan(cls, folder: Path, mapping: Sequence[ClassLabel] | None = None) -> ImageFolderSource:
        """List the folder. `mapping`: the training set's classes, so that both splits share one mapping.

        Raises DataError for a missing or empty folder, and for a class that training does not have.
        """
        if not folder.is_dir():
            raise DataError(f"{folder} is not a folder; --data-root must hold train/ and val/")
        found = sorted(
            (e.name for e in os.scandir(folder) if e.is_dir() and e.name[0] != "."), key=os.fsencode
        )
        names = found if mapping is None else [label.wnid for label in mapping]
        unknown = [name for name in found if name not in set(names)]
        if unknown:
            raise DataError(f"{folder}/{unknown[0]} is a class that the training set does not have")
        files = [(path, label) for label, name in enumerate(names) for path in _images(folder / name)]
        if not files:
            raise DataError(f"no images below {folder}: expected {folder}/<class>/<image>.jpg")
        return cls(folder, [ClassLabel(name, name) for name in names], files)

    def __len__(self) -> int:
        return len(self.files)

    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        path, label = self.files[i]
        return np.fromfile(path, np.uint8), np.array(label, np.int32)

    def open(self, rows: np.ndarray, workers: int) -> ds.Dataset:
        return open_random_access(self, rows)

    def identity(self) -> dict[str, Any]:
        return {"path": str(self.folder), "num_images": len(self), "num_classes": len(self.classes)}


def _images(folder: Path) -> list[str]:
    """Image files below a class folder, sorted by path."""
    found = []
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name[0] != "."]
        for name in names:
            if name[0] != "." and name.lower().endswith(IMAGE_SUFFIXES):
                found.append(os.path.join(parent, name))
    return sorted(found, key=os.fsencode)
