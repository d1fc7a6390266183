"""Where rows come from: a source knows its classes and opens a dataset of rows in a given order."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Sequence

import numpy as np

from src.config import IMAGENET_TRAIN_IMAGES
from src.data.manifest import Manifest, read_manifest
from src.errors import DataError

if TYPE_CHECKING:
    import mindspore.dataset as ds

    from src.config import Config

IMAGE_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff")
SYNTHETIC_VAL_SHARE = 50_000 / IMAGENET_TRAIN_IMAGES


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


def _open_random_access(source: Any, rows: np.ndarray) -> ds.Dataset:
    import mindspore.dataset as ds

    return ds.GeneratorDataset(
        RandomAccess(source),
        ["image", "label"],
        sampler=ds.SubsetSampler(rows.tolist()),
        num_parallel_workers=1,  # reading bytes is cheap, and one thread keeps the order simple
        python_multiprocessing=False,
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
        return _open_random_access(self, rows)

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


@dataclass
class SyntheticSource:
    """Generated images that can be learned: noise plus a coarse pattern of the class.

    Pattern and label depend on the row alone, so that training and validation follow one rule.
    """

    num_rows: int
    num_classes: int
    shape: tuple[int, int]  # height, width
    first_row: int = 0  # validation goes on where training ends: same rule, other images
    encoded: bool = field(default=False, init=False)

    CELLS = 4
    NOISE_STD, PATTERN_STD = 24.0, 48.0

    def __post_init__(self) -> None:
        self.classes = [ClassLabel(str(k), f"class {k}") for k in range(self.num_classes)]
        height, width = self.shape
        noise = np.random.RandomState(0).standard_normal((2 * height, 2 * width, 3))
        self._noise = (noise * self.NOISE_STD).astype(np.int16)

    def __len__(self) -> int:
        return self.num_rows

    def _pattern(self, label: int) -> np.ndarray:
        coarse = (
            np.random.RandomState(label + 1).standard_normal((self.CELLS, self.CELLS, 3)) * self.PATTERN_STD
        )
        height, width = self.shape
        rows, columns = np.arange(height) * self.CELLS // height, np.arange(width) * self.CELLS // width
        return coarse.astype(np.int16)[rows][:, columns]

    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.RandomState(self.first_row + i)
        label = int(draw.randint(self.num_classes))
        height, width = self.shape
        top, left = draw.randint(height), draw.randint(width)
        pixels = 128 + self._pattern(label) + self._noise[top : top + height, left : left + width]
        return np.clip(pixels, 0, 255).astype(np.uint8), np.array(label, np.int32)

    def open(self, rows: np.ndarray, workers: int) -> ds.Dataset:
        return _open_random_access(self, rows)

    def identity(self) -> dict[str, Any]:
        return {"path": "synthetic", "num_images": self.num_rows, "num_classes": self.num_classes}


@dataclass(frozen=True)
class Splits:
    """The splits that a mode needs; one that it does not need is None."""

    train: Source | None
    val: Source | None
    classes: list[ClassLabel]

    def identity(self) -> dict[str, Any]:
        named = (("train", self.train), ("val", self.val))
        return {name: source.identity() for name, source in named if source is not None}


def open_splits(config: Config, *, train: bool, val: bool) -> Splits:
    """Open what is asked for. Raises DataError (one sentence) when it cannot be used."""
    opener = {"mindrecord": _open_mindrecord, "imagefolder": _open_folders, "synthetic": _open_synthetic}
    splits = opener[config.data.data_backend](config, train, val)
    wanted = config.model.num_classes
    if wanted is not None and wanted < len(splits.classes):
        raise DataError(f"the data set has {len(splits.classes)} classes, --num-classes is {wanted}")
    return splits


def _open_mindrecord(config: Config, train: bool, val: bool) -> Splits:
    train_source = MindRecordSource(read_manifest(config.train_folder)) if train else None
    val_source = MindRecordSource(read_manifest(config.val_folder)) if val else None
    if train_source and val_source and train_source.classes != val_source.classes:
        raise DataError(
            f"{config.train_folder} and {config.val_folder} do not have the same classes in the same order; "
            "convert the validation set with the training set's mapping"
        )
    some = train_source or val_source
    assert some is not None
    return Splits(train_source, val_source, list(some.classes))


def _open_folders(config: Config, train: bool, val: bool) -> Splits:
    # The mapping is the training folder's even when only validation is read.
    mapping = None
    if train or config.train_folder.is_dir():
        mapping = ImageFolderSource.scan(config.train_folder)
    val_source = (
        ImageFolderSource.scan(config.val_folder, mapping.classes if mapping else None) if val else None
    )
    some = mapping or val_source
    assert some is not None
    return Splits(mapping if train else None, val_source, list(some.classes))


def _open_synthetic(config: Config, train: bool, val: bool) -> Splits:
    num_train = config.data.num_examples or IMAGENET_TRAIN_IMAGES
    num_val = max(1, round(num_train * SYNTHETIC_VAL_SHARE))
    classes, shape = config.model.num_classes or 1000, config.data.image_shape[1:]
    train_source = SyntheticSource(num_train, classes, shape)
    val_source = SyntheticSource(num_val, classes, shape, first_row=num_train)
    return Splits(train_source if train else None, val_source if val else None, train_source.classes)
