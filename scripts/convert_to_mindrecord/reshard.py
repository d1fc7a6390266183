"""The same rows in the same order, in another number of shards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Iterator

from failure import DATA_UNUSABLE, ConvertError
from layout import choose_layout, deal_tasks, shard_names
from manifest import layout_options, load_manifest, shard_list, tool_versions, write_manifest
from progress import Log, Progress
from publish import Staging, check_target
from reading import base_name, need_mindspore, read_rows, row_sizes, schema_of, shard_paths
from resume import fingerprint_of
from shards import Job
from space import check_space, expected_bytes
from verify import refuse_broken
from workers import write_all


class RecordSource:
    """A finished set, with as much of a plug-in's shape as a shard's writer needs.

    Task i is the run of rows that becomes shard i.
    """

    image_fields: list[str] = []  # they were checked when the set was made

    def __init__(self, files: list[str]) -> None:
        self.files = files
        self.name, self.schema, self.index_fields = schema_of(files[0])
        self.spans: list[range] = []

    def rows(self, task_id: int) -> Iterator[dict[str, Any]]:
        return read_rows(self.files, self.schema, span=self.spans[task_id])


def reshard(folder: Path, target: Path, partitions: int, overwrite: bool, num_workers: int, log: Log) -> str:
    """What was done, in a sentence.  Raises ConvertError."""
    need_mindspore()
    target = target.resolve()
    check_target(target, overwrite)
    manifest = load_manifest(folder)
    refuse_broken(folder, manifest, num_workers)
    if manifest.get("share"):
        raise ConvertError(f"{folder} is the share of one machine: merge the shares first", DATA_UNUSABLE)
    files = shard_paths(folder, manifest)
    sizes = [size for path in files for size in row_sizes(path)]
    source = RecordSource(files)
    layout = choose_layout((sum(sizes), max(sizes)), partitions, len(sizes), "rows")
    source.spans = deal_tasks(len(sizes), layout.num_shards, sizes)
    with Staging(target, log.note) as staging:
        names = shard_names(base_name(manifest), layout.num_shards)
        fingerprint = fingerprint_of([manifest["shards"], names])
        staging.start(fingerprint, names)
        staging.remember(fingerprint, layout.page_size)
        job = Job(
            plugin=source,
            layout=layout,
            tasks=[range(index, index + 1) for index in range(layout.num_shards)],
            shards=range(layout.num_shards),
            folder=staging.set,
            names=names,
            records=staging.records,
            num_classes=len(manifest["classes"]),
            sources_known=True,  # by their checksums
        )
        log.continue_from(folder, staging.set)
        log.open(staging.set)
        log.add(f"reshard {folder} into {layout.num_shards} shard(s)")
        check_space(staging.path, staging.set, expected_bytes(job, sum(sizes)), None, log)
        progress = Progress(target.name, "rows", layout.num_shards, sum(sizes), log)
        reports = write_all(job, num_workers, progress)
        write_manifest(resharded(manifest, job, reports), staging.set)
        staging.publish()
    progress.close()
    return f"{target}: {len(sizes):,} rows in {layout.num_shards} shard(s), {progress.speed}"


def resharded(manifest: dict[str, Any], job: Job, reports: list[dict]) -> dict[str, Any]:
    """Raises ConvertError if the rows are not those that the old manifest counts."""
    labels: Counter[int] = Counter()
    for report in reports:
        labels.update(report["labels"])
    counted = {item["index"]: item["num_images"] for item in manifest["classes"]}
    num_rows = sum(report["num_rows"] for report in reports)
    if num_rows != manifest["num_images"] or (labels and labels != Counter(counted)):
        raise ConvertError("the rows that were read are not those that manifest.json counts", DATA_UNUSABLE)
    return {
        **manifest,
        "shards": shard_list(reports),
        "options": {**manifest["options"], **layout_options(job)},
        "tool": tool_versions(),
    }
