"""What `manifest.json` says of a set: everything that a reader, or a doubter, needs to know."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Optional

import PIL
from failure import DATA_UNUSABLE, ConvertError
from mindrecord_file import FORMAT_VERSION
from resume import version_of
from shards import Job

FILE_NAME = "manifest.json"
VERSION = "1.2"
SCHEMA_VERSION = 1
SHARD_KEYS = ("file", "num_rows", "num_bytes", "sha256", "index_num_bytes", "index_sha256")
# Change nothing in the records, so that a set does not depend on the machines that made it.
NOT_RECORDED = {
    "mindrecord_workers",
    "mindrecord_file",
    "mindrecord_seed",
    "overwrite",
    "image_timeout",
    "nodes",
    "node_rank",
}


def build_manifest(
    args: argparse.Namespace,
    job: Job,
    reports: list[dict],
    classes: Optional[list[tuple[str, str]]],
    split: str,
) -> dict[str, Any]:
    counts: Counter[int] = Counter()
    totals: Counter[str] = Counter()
    for report in reports:
        counts.update(report["labels"])
        totals.update(report["counts"])
    if classes is None:
        classes = [(str(label), str(label)) for label in range(max(counts, default=-1) + 1)]
    looked_at = bool(job.plugin.image_fields) and args.check != "none"
    return {
        "schema_version": SCHEMA_VERSION,
        "split": split,
        "num_images": sum(report["num_rows"] for report in reports),
        "classes": [
            {"index": index, "wnid": wnid, "name": name, "num_images": counts[index]}
            for index, (wnid, name) in enumerate(classes)
        ],
        "shards": shard_list(reports),
        "seed": args.mindrecord_seed,
        "options": recorded_options(args, job),
        "tool": tool_versions(),
        "resized": totals["resized"],
        "rotated": totals["rotated"] if looked_at else None,
        "refused": sorted((x for report in reports for x in report["refused"]), key=lambda x: x["file"]),
        "repaired": sorted((x for report in reports for x in report["repaired"]), key=lambda x: x["file"]),
    }


def tool_versions() -> dict[str, Any]:
    """What made a set; MindSpore's version is None where it is not installed, as writing does not need it."""
    found = version_of("mindspore")
    return {
        "name": "convert_to_mindrecord",
        "version": VERSION,
        "mindrecord": FORMAT_VERSION,
        "mindspore": found if found != "unknown" else None,
        "pillow": PIL.__version__,
    }


def shard_list(reports: list[dict]) -> list[dict]:
    """Of the shards that have rows; the others left no file."""
    return [{key: report[key] for key in SHARD_KEYS} for report in reports if report["num_rows"]]


def recorded_options(args: argparse.Namespace, job: Job) -> dict[str, Any]:
    """Paths by their last part: the set must not depend on where it was made."""
    options = {name: value for name, value in vars(args).items() if name not in NOT_RECORDED}
    for name, value in options.items():
        if isinstance(value, (str, Path)):
            options[name] = os.path.basename(os.path.normpath(value))
    return dict(sorted({**options, **layout_options(job)}.items()))


def layout_options(job: Job) -> dict[str, int]:
    return {
        "mindrecord_partitions": job.layout.num_shards,
        "page_size": job.layout.page_size,
        "header_size": job.layout.header_size,
    }


def share_of(args: argparse.Namespace, job: Job, plan: Any) -> dict[str, Any]:
    """For the machines of one conversion: who made this share, and what the whole will consist of."""
    return {
        "node_rank": args.node_rank,
        "nodes": args.nodes,
        "plan": hashlib.sha256(json.dumps(plan, default=str).encode()).hexdigest(),
        "shards": [job.names[index] for index in job.shards],
    }


def write_manifest(manifest: dict[str, Any], folder: Path) -> None:
    path = folder / FILE_NAME
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    path.chmod(0o644)


def load_manifest(folder: Path) -> dict[str, Any]:
    """Raises ConvertError."""
    path = folder / FILE_NAME
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConvertError(f"{path}: {error.strerror}", DATA_UNUSABLE) from None
    except ValueError as error:
        raise ConvertError(f"{path} is broken ({error})", DATA_UNUSABLE) from None
    try:
        if manifest["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version {manifest['schema_version']!r}")
        for key in ("split", "num_images", "classes", "seed", "options", "tool", "refused", "repaired"):
            manifest[key]
        for shard in manifest["shards"]:
            for key in SHARD_KEYS[:-1]:  # sets of version 1.0 have no checksums of their indices
                shard[key]
        for item in manifest["classes"]:
            item["index"], item["wnid"], item["name"], item["num_images"]
    except (KeyError, TypeError, ValueError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ConvertError(f"{path} is no manifest of this converter ({reason})", DATA_UNUSABLE) from None
    return manifest


def num_bytes(manifest: dict[str, Any]) -> int:
    return sum(shard["num_bytes"] + shard["index_num_bytes"] for shard in manifest["shards"])
