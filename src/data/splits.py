"""Opening the training and validation sets that the options name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from src.config import IMAGENET_TRAIN_IMAGES
from src.data import generator
from src.data.manifest import read_manifest
from src.data.sources import ClassLabel, ImageFolderSource, MindRecordSource, Source
from src.data.synthetic import SyntheticSource
from src.errors import DataError

if TYPE_CHECKING:
    from src.config import Config

SYNTHETIC_VAL_SHARE = 50_000 / IMAGENET_TRAIN_IMAGES


@dataclass(frozen=True)
class Splits:
    """The splits that a mode needs; one that it does not need is None."""

    train: Source | None
    val: Source | None
    classes: list[ClassLabel]

    def row_fault(self) -> DataError | None:
        """What was wrong with a row of a user's own source, if reading one failed."""
        faults = (getattr(source, "row_fault", None) for source in (self.train, self.val))
        return next((fault for fault in faults if fault is not None), None)

    def identity(self) -> dict[str, Any]:
        named = (("train", self.train), ("val", self.val))
        return {name: source.identity() for name, source in named if source is not None}


def open_splits(config: Config, *, train: bool, val: bool) -> Splits:
    """Open what is asked for. Raises DataError (one sentence) when it cannot be used."""
    opener = {
        "mindrecord": _open_mindrecord,
        "imagefolder": _open_folders,
        "generator": _open_generator,
        "synthetic": _open_synthetic,
    }
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
    mapping, skips = None, config.data.on_bad_image == "skip"
    if train or config.train_folder.is_dir():
        mapping = ImageFolderSource.scan(config.train_folder, None, "replace" if skips else "error")
    classes = mapping.classes if mapping else None
    val_source = None
    if val:
        val_source = ImageFolderSource.scan(config.val_folder, classes, "ignore" if skips else "error")
    some = mapping or val_source
    assert some is not None
    return Splits(mapping if train else None, val_source, list(some.classes))


def _open_generator(config: Config, train: bool, val: bool) -> Splits:
    file = config.data.data_source
    assert file is not None, "option_checks asks for it"
    module = generator.load(file)
    train_source = generator.open_split(module, file, "train", config.train_folder) if train else None
    val_source = generator.open_split(module, file, "val", config.val_folder) if val else None
    if train_source and val_source and train_source.classes != val_source.classes:
        raise DataError(f"{file}: train and val do not have the same `classes` in the same order")
    some = train_source or val_source
    assert some is not None
    return Splits(train_source, val_source, list(some.classes))


def _open_synthetic(config: Config, train: bool, val: bool) -> Splits:
    num_train = config.data.num_examples or IMAGENET_TRAIN_IMAGES
    num_val = max(1, round(num_train * SYNTHETIC_VAL_SHARE))
    classes, shape = config.model.num_classes or 1000, config.data.image_shape[1:]
    train_source = SyntheticSource(num_train, classes, shape)
    val_source = SyntheticSource(num_val, classes, shape, first_row=num_train)
    return Splits(train_source if train else None, val_source if val else None, train_source.classes)
