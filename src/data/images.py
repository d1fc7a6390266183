"""Single image files: finding them, and making sure that MindSpore sees the pixels that Pillow sees.

MindSpore's decoder ends the whole process (SIGFPE, no exception, no name) on a JPEG that is cut inside its
header, takes one that is cut short for whole, and cannot read GIF or WEBP. So each file of a folder is looked
at by another decoder before; the rules are the converter's: a folder and its records give the same pixels.
"""

from __future__ import annotations

import glob
from pathlib import Path
from typing import IO

import numpy as np

from scripts.convert_to_mindrecord.images import BadImage, ImageRules, stored_image
from src.errors import DataError

IMAGE_SUFFIXES = (".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
RULES = ImageRules()

__all__ = ["IMAGE_SUFFIXES", "BadImage", "CheckedRows", "fault", "find_images", "readable"]


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


def readable(data: bytes) -> bytes:
    """The file as MindSpore can read it: as it is, or re-encoded. The content decides, not the name.

    Raises BadImage, which says what is wrong.
    """
    return stored_image(data, RULES).data


class CheckedRows:
    """Image files by row, each looked at (about 1 ms for a photograph) when it is read for the first time."""

    def __init__(self, num_rows: int) -> None:
        self._whole = bytearray(num_rows)  # 1: can be read as it is

    def __call__(self, row: int, data: np.ndarray) -> np.ndarray:
        """uint8 bytes -> the same, or re-encoded ones. Raises BadImage."""
        if self._whole[row]:
            return data
        before = data.tobytes()
        after = readable(before)
        if after is before:
            self._whole[row] = 1
            return data
        return np.frombuffer(after, np.uint8)


def fault(file: str | IO[bytes]) -> str:
    """What is wrong with an image file, or ""."""
    try:
        data = Path(file).read_bytes() if isinstance(file, str) else file.read()
        readable(data)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except BadImage as error:
        return str(error)
    return ""
