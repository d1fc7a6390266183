"""Convert a data set to MindRecord in parallel: whole shards, one serial writer per process.

    python writer.py --mindrecord_script imagenet --mindrecord_file DATA/train/train.mindrecord \\
        --mindrecord_workers 8 --dir IMAGES/train

Exit codes: 0 done, 2 wrong options, 3 data unusable, 1 anything else, 130/143 interrupted.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from failure import DATA_UNUSABLE, ConvertError, DiskFull, is_disk_full
from images import ImageRules
from layout import choose_layout, deal_tasks, shard_names, shards_of_node
from manifest import build_manifest, share_of, write_manifest
from options import Parser, add_options, check_options
from plugin import PlugIn, load_plugin
from program import leave, run
from progress import Log, Progress
from publish import Staging, check_target, split_target
from quick_check import quick_check
from resume import fingerprint
from shards import Job, PageTooSmall
from space import check_space, expected_bytes, how_much_was_needed
from workers import write_all

HERE = Path(__file__).resolve().parent


def parse(argv: list[str]) -> tuple[argparse.Namespace, PlugIn]:
    first = Parser(add_help=False, allow_abbrev=False)
    first.add_argument("--mindrecord_script")
    script = first.parse_known_args(argv)[0].mindrecord_script
    parser = Parser(
        prog="writer.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_options(parser)
    plugin = load_plugin(script, HERE) if script else None
    if plugin is not None:
        plugin.add_options(parser)
    args = parser.parse_args(argv)
    assert plugin is not None  # --mindrecord_script is required
    check_options(args)
    return args, plugin


class Plan:
    """What is to be done, known before the first row is read."""

    def __init__(self, args: argparse.Namespace, plugin: PlugIn, base: str, staging: Staging) -> None:
        num_tasks, self.classes, self.sizes = plugin.task_number(), plugin.classes(), plugin.sizes()
        task_sizes = plugin.task_sizes(num_tasks)
        if task_sizes is not None and not self.sizes:
            self.sizes = int(task_sizes.sum()), int(task_sizes.max())
        layout = choose_layout(self.sizes, args.mindrecord_partitions, num_tasks)
        sources = plugin.fingerprint()
        self.job = Job(
            plugin=plugin,
            layout=layout,
            tasks=deal_tasks(num_tasks, layout.num_shards, task_sizes),
            shards=shards_of_node(args.node_rank, args.nodes, layout.num_shards),
            folder=staging.set,
            names=shard_names(base, layout.num_shards),
            records=staging.records,
            num_classes=len(self.classes) if self.classes else None,
            rules=ImageRules(args.check, args.resize, args.quality, args.apply_exif_orientation),
            sources_known=sources is not None,
        )
        # Equal on all machines of a conversion; each may have a copy of the data, with times of its own.
        self.whole = [
            (plugin.schema, plugin.index_fields, plugin.image_fields, self.classes),
            (num_tasks, self.sizes, self.job.names, [tasks.start for tasks in self.job.tasks]),
            None if task_sizes is None else hashlib.sha256(task_sizes).hexdigest(),
        ]
        self.fingerprint = fingerprint(args, plugin.folder, [self.whole, sources])
        self.num_bytes = self.sizes and self.sizes[0] * self.job.num_tasks // num_tasks
        if task_sizes is not None:
            mine = [self.job.tasks[index] for index in self.job.shards]
            self.num_bytes = int(task_sizes[mine[0].start : mine[-1].stop].sum())


def convert(argv: list[str], log: Log) -> None:
    args, plugin = parse(argv)
    folder, base = split_target(args.mindrecord_file)
    check_target(folder, args.overwrite)
    plugin.configure(args)
    staging = Staging(folder, log.note)
    plan = Plan(args, plugin, base, staging)
    unit = "images" if plugin.image_fields else "rows"
    with staging:
        progress = Progress(folder.name, unit, plan.job.num_tasks, plan.num_bytes, log)
        page_size = staging.start(plan.fingerprint, [plan.job.names[i] for i in plan.job.shards])
        log.open(staging.set)
        describe_run(argv, plan, log)
        check_space(staging.path, staging.set, expected_bytes(plan.job, plan.num_bytes), args.resize, log)
        try:
            job, reports = write_with_growing_pages(args, plan, page_size, staging, progress)
            manifest = build_manifest(args, job, reports, plan.classes, folder.name)
            stop_at_bad_images(manifest, args.on_bad_image)
            if args.nodes > 1:
                manifest["share"] = share_of(args, job, plan.whole)
            write_manifest(manifest, staging.set)
            told = summary(manifest, folder, progress)
            log.add(told.replace("\n", " "))
        except (DiskFull, OSError) as error:
            if is_disk_full(error):
                raise how_much_was_needed(error, staging.set, plan.job, plan.num_bytes, progress) from error
            raise
        staging.publish()
    progress.close()
    print(told)


def write_with_growing_pages(
    args: argparse.Namespace, plan: Plan, page_size: int, staging: Staging, progress: Progress
) -> tuple[Job, list[dict]]:
    """Shards that are read together must agree on the page size, so a larger row means starting again.

    `page_size`: that of the shards that are kept from before.
    """
    job, num_workers = plan.job, min(args.mindrecord_workers, len(plan.job.shards))
    job = replace(job, is_whole=quick_check(job.rules, plan.num_bytes, num_workers, progress.log))
    layout = replace(job.layout, page_size=max(page_size, job.layout.page_size))
    while True:
        job = replace(job, layout=layout)
        staging.remember(plan.fingerprint, layout.page_size)
        try:
            return job, write_all(job, args.mindrecord_workers, progress, args.image_timeout)
        except PageTooSmall as error:
            layout = layout.with_room_for(error.row_bytes)
            progress.close()
            progress.log.note(f"a row of {error.row_bytes:,} bytes needs larger pages: starting again")
            staging.clear()
            progress.restart()


def describe_run(argv: list[str], plan: Plan, log: Log) -> None:
    job = plan.job
    log.add(f"writer.py {shlex.join(argv)}")
    log.add(f"on {platform.node()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    log.add(
        f"{len(job.shards)} of {job.layout.num_shards} shards, {job.num_tasks:,} tasks, pages of "
        f"{job.layout.page_size:,} bytes"
    )


def stop_at_bad_images(manifest: dict[str, Any], policy: str) -> None:
    refused = manifest["refused"]
    if refused and policy == "error":
        for bad in refused:
            print(f"{bad['file']} {bad['reason']}", file=sys.stderr)
        raise ConvertError(
            f"{len(refused)} bad image(s), named above: mend or remove them, or leave them out with "
            "--on-bad-image skip; nothing was published",
            DATA_UNUSABLE,
        )
    if not manifest["num_images"]:
        raise ConvertError("there is not one usable row, so nothing was published", DATA_UNUSABLE)


def summary(manifest: dict[str, Any], folder: Path, progress: Progress) -> str:
    num_bytes = sum(shard["num_bytes"] for shard in manifest["shards"])
    resized, rotated = manifest["resized"], manifest["rotated"]
    applied = "and turned upright" if manifest["options"]["apply_exif_orientation"] else "which is ignored"
    told = [
        f"{len(manifest['repaired'])} repaired, {len(manifest['refused'])} refused",
        f"{resized:,} made smaller" if resized else "",
        f"{rotated:,} rotated by EXIF, {applied}" if rotated else "",
        f"{progress.kept} shard(s) kept from before" if progress.kept else "",
    ]
    share = manifest.get("share")
    next_step = f"with train and val side by side, train with --data-root {folder.parent}"
    if share:
        next_step = (
            f"join the shares of all {share['nodes']} machines: records.py merge TARGET SHARE SHARE ..."
        )
    return (
        f"{folder}: {manifest['num_images']:,} {progress.unit} of {len(manifest['classes'])} classes in "
        f"{len(manifest['shards'])} shard(s), {num_bytes / 1e6:,.1f} MB, in {progress.seconds:.1f} s "
        f"({progress.speed}); {', '.join(filter(None, told))}.\nNext: {next_step}"
    )


if __name__ == "__main__":
    leave(run("writer.py", convert, sys.argv[1:]))
