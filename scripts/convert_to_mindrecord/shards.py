"""Writes one whole shard: rows from the plug-in, images checked, one serial FileWriter, one checksum.

Runs in a worker process.  MindSpore is imported only here: the main process must stay free to fork.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np
from failure import DATA_UNUSABLE, ConvertError
from images import BadImage, check_image
from layout import LARGEST_PAGE, ROW_OVERHEAD, Layout, tasks_of_shard
from plugin import PlugIn

BATCH_ROWS, BATCH_BYTES = 64, 4 << 20  # write_raw_data costs 0.2 ms a call
NUMBERS = {"int32": (int, np.integer), "int64": (int, np.integer)}
FLOATS = (int, float, np.integer, np.floating)


class PageTooSmall(Exception):
    """A row of `row_bytes` does not fit; all shards must be written anew, as they must agree on the size."""

    def __init__(self, row_bytes: int) -> None:
        super().__init__(row_bytes)
        self.row_bytes = row_bytes


@dataclass(frozen=True)
class Job:
    """What every shard of one conversion shares."""

    plugin: PlugIn
    layout: Layout
    num_tasks: int
    folder: Path
    names: list[str]
    num_classes: Optional[int]


class Shard:
    """One shard in the making, and what is to be said of it."""

    def __init__(self, job: Job, index: int) -> None:
        self.job = job
        self.path = job.folder / job.names[index]
        self.num_rows = 0
        self.labels: Counter[int] = Counter()
        self.refused: list[dict] = []
        self.repaired: list[dict] = []
        self.batch: list[dict] = []
        self.batch_bytes = 0
        self.writer: Any = None  # with the first rows, so that a broken plug-in fails before the long import

    def add(self, row: dict, place: str) -> None:
        """Check one row and write it; `place` names it where it has no file name."""
        row = dict(row)
        name = str(row.get("file_name", place))
        try:
            self.check_images(row, name)
            size = sum(len(v) if isinstance(v, bytes) else getattr(v, "nbytes", 0) for v in row.values())
            if size + ROW_OVERHEAD > LARGEST_PAGE:
                raise BadImage(f"has {size} bytes, more than the 256 MiB that MindRecord can store in a row")
        except BadImage as error:
            self.refused.append({"file": name, "reason": str(error)})
            return
        row = checked_row(row, self.job, place)
        if size + ROW_OVERHEAD > self.job.layout.page_size:
            raise PageTooSmall(size)
        if isinstance(row.get("label"), int):
            self.labels[row["label"]] += 1
        self.batch.append(row)
        self.batch_bytes += size
        if len(self.batch) >= BATCH_ROWS or self.batch_bytes >= BATCH_BYTES:
            self.flush()

    def check_images(self, row: dict, name: str) -> None:
        for field in self.job.plugin.image_fields:
            data = row.get(field)
            if isinstance(data, OSError):  # how a plug-in says that a file could not be read
                raise BadImage(f"cannot be read: {data.strerror or data}")
            if not isinstance(data, (bytes, bytearray)):
                continue  # checked_row() says what is wrong
            row[field], repair = check_image(bytes(data))
            if repair:
                self.repaired.append({"file": name, "reason": repair})

    def open_writer(self) -> Any:
        from mindspore.mindrecord import FileWriter

        writer = FileWriter(str(self.path), shard_num=1)
        writer.set_header_size(self.job.layout.header_size)
        writer.set_page_size(self.job.layout.page_size)
        writer.add_schema(self.job.plugin.schema, self.job.plugin.name)
        if self.job.plugin.index_fields:
            writer.add_index(self.job.plugin.index_fields)
        return writer

    def flush(self) -> None:
        if self.batch:
            self.writer = self.writer or self.open_writer()
            self.writer.write_raw_data(self.batch)
            self.num_rows += len(self.batch)
            self.batch, self.batch_bytes = [], 0

    def finish(self) -> dict[str, Any]:
        """Close the files; a shard without rows leaves none."""
        self.flush()
        report: dict[str, Any] = {"file": self.path.name, "num_rows": self.num_rows}
        if self.num_rows:
            from mindspore import __version__ as version

            self.writer.commit()
            report.update(mindspore=version, **seal(self.path, self.num_rows))
        report.update(labels=dict(self.labels), refused=self.refused, repaired=self.repaired)
        return report


def checked_row(row: dict, job: Job, place: str) -> dict:
    """The row with plain Python numbers.  MindSpore itself drops misfits with no more than a warning."""
    values = {}
    for field, description in job.plugin.schema.items():
        kind = description["type"]
        if field not in row:
            raise ConvertError(
                f"{place}: the row lacks the field {field!r} of mindrecord_schema", DATA_UNUSABLE
            )
        value = row[field]
        if "shape" in description:
            fits = isinstance(value, np.ndarray) and value.dtype.name == kind
        elif kind in NUMBERS:
            fits = isinstance(value, NUMBERS[kind]) and not isinstance(value, bool)
            value = int(value) if fits else value
            fits = fits and -(2 ** (int(kind[3:]) - 1)) <= value < 2 ** (int(kind[3:]) - 1)
        elif kind.startswith("float"):
            fits = isinstance(value, FLOATS) and not isinstance(value, bool)
            value = float(value) if fits else value
        else:
            fits = isinstance(value, {"string": str, "bytes": bytes}[kind])
        if not fits:
            what = f"{type(value).__name__} {str(value)[:60]!r}"
            raise ConvertError(f"{place}: the field {field!r} is {what}, which is no {kind}", DATA_UNUSABLE)
        values[field] = value
    label = values.get("label")
    highest = job.num_classes - 1 if job.num_classes else 2**31 - 1  # MindSpore trains on -1 without a word
    if isinstance(label, int) and not 0 <= label <= highest:
        raise ConvertError(f"{place}: label {label} is outside 0..{highest}", DATA_UNUSABLE)
    return values


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
    for file in (path, index):
        file.chmod(0o644)  # MindSpore leaves 0600
        with open(file, "rb") as handle:
            os.fsync(handle.fileno())
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return {
        "num_bytes": path.stat().st_size,
        "index_num_bytes": index.stat().st_size,
        "sha256": digest.hexdigest(),
    }


def write_shard(job: Job, index: int, report: Callable[[int, int], None]) -> dict[str, Any]:
    """Write shard `index`; calls `report(tasks, rows)` as it goes.  Raises ConvertError, PageTooSmall."""
    try:
        shard = Shard(job, index)
        for task in tasks_of_shard(index, job.layout.num_shards, job.num_tasks):
            rows = 0
            for rows, row in enumerate(job.plugin.rows(task), start=1):
                shard.add(row, f"row {rows - 1} of task {task}")
                report(0, 1)
            report(1, 0)
        return shard.finish()
    except RuntimeError as error:  # what MindSpore raises for everything
        free = shutil.disk_usage(job.folder).free
        reason = next((x[8:] for x in str(error).splitlines() if x.startswith("[ERROR] ")), str(error)[:200])
        raise ConvertError(
            f"MindSpore could not write {job.folder / job.names[index]}: {reason.strip()} "
            f"({free / 1e6:,.0f} MB are free there; if a header is too big, use more --mindrecord_partitions)"
        ) from error
