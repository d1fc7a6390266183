"""MindRecord files as files: what their headers say, whether they are whole, what they add up to."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from layout import LARGEST_HEADER


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    digest, block = hashlib.sha256(), memoryview(bytearray(1 << 18))
    with open(path, "rb", buffering=0) as handle:
        while size := handle.readinto(block):
            digest.update(block[:size])
    return digest.hexdigest()


def read_header(path: Path) -> dict[str, Any]:
    """MindRecord's own description of a file: JSON behind its length."""
    with open(path, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        return json.loads(handle.read(min(length, LARGEST_HEADER)))


def seal(path: Path) -> dict[str, Any]:
    """Make a finished file and its index readable for all, and sum them up; see also `flush`."""
    index = Path(f"{path}.db")
    for file in (path, index):
        file.chmod(0o644)  # whatever the umask: other users and containers read records too
    return {
        "num_bytes": path.stat().st_size,
        "index_num_bytes": index.stat().st_size,
        "sha256": checksum(path),
        "index_sha256": checksum(index),
    }


def flush(path: Path) -> None:
    """Return when a file and its index, where there are any, are on the disk.  Raises OSError."""
    for file in (path, Path(f"{path}.db")):
        if file.exists():
            with open(file, "rb") as handle:
                os.fsync(handle.fileno())


def is_intact(folder: Path, report: dict[str, Any]) -> bool:
    """The files of a recorded shard are there, byte for byte."""
    if not report["num_rows"]:
        return True
    path = folder / report["file"]
    index = Path(f"{path}.db")
    if not path.is_file() or not index.is_file():
        return False
    found = [path.stat().st_size, index.stat().st_size]
    if found != [report["num_bytes"], report["index_num_bytes"]]:
        return False
    return [checksum(path), checksum(index)] == [report["sha256"], report["index_sha256"]]
