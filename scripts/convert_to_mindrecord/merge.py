"""Joins the shares that several machines have written into one set."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from failure import DATA_UNUSABLE, ConvertError
from manifest import load_manifest, write_manifest
from progress import Log
from publish import Staging, check_target
from verify import refuse_broken

# Shares of one conversion agree on all of these.
AGREED = ("schema_version", "split", "seed", "options", "tool")


def merge(target: Path, folders: list[Path], overwrite: bool, num_workers: int, log: Log) -> str:
    """What was done, in a sentence.  Raises ConvertError."""
    target = target.resolve()
    check_target(target, overwrite)
    shares = [(folder, load_manifest(folder)) for folder in folders]
    check_shares(shares)
    shares.sort(key=lambda item: item[1]["share"]["node_rank"])
    for folder, manifest in shares:
        refuse_broken(folder, manifest, num_workers)
    joined = join([manifest for _, manifest in shares])
    with Staging(target, log.note) as staging:
        staging.clear()
        for folder, manifest in shares:
            for shard in manifest["shards"]:
                for name in (shard["file"], f"{shard['file']}.db"):
                    place(folder / name, staging.set / name)
            log.continue_from(folder, staging.set)
        log.open(staging.set)
        log.add(f"merged {len(shares)} shares: {', '.join(map(str, folders))}")
        write_manifest(joined, staging.set)
        staging.publish()
    num_shards = len(joined["shards"])
    return f"{target}: {joined['num_images']:,} images in {num_shards} shards, of {len(shares)} machines"


def check_shares(shares: list[tuple[Path, dict[str, Any]]]) -> None:
    """They belong together, and none is missing or there twice.  Raises ConvertError."""
    for folder, manifest in shares:
        if "share" not in manifest:
            raise ConvertError(f"{folder} is a whole set, not the share of one machine", DATA_UNUSABLE)
    first_folder, first = shares[0]
    owners: dict[int, Path] = {}
    for folder, manifest in shares:
        share = manifest["share"]
        different = [key for key in AGREED if manifest[key] != first[key]]
        if share["plan"] != first["share"]["plan"] or share["nodes"] != first["share"]["nodes"]:
            different.append("the data or the number of machines")
        if different:
            raise ConvertError(
                f"{folder} and {first_folder} are no shares of one conversion: they differ in "
                f"{', '.join(different)}",
                DATA_UNUSABLE,
            )
        if share["node_rank"] in owners:
            raise ConvertError(
                f"{folder} and {owners[share['node_rank']]} are both share {share['node_rank']}",
                DATA_UNUSABLE,
            )
        owners[share["node_rank"]] = folder
    missing = sorted(set(range(first["share"]["nodes"])) - set(owners))
    if missing:
        which = ", ".join(map(str, missing))
        raise ConvertError(f"of {first['share']['nodes']} shares, {which} is missing", DATA_UNUSABLE)


def join(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """What one machine alone would have written."""
    classes = max((manifest["classes"] for manifest in manifests), key=len)
    counts: Counter[int] = Counter()
    for manifest in manifests:
        for item in manifest["classes"]:
            counts[item["index"]] += item["num_images"]
    rotated = [manifest["rotated"] for manifest in manifests]
    joined = {
        **manifests[0],
        "num_images": sum(manifest["num_images"] for manifest in manifests),
        "classes": [{**item, "num_images": counts[item["index"]]} for item in classes],
        "shards": [shard for manifest in manifests for shard in manifest["shards"]],
        "resized": sum(manifest["resized"] for manifest in manifests),
        "rotated": None if None in rotated else sum(rotated),
    }
    for key in ("refused", "repaired"):
        files = [item for manifest in manifests for item in manifest[key]]
        joined[key] = sorted(files, key=lambda item: item["file"])
    del joined["share"]
    return joined


def place(source: Path, target: Path) -> None:
    """A second name for the same file where that is possible, else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        with open(target, "rb") as handle:
            os.fsync(handle.fileno())
    target.chmod(0o644)
