"""MindRecord files as files: what their headers say, whether they are whole, what they add up to."""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
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
    """Flush a finished file and its index to the disk, make them readable for all, and sum them up."""
    files = path, Path(f"{path}.db")
    with ThreadPoolExecutor(1) as beside:  # the disk works while the sums are made
        flushed = [beside.submit(flush, file) for file in files]
        sha256, index_sha256 = map(checksum, files)
        for task in flushed:
            task.result()
    num_bytes, index_num_bytes = (file.stat().st_size for file in files)
    return {
        "num_bytes": num_bytes,
        "index_num_bytes": index_num_bytes,
        "sha256": sha256,
        "index_sha256": index_sha256,
    }


def flush(file: Path) -> None:
    file.chmod(0o644)  # whatever the umask: other users and containers read records too
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
