"""The devkit's own numbers of the classes of ILSVRC 2012, which do not follow the order of the wnids."""

from __future__ import annotations

import io
import os
import re
import tarfile
from pathlib import PurePosixPath
from typing import Any

from .class_map import read_lines

META = PurePosixPath("data", "meta.mat")
LARGEST_META = 16 << 20  # bytes; the true one has 0.1 MB


def read_devkit(path: str) -> dict[int, str]:
    """The devkit's number of each class -> wnid.

    `path`: the devkit's folder, its archive as it is downloaded (ILSVRC2012_devkit_t12.tar.gz; it is not
    unpacked), its `meta.mat`, or lines of a number and a wnid.  Raises ValueError.
    """
    if os.path.isdir(path):
        path = os.path.join(path, META)
    if path.endswith((".tar.gz", ".tgz", ".tar")):
        return read_meta_mat(io.BytesIO(meta_in(path)), f"{META} in {path}")
    if path.endswith(".mat"):
        return read_meta_mat(path, path)
    table: dict[int, str] = {}
    for number, line in enumerate(read_lines(path, "devkit table"), start=1):
        words = re.split(r"[\s,]+", line.strip())
        if words == [""]:
            continue
        if len(words) < 2 or not words[0].isdecimal() or int(words[0]) in table:
            raise ValueError(f"{path}, line {number}: {line[:60]!r} is not: number (each once), wnid")
        table[int(words[0])] = words[1]
    return table


def meta_in(path: str) -> bytes:
    """`data/meta.mat` of the devkit's archive, which is read as a stream; nothing reaches the disk."""
    try:
        with tarfile.open(path, "r|*") as tar:
            for member in tar:
                place = PurePosixPath(member.name)
                if place.is_absolute() or ".." in place.parts:
                    raise ValueError(
                        f"{path}: the member {member.name!r} points outside the archive: refused"
                    )
                if place.parts[-2:] != META.parts:
                    continue
                file = tar.extractfile(member) if member.isreg() and member.size <= LARGEST_META else None
                if file is None:
                    raise ValueError(
                        f"{path}: the member {member.name!r} is no plain file, or too large: refused"
                    )
                return file.read()
    except OSError as error:
        raise ValueError(f"devkit {path}: {error.strerror or error}") from None
    except tarfile.TarError as error:
        raise ValueError(f"devkit {path} is damaged, incomplete or no tar file ({error})") from None
    raise ValueError(f"devkit {path} holds no {META}")


def read_meta_mat(source: Any, title: str) -> dict[int, str]:
    """`source`: a path, or an open file."""
    try:
        from scipy.io import loadmat  # comes with MindSpore, which the converter itself does not need
    except ImportError:
        raise ValueError(f"devkit table {title}: reading it needs scipy; pip install scipy") from None
    try:
        synsets = loadmat(source, squeeze_me=True)["synsets"]
        return {int(item["ILSVRC2012_ID"]): str(item["WNID"]) for item in synsets}
    except OSError as error:
        raise ValueError(f"devkit table {title}: {error.strerror or error}") from None
    # scipy raises NotImplementedError for files of MATLAB 7.3.
    except (KeyError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        raise ValueError(f"devkit table {title} is not the meta.mat of ILSVRC 2012 ({error})") from None
