"""Every option of the suite, once: its name, type, default and help. Nothing here imports MindSpore.

The dataclasses are the sections of `--help`, a module for each theme; the field `batch_size` is the option
`--batch-size` and the key `batch-size` of a recipe. Types use `typing` names because they are read at run
time, on Python 3.9 too.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, Dict, Tuple

from src.config.augmentation import Augmentation
from src.config.data import Data, Pipeline
from src.config.model import Model
from src.config.output import Launch, Output, Platform
from src.config.training import Training

__all__ = [
    "Augmentation", "Config", "Data", "Launch", "Model", "Output", "Pipeline", "Platform", "RunnerConfig",
    "Training",
]  # fmt: skip

LR_BASE_BATCH = 256  # the published rate 0.256 is stated for 256 images (Goyal et al. 2017, linear scaling)
IMAGENET_TRAIN_IMAGES = 1_281_167
VAL_RESIZE_RATIO = 256 / 224  # published evaluation: shorter side 256, centre 224


@dataclasses.dataclass(frozen=True)
class Config:
    """Train, validate and use ResNet on ImageNet, or on any folder of classes, with MindSpore."""

    model: Model = dataclasses.field(default_factory=Model)
    training: Training = dataclasses.field(default_factory=Training)
    data: Data = dataclasses.field(default_factory=Data)
    pipeline: Pipeline = dataclasses.field(default_factory=Pipeline)
    augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)
    output: Output = dataclasses.field(default_factory=Output)
    platform: Platform = dataclasses.field(default_factory=Platform)

    @property
    def trains(self) -> bool:
        return self.training.mode in ("train_val", "train") and not self.training.test_io

    @property
    def validates(self) -> bool:
        return self.training.mode in ("train_val", "val") and not self.training.test_io

    @property
    def train_folder(self) -> Path:
        return self.data.data_train or self.data.data_root / "train"

    @property
    def val_folder(self) -> Path:
        return self.data.data_val or self.data.data_root / "val"

    def train_size(self, epoch: int) -> Tuple[int, int]:
        """Height and width of the training images of an epoch, in pixels."""
        height, width = self.data.image_shape[1:]
        for step in self.data.image_size_steps:
            size, first_epoch = (int(number) for number in step.split("@"))
            if epoch >= first_epoch:
                height = width = size
        return height, width

    @property
    def val_size(self) -> Tuple[int, int]:
        """Height and width of the images of validation and prediction, in pixels."""
        size = self.data.val_image_size
        return (size, size) if size else self.train_size(sys.maxsize)

    @property
    def val_resize(self) -> int:
        """Shorter side before the centre crop, in pixels."""
        return self.data.data_val_resize or round(max(self.val_size) * VAL_RESIZE_RATIO)

    def train_resize(self, size: Tuple[int, int]) -> int:
        """Shorter side before a crop of `size`, in the proportion that validation has."""
        return round(max(size) * self.val_resize / max(self.val_size))

    def global_batch_size(self, num_devices: int) -> int:
        """Images per update of the weights."""
        return num_devices * self.training.batch_size * self.training.accumulation

    def peak_lr(self, global_batch_size: int) -> float:
        return self.training.lr * global_batch_size / LR_BASE_BATCH

    def flat(self) -> Dict[str, object]:
        """Option name (with dashes) -> value, in the order of --help."""
        return {
            field.name.replace("_", "-"): getattr(section, field.name)
            for section in (getattr(self, f.name) for f in dataclasses.fields(self))
            for field in dataclasses.fields(section)
        }

    def plain(self) -> Dict[str, Any]:
        """`flat` as JSON holds it: paths as text, tuples as lists."""
        plain: Dict[str, Any] = json.loads(json.dumps(self.flat(), default=str))
        return plain


@dataclasses.dataclass(frozen=True)
class RunnerConfig(Config):
    """Train, validate and use ResNet on one or many devices: one supervised train.py per device."""

    launch: Launch = dataclasses.field(default_factory=Launch)

    def for_rank(self) -> Config:
        """The same options without runner's own."""
        return Config(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Config)})
