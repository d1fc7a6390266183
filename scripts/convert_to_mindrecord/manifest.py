"""What `manifest.json` says of a set: everything that a reader, or a doubter, needs to know."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import Any, Optional

import PIL
from shards import Job

VERSION = "1.0"
SCHEMA_VERSION = 1
# Change nothing in the records, so that a set does not depend on the machine that made it.
NOT_RECORDED = {"mindrecord_workers", "mindrecord_file", "mindrecord_seed", "overwrite"}


def build_manifest(
    args: argparse.Namespace,
    job: Job,
    reports: list[dict],
    classes: Optional[list[tuple[str, str]]],
    split: str,
) -> dict[str, Any]:
    counts: Counter[int] = Counter()
    for report in reports:
        counts.update(report["labels"])
    if classes is None:
        classes = [(str(label), str(label)) for label in range(max(counts, default=-1) + 1)]
    keys = ("file", "num_rows", "num_bytes", "sha256", "index_num_bytes")
    versions = [report["mindspore"] for report in reports if report["num_rows"]]
    tool = {"name": "convert_to_mindrecord", "version": VERSION}
    return {
        "schema_version": SCHEMA_VERSION,
        "split": split,
        "num_images": sum(report["num_rows"] for report in reports),
        "classes": [
            {"index": index, "wnid": wnid, "name": name, "num_images": counts[index]}
            for index, (wnid, name) in enumerate(classes)
        ],
        "shards": [{key: report[key] for key in keys} for report in reports if report["num_rows"]],
        "seed": args.mindrecord_seed,
        "options": recorded_options(args, job),
        "tool": {**tool, "mindspore": versions[0] if versions else None, "pillow": PIL.__version__},
        "refused": sorted((x for report in reports for x in report["refused"]), key=lambda x: x["file"]),
        "repaired": sorted((x for report in reports for x in report["repaired"]), key=lambda x: x["file"]),
    }


def recorded_options(args: argparse.Namespace, job: Job) -> dict[str, Any]:
    """Paths by their last part: the set must not depend on where it was made."""
    options = {name: value for name, value in vars(args).items() if name not in NOT_RECORDED}
    for name, value in options.items():
        if isinstance(value, (str, Path)):
            options[name] = os.path.basename(os.path.normpath(value))
    options["mindrecord_partitions"] = job.layout.num_shards
    options.update(page_size=job.layout.page_size, header_size=job.layout.header_size)
    return dict(sorted(options.items()))
