"""MindRecord files as files: what their headers say, whether they are whole, what they add up to."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from failure import ConvertError
from layout import LARGEST_HEADER


def checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def read_header(path: Path) -> dict[str, Any]:
    """MindRecord's own description of a file: JSON behind its length."""
    with open(path, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        return json.loads(handle.read(min(length, LARGEST_HEADER)))


def size_by_header(header: dict[str, Any]) -> int:
    """Bytes of a whole file: pages of one size, the last of which ends with its content."""
    ends = [page["page_id"] * header["page_size"] + page["page_size"] for page in header["page"]]
    return header["header_size"] + max(ends, default=0)


def seal(path: Path, num_rows: int) -> dict[str, Any]:
    """Count, flush to the disk and sum up what MindSpore wrote; make it readable for other users."""
    index = Path(f"{path}.db")
    database = sqlite3.connect(f"{index.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        indexed = database.execute("SELECT COUNT(*) FROM INDEXES").fetchone()[0]
    finally:
        database.close()
    if indexed != num_rows:
        raise ConvertError(f"{path.name}: {num_rows} rows were written, but MindSpore indexed {indexed}")
    size, expected = path.stat().st_size, size_by_header(read_header(path))
    if size < expected:  # MindSpore does not notice each write that fails
        raise ConvertError(f"{path.name}: only {size:,} of {expected:,} bytes reached the disk")
    for file in (path, index):
        file.chmod(0o644)  # MindSpore leaves 0600
        with open(file, "rb") as handle:
            os.fsync(handle.fileno())
    return {
        "num_bytes": size,
        "index_num_bytes": index.stat().st_size,
        "sha256": checksum(path),
        "index_sha256": checksum(index),
    }


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
