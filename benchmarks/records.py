"""Real photographs for benchmarks, as the records that the suite trains on."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from benchmarks.measuring import ROOT

PHOTOGRAPHS, SMALL_IMAGES = "imagenet-samples.tar", "tiny-imagenet-10.tar"


def archive(name: str) -> Path | None:
    """An archive of images, in $SUITE_DATA_DIR or where tests look, too; None if there is none."""
    path = Path(os.environ.get("SUITE_DATA_DIR", ROOT.parent / "shared" / "data"), name)
    return path if path.is_file() else None


def made_from(path: Path, scratch: Path, val_per_class: int | None = None) -> Path:
    """The archive's images (FOLDER/train/<class>/*, perhaps FOLDER/val) as records below `scratch`.

    With `val_per_class` only so many of each class for validation.
    """
    images = scratch / "images"
    with tarfile.open(path) as tar:
        tar.extractall(images, filter="data")
    (source,) = [folder for folder in images.iterdir() if folder.is_dir()]
    if val_per_class is not None:
        for folder in (source / "val").iterdir():
            for image in sorted(folder.iterdir())[val_per_class:]:
                image.unlink()
    words = [sys.executable, "scripts/prepare_dataset.py", source, scratch / "records"]
    done = subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{path} was not converted: {done.stderr[-500:]}")
    return scratch / "records"
