"""Finds a plug-in (a folder with `mr_api.py`) and gives its functions one checked shape."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

import numpy as np
from failure import DATA_UNUSABLE, WRONG_OPTIONS, ConvertError

REQUIRED = ("mindrecord_task_number", "mindrecord_dict_data", "mindrecord_schema")
FIELD_TYPES = {"int32", "int64", "float32", "float64", "string", "bytes"}


class PlugIn:
    """One `mr_api.py`: what it must have is checked here, what it may leave out gets its default here."""

    def __init__(self, module: Any, folder: Path) -> None:
        self.module = module
        self.folder = folder
        self.name = os.path.basename(os.path.abspath(folder))
        self.schema: dict[str, dict] = module.mindrecord_schema
        self.index_fields: list[str] = list(getattr(module, "mindrecord_index_fields", []))
        default_images = ["image"] if self.schema.get("image", {}).get("type") == "bytes" else []
        self.image_fields: list[str] = list(getattr(module, "mindrecord_image_fields", default_images))

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        if hasattr(self.module, "mindrecord_options"):
            group = parser.add_argument_group(f"options of the plug-in {self.name}")
            try:
                self.module.mindrecord_options(group)
            except argparse.ArgumentError as error:
                raise ConvertError(
                    f"the plug-in {self.name} wants an option that writer.py has itself: {error}",
                    WRONG_OPTIONS,
                ) from error

    def configure(self, args: argparse.Namespace) -> None:
        """Hand the parsed options over; a ValueError of the plug-in means that the data cannot be used."""
        if not hasattr(self.module, "mindrecord_configure"):
            return
        try:
            self.module.mindrecord_configure(args)
        except argparse.ArgumentTypeError as error:
            raise ConvertError(str(error), WRONG_OPTIONS) from error
        except (ValueError, OSError) as error:
            raise ConvertError(str(error), DATA_UNUSABLE) from error

    def task_number(self) -> int:
        number = self.module.mindrecord_task_number()
        if not isinstance(number, int) or number < 1:
            sentence = (
                f"the plug-in {self.name} has {number!r} tasks: mindrecord_task_number() must be 1 or more"
            )
            raise ConvertError(sentence, DATA_UNUSABLE)
        return number

    def rows(self, task_id: int) -> Iterator[dict]:
        return self.module.mindrecord_dict_data(task_id)

    def classes(self) -> Optional[list[tuple[str, str]]]:
        """(folder or wnid, name) of each label, or None where the plug-in does not say."""
        if not hasattr(self.module, "mindrecord_classes"):
            return None
        return [(str(wnid), str(name)) for wnid, name in self.module.mindrecord_classes()]

    def sizes(self) -> Optional[tuple[int, int]]:
        """(bytes of all rows, bytes of the largest row), estimated, or None."""
        if not hasattr(self.module, "mindrecord_sizes"):
            return None
        total, largest = self.module.mindrecord_sizes()
        return int(total), int(largest)

    def task_sizes(self, num_tasks: int) -> Optional[np.ndarray]:
        """Bytes of each task, estimated, or None."""
        if not hasattr(self.module, "mindrecord_task_sizes"):
            return None
        sizes = np.asarray(list(self.module.mindrecord_task_sizes()), np.int64).clip(0)  # 8 bytes a task
        if len(sizes) != num_tasks:
            raise ConvertError(
                f"the plug-in {self.name} has {num_tasks} tasks, and mindrecord_task_sizes() gives "
                f"{len(sizes)} sizes: there must be one for each task"
            )
        return sizes

    def fingerprint(self) -> Optional[str]:
        """Changes whenever the sources do, or None."""
        if not hasattr(self.module, "mindrecord_fingerprint"):
            return None
        return str(self.module.mindrecord_fingerprint())


def find_folder(script: str, here: Path) -> Path:
    """`script` is a folder beside writer.py, or the path of a folder anywhere."""
    for folder in (here / script, Path(script)):
        if (folder / "mr_api.py").is_file():
            return folder
    known = ", ".join(sorted(path.parent.name for path in here.glob("*/mr_api.py")))
    raise ConvertError(
        f"--mindrecord_script {script}: neither {here / script} nor {Path(script).absolute()} holds an "
        f"mr_api.py; give one of {known}, or copy template/ and edit it",
        WRONG_OPTIONS,
    )


def load_plugin(script: str, here: Path) -> PlugIn:
    folder = find_folder(script, here)
    path = folder / "mr_api.py"
    # As a package, so that a plug-in of several files can say `from .other import ...`.
    spec = importlib.util.spec_from_file_location("mr_api", path, submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mr_api"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    missing = [name for name in REQUIRED if not hasattr(module, name)]
    if missing:
        raise ConvertError(f"{path} lacks {', '.join(missing)}: see template/mr_api.py", WRONG_OPTIONS)
    check_schema(module.mindrecord_schema, path)
    return PlugIn(module, folder)


def check_schema(schema: dict, path: Path) -> None:
    for field, description in schema.items():
        if not isinstance(description, dict) or description.get("type") not in FIELD_TYPES:
            raise ConvertError(
                f"{path}: the field {field!r} of mindrecord_schema is {description!r}: "
                f"its type must be one of {', '.join(sorted(FIELD_TYPES))}",
                WRONG_OPTIONS,
            )
