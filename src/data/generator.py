"""A user's own Python source: one file with `open_split(split, folder)` (--data-backend generator).

docs/own-data.md tells what the function returns. Nothing here imports MindSpore.
"""

from __future__ import annotations

import hashlib
import importlib.util
import operator
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from src.data.images import BadImage, CheckedRows
from src.data.sources import ClassLabel, open_random_access
from src.errors import DataError, OptionError

if TYPE_CHECKING:
    import mindspore.dataset as ds

FUNCTION = "open_split"
MODULE_NAME = "data_source"  # under which the user's file stands in sys.modules: dataclasses look there


@dataclass
class GeneratorSource:
    """One split of the user's source. Each row is checked when read: MindSpore takes label -1 silently."""

    file: Path
    split: str
    folder: Path
    source: Any
    classes: list[ClassLabel] = field(default_factory=list)
    encoded: bool = False
    num_rows: int = 0
    row_fault: DataError | None = None  # of a row that could not be used; MindSpore wraps what is raised

    def __post_init__(self) -> None:
        """Check what can be known before training: classes, length, the first row. Raises DataError."""
        self.classes = self._checked_classes()
        try:
            self.num_rows = len(self.source)
        except Exception as error:
            self._refuse_error("has no usable len()", error)
        if self.num_rows < 1:
            self._refuse("has no rows")
        image, _ = self._read(0)
        self.encoded = image.ndim == 1
        self._checked = CheckedRows(self.num_rows)
        self._readable(0, image)

    def __len__(self) -> int:
        return self.num_rows

    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Raises DataError, and keeps it for whoever meets MindSpore's error."""
        try:
            image, label = self._read(i)
            if (image.ndim == 1) != self.encoded:
                kinds = ("an image file's bytes", "pixels")
                self._refuse(f"row {i} holds {kinds[self.encoded]}, and row 0 {kinds[not self.encoded]}")
            return self._readable(i, image), label
        except DataError as error:
            self.row_fault = self.row_fault or error
            raise

    def _readable(self, i: int, image: np.ndarray) -> np.ndarray:
        """Pixels as they are; an image file as MindSpore can read it."""
        try:
            return self._checked(i, image) if self.encoded else image
        except BadImage as error:
            self._refuse(f"row {i}: its image {error}")

    def open(self, rows: np.ndarray, workers: int) -> ds.Dataset:
        return open_random_access(self, rows, workers)

    def identity(self) -> dict[str, Any]:
        return {
            "path": str(self.folder),
            "source": str(self.file),
            "source_sha256": hashlib.sha256(self.file.read_bytes()).hexdigest(),
            "num_images": self.num_rows,
            "num_classes": len(self.classes),
        }

    def _read(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        try:
            found = self.source[i]
        except Exception as error:
            self._refuse_error(f"row {i} failed", error)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            self._refuse(f"row {i} is {_shown(found)}, not (image, label)")
        image = _image(found[0])
        if image is None:
            self._refuse(
                f"row {i}: its image is {_shown(found[0])}; expected the bytes of an image file, "
                "or pixels (height, width, 3) uint8"
            )
        try:
            label = operator.index(found[1])
        except TypeError:
            self._refuse(f"row {i}: its label is {_shown(found[1])}, not a whole number")
        if not 0 <= label < len(self.classes):
            self._refuse(f"row {i}: label {label} is outside 0..{len(self.classes) - 1}")
        return image, np.array(label, np.int32)

    def _checked_classes(self) -> list[ClassLabel]:
        """`classes` as (identifier, name); a plain name is both."""
        try:
            given = list(self.source.classes)
        except Exception as error:
            self._refuse_error("has no usable list `classes`", error)
        labels = []
        for item in given:
            pair = (item, item) if isinstance(item, str) else item
            if not (isinstance(pair, (tuple, list)) and [type(part) for part in pair] == [str, str]):
                self._refuse(f"`classes` holds {_shown(item)}; expected names, or pairs (identifier, name)")
            labels.append(ClassLabel(*pair))
        if not labels:
            self._refuse("`classes` is empty")
        twice = {label.wnid for label in labels if [one.wnid for one in labels].count(label.wnid) > 1}
        if twice:
            self._refuse(f"`classes` holds {min(twice)!r} more than once")
        return labels

    def _refuse(self, what: str) -> NoReturn:
        raise DataError(f"{self.file}: {FUNCTION}({self.split!r}): {what}")

    def _refuse_error(self, what: str, error: Exception) -> NoReturn:
        raise DataError(
            f"{self.file}: {FUNCTION}({self.split!r}): {what}: {_told(error, self.file)}"
        ) from error


def load(file: Path) -> ModuleType:
    """Run the user's file. Raises OptionError when it is not there, does not run, or lacks the function."""
    if not file.is_file():
        raise OptionError(f"--data-source {file}: no such file")
    spec = importlib.util.spec_from_file_location(MODULE_NAME, file.resolve())
    if spec is None or spec.loader is None:
        raise OptionError(f"--data-source {file}: a Python file (.py) is expected")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise OptionError(f"--data-source {file} does not run: {_told(error, file)}") from error
    if not callable(getattr(module, FUNCTION, None)):
        raise OptionError(f"--data-source {file} has no function {FUNCTION}(split, folder)")
    return module


def open_split(module: ModuleType, file: Path, split: str, folder: Path) -> GeneratorSource:
    """Ask the user's function for a split, "train" or "val". Raises DataError."""
    try:
        source = getattr(module, FUNCTION)(split, folder)
    except Exception as error:
        raise DataError(f"{file}: {FUNCTION}({split!r}, {str(folder)!r}): {_told(error, file)}") from error
    return GeneratorSource(file, split, folder, source)


def _image(value: Any) -> np.ndarray | None:
    """The bytes (n,) or pixels (height, width, 3) as uint8, or None for anything else."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = np.frombuffer(value, np.uint8)
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.size == 0:
        return None
    if value.ndim != 1 and (value.ndim != 3 or value.shape[2] != 3):
        return None
    return np.ascontiguousarray(value)


def _shown(value: Any) -> str:
    """A value's kind, as its author would recognise it."""
    if isinstance(value, np.ndarray):
        return f"an array {value.shape} {value.dtype}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    kind = f"{type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    return f"{kind} {str(value)[:40]!r}" if isinstance(value, (str, int, float)) else kind


def _told(error: BaseException, file: Path) -> str:
    """`ValueError: what (line 12)`: the user's innermost line."""
    own = str(file.resolve())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    if isinstance(error, SyntaxError) and error.filename == own:
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    text = " ".join(str(error).split()) or "without a message"
    return f"{type(error).__name__}: {text}" + (f" (line {lines[-1]})" if lines else "")
