"""Where rows come from: a source knows its classes and opens a dataset of rows in a given order."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Sequence

import numpy as np

from src.data.images import IMAGE_SUFFIXES, BadImage, CheckedRows
from src.data.manifest import Manifest
from src.data.sampling import IGNORED_LABEL
from src.errors import DataError

if TYPE_CHECKING:
    import mindspore.dataset as ds


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
    """FOLDER/<class>/<image files>: classes sorted by name, files by path; the label is the class's index.

    `on_bad_image`, for a file that cannot be decoded: "error" ends the run; "replace" gives the next good
    file, with that one's label (training); "ignore" gives it with IGNORED_LABEL (validation).
    """

    folder: Path
    classes: list[ClassLabel]
    files: list[tuple[str, int]]
    on_bad_image: str = "error"
    encoded: bool = field(default=True, init=False)
    row_fault: DataError | None = field(default=None, init=False)  # MindSpore wraps what a row raises
    bad_rows: dict[int, str] = field(default_factory=dict, init=False)  # met so far, and what is wrong

    def __post_init__(self) -> None:
        self._checked = CheckedRows(len(self.files))

    @classmethod
    def scan(
        cls, folder: Path, mapping: Sequence[ClassLabel] | None = None, on_bad_image: str = "error"
    ) -> ImageFolderSource:
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
        return cls(folder, [ClassLabel(name, name) for name in names], files, on_bad_image)

    def __len__(self) -> int:
        return len(self.files)

    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Raises DataError for a bad file, and keeps it for whoever meets MindSpore's error."""
        image = self._read(i)
        label = self.files[i][1]
        if image is None:
            image, label = self._stand_in(i)
            if self.on_bad_image == "ignore":
                label = IGNORED_LABEL
        return image, np.array(label, np.int32)

    def _read(self, i: int) -> np.ndarray | None:
        """The bytes of row i, or None if they are no image and that is no error."""
        path = self.files[i][0]
        try:
            return self._checked(i, np.fromfile(path, np.uint8))
        except BadImage as error:
            why = str(error)
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
        if self.on_bad_image == "error":
            self.row_fault = self.row_fault or DataError(
                f"{path} {why}; mend or remove it, or go on without such files: --on-bad-image skip"
            )
            raise self.row_fault
        if i not in self.bad_rows:
            self.bad_rows[i] = why
            print(f"--on-bad-image skip: {path} {why}", file=sys.stderr, flush=True)
        return None

    def _stand_in(self, i: int) -> tuple[np.ndarray, int]:
        """The next good row after row i."""
        for j in range(i + 1, i + len(self.files)):
            image = self._read(j % len(self.files))
            if image is not None:
                return image, self.files[j % len(self.files)][1]
        self.row_fault = DataError(f"{self.folder}: not one of {len(self.files)} files can be decoded")
        raise self.row_fault

    def open(self, rows: np.ndarray, workers: int) -> ds.Dataset:
        return open_random_access(self, rows, workers)

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
