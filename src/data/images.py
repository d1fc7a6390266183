"""Single image files: finding them, and looking whether they can be decoded."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import IO

from PIL import Image, UnidentifiedImageError

from src.data.sources import IMAGE_SUFFIXES
from src.errors import DataError

MINDSPORE_FORMATS = ("BMP", "JPEG", "PNG", "TIFF")


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


def fault(file: str | IO[bytes]) -> str:
    """What is wrong with an image file, or "". A cut file could kill MindSpore's decoder, hence this look."""
    try:
        with Image.open(file) as image:
            kind = image.format
            image.load()
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError) as error:
        return f"cannot be decoded: {error}"
    if kind not in MINDSPORE_FORMATS:
        return f"is a {kind}; only {', '.join(MINDSPORE_FORMATS)} can be read"
    return ""
