"""Writes one whole shard: rows from the plug-in, images checked, one file and its index, one checksum.

Runs in a worker process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from failure import ConvertError, DiskFull, is_disk_full
from images import BadImage, ImageRules, IsWhole, judge_none, stored_image
from layout import LARGEST_PAGE, ROW_OVERHEAD, Layout
from mindrecord_file import HeaderTooSmall, MindRecordFile
from plugin import PlugIn
from record_files import is_intact, seal
from resume import ShardRecords
from rows import checked_row, row_bytes, row_checksum
from watch import RowAtHand

Report = Callable[[int, int, int], None]  # so many more tasks, rows, bytes are done


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
    tasks: list[range]  # of each shard
    shards: range  # those that this machine writes
    folder: Path
    names: list[str]
    records: ShardRecords
    num_classes: Optional[int] = None
    rules: ImageRules = dataclasses.field(default_factory=ImageRules)
    sources_known: bool = False  # to be what they were when a kept shard was made
    is_whole: IsWhole = judge_none  # changes how long a check takes, never what comes out

    @property
    def num_tasks(self) -> int:
        """Of the shards that are written here."""
        return sum(len(self.tasks[index]) for index in self.shards)


class Shard:
    """One shard in the making, and what is to be said of it."""

    def __init__(self, job: Job, index: int, at_hand: RowAtHand) -> None:
        self.job = job
        self.at_hand = at_hand
        self.path = job.folder / job.names[index]
        for left in (self.path, Path(f"{self.path}.db")):  # by a run that was killed while writing it
            left.unlink(missing_ok=True)
        self.num_rows = 0
        self.labels: Counter[int] = Counter()
        self.counts: Counter[str] = Counter()
        self.refused: list[dict] = []
        self.repaired: list[dict] = []
        self.file: Optional[MindRecordFile] = None  # with the first row: a shard without rows leaves none

    def add(self, row: dict, task: int, number: int, killed: str = "") -> None:
        """Check row `number` of a task and write it; `killed`: how checking it ended a worker before."""
        row, place = dict(row), f"row {number} of task {task}"
        name = str(row.get("file_name", place))
        try:
            if killed:
                raise BadImage(f"ended the process that decoded it ({killed})")
            self.at_hand.begin(task, number)
            self.check_images(row, name)
            self.at_hand.end()
            size = row_bytes(row)
            if size + ROW_OVERHEAD > LARGEST_PAGE:
                raise BadImage(f"has {size} bytes, more than the 256 MiB that MindRecord can store in a row")
        except BadImage as error:
            self.at_hand.end()
            self.refused.append({"file": name, "reason": str(error)})
            return
        row = checked_row(row, self.job.plugin.schema, self.job.num_classes, place)
        if size + ROW_OVERHEAD > self.job.layout.page_size:
            raise PageTooSmall(size)
        if isinstance(row.get("label"), int):
            self.labels[row["label"]] += 1
        with self.writing():
            self.file = self.file or self.open_file()
            self.file.add(row)
        self.num_rows += 1

    def check_images(self, row: dict, name: str) -> None:
        for field in self.job.plugin.image_fields:
            data = row.get(field)
            if isinstance(data, OSError):  # how a plug-in says that a file could not be read
                raise BadImage(f"cannot be read: {data.strerror or data}")
            if not isinstance(data, (bytes, bytearray)):
                continue  # checked_row() says what is wrong
            stored = stored_image(bytes(data), self.job.rules, self.job.is_whole)
            row[field] = stored.data
            self.counts.update(resized=int(stored.resized), rotated=int(stored.rotated))
            if stored.repair:
                self.repaired.append({"file": name, "reason": stored.repair})

    def open_file(self) -> MindRecordFile:
        plugin, layout = self.job.plugin, self.job.layout
        return MindRecordFile(
            self.path,
            plugin.schema,
            plugin.index_fields,
            page_size=layout.page_size,
            header_size=layout.header_size,
            description=plugin.name,
        )

    def finish(self) -> dict[str, Any]:
        """Close the files, and say what is in them."""
        report: dict[str, Any] = {"file": self.path.name, "num_rows": self.num_rows}
        if self.file:
            with self.writing():
                self.file.close()
                report.update(seal(self.path))
        report.update(labels=dict(self.labels), counts=dict(self.counts))
        report.update(refused=self.refused, repaired=self.repaired)
        return report

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Names the shard in what can go wrong with its files, so that it is not taken for the plug-in's."""
        try:
            yield
        except HeaderTooSmall as error:
            raise ConvertError(f"{self.path}: {error}; use more --mindrecord_partitions") from error
        except (OSError, sqlite3.Error) as error:
            if is_disk_full(error):
                raise DiskFull(f"{self.path.parent.parent} is full") from error
            raise ConvertError(f"{self.path} could not be written: {error}") from error


def write_shard(job: Job, index: int, report: Report, at_hand: RowAtHand, killers: dict) -> dict[str, Any]:
    """Write shard `index`, or keep the one that an earlier run finished.  Raises ConvertError, PageTooSmall.

    `killers`: (task, row) of images that ended a worker, and how.
    """
    kept = kept_report(job, index, report)
    if kept is not None:
        return kept
    shard, source = Shard(job, index, at_hand), 0
    for task in job.tasks[index]:
        for number, row in enumerate(job.plugin.rows(task)):
            size = row_bytes(row)
            source = source if job.sources_known else row_checksum(row, source)
            shard.add(row, task, number, killers.get((task, number), ""))
            report(0, 1, size)
        report(1, 0, 0)
    result = shard.finish()
    job.records.save(job.names[index], {**result, "source": source})
    return result


def kept_report(job: Job, index: int, report: Report) -> Optional[dict[str, Any]]:
    """What an earlier run recorded of a shard, if its files are whole and its rows come out the same."""
    record = job.records.load(job.names[index])
    if record is None or not is_intact(job.folder, record):
        return None
    if not job.sources_known and record["source"] != sources_checksum(job, index):
        return None
    report(len(job.tasks[index]), record["num_rows"] + len(record["refused"]), record.get("num_bytes", 0))
    record["labels"] = {int(label): count for label, count in record["labels"].items()}
    return {**record, "kept": True}


def sources_checksum(job: Job, index: int) -> int:
    """Of the rows of a shard, read again."""
    source = 0
    for task in job.tasks[index]:
        for row in job.plugin.rows(task):
            source = row_checksum(row, source)
    return source
