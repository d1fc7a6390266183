"""Reads a whole set again and names everything that is not as its manifest says."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Callable

from manifest import load_manifest
from progress import Log, Progress
from reading import read_rows, schema_of
from record_files import checksum, read_header

Tick = Callable[[dict], None]  # a shard is done


def problems_of(folder: Path, num_workers: int, log: Log) -> list[str]:
    """One sentence for each thing that is wrong; none if all is well.  Raises ConvertError."""
    manifest = load_manifest(folder)
    found = contradictions(manifest)
    all_bytes = 2 * sum(shard["num_bytes"] for shard in manifest["shards"])  # once for us, once by MindSpore
    progress = Progress(folder.name, "rows", 2 * len(manifest["shards"]), all_bytes, log)

    def tick(shard: dict[str, Any]) -> None:
        progress.add(1, shard["num_rows"], shard["num_bytes"])
        progress.show()

    broken = file_problems(folder, manifest, num_workers, tick)
    found += [sentence for sentences in broken.values() for sentence in sentences]
    whole = [shard for shard in manifest["shards"] if shard["file"] not in broken]
    labels: Counter[int] = Counter()
    all_read = len(whole) == len(manifest["shards"])
    for report in read_shards(folder, whole, num_workers, tick):
        found += report["problems"]
        labels.update(report["labels"])
        all_read = all_read and not report["problems"]
    if all_read and labels:
        found += class_problems(manifest, labels)
    progress.close()
    return found + stale_files(folder, manifest)


def contradictions(manifest: dict[str, Any]) -> list[str]:
    found = []
    num_rows = sum(shard["num_rows"] for shard in manifest["shards"])
    if num_rows != manifest["num_images"]:
        found.append(f"manifest.json counts {manifest['num_images']:,} images, its shards {num_rows:,} rows")
    indices = [item["index"] for item in manifest["classes"]]
    if sorted(indices) != list(range(len(indices))):
        found.append("manifest.json: the indices of the classes are not 0, 1, 2, ...")
    return found


def file_problems(
    folder: Path, manifest: dict[str, Any], num_workers: int, tick: Tick = lambda shard: None
) -> dict[str, list[str]]:
    """Shard -> what is wrong with its two files, by presence, size and checksum; not those without fault."""
    strangers = unnamed_files(folder, manifest)

    def check(shard: dict[str, Any]) -> list[str]:
        files = [
            (shard["file"], shard["num_bytes"], shard["sha256"]),
            (f"{shard['file']}.db", shard["index_num_bytes"], shard.get("index_sha256")),
        ]
        return [problem for file in files for problem in [file_problem(folder, *file, strangers)] if problem]

    results = {}
    with ThreadPoolExecutor(num_workers) as pool:  # hashing leaves Python's lock to others
        for shard, found in zip(manifest["shards"], pool.map(check, manifest["shards"])):
            tick(shard)
            results[shard["file"]] = found
    return {name: found for name, found in results.items() if found}


def file_problem(folder: Path, name: str, num_bytes: int, sha256: Any, strangers: list[Path]) -> str:
    path = folder / name
    if not path.is_file():
        same = [p.name for p in strangers if p.stat().st_size == num_bytes and checksum(p) == sha256]
        hint = f": {same[0]} is this file under another name, rename it back" if same else ""
        return f"{name} is missing{hint}"
    size = path.stat().st_size
    if size != num_bytes:
        what = "is cut" if size < num_bytes else "is too long"
        return f"{name} {what}: it has {size:,} bytes, and manifest.json says {num_bytes:,}"
    if sha256 and checksum(path) != sha256:
        return f"{name} has changed: its size is right, but its SHA-256 is not the one in manifest.json"
    return ""


def unnamed_files(folder: Path, manifest: dict[str, Any]) -> list[Path]:
    named = {name for shard in manifest["shards"] for name in (shard["file"], f"{shard['file']}.db")}
    return [
        path for path in sorted(folder.iterdir()) if ".mindrecord" in path.name and path.name not in named
    ]


def stale_files(folder: Path, manifest: dict[str, Any]) -> list[str]:
    return [
        f"{path.name} is not in manifest.json: remove it, or it will be read with the others by those who "
        "open whatever lies here"
        for path in unnamed_files(folder, manifest)
    ]


def read_shards(
    folder: Path, shards: list[dict[str, Any]], num_workers: int, tick: Tick
) -> list[dict[str, Any]]:
    """Each read by a process that may die of it."""
    context = multiprocessing.get_context("fork")
    results = []
    with ProcessPoolExecutor(num_workers, context) as pool:
        answers: dict[str, Future] = {}
        with contextlib.suppress(BrokenProcessPool):  # those that are not even submitted are read alone
            for shard in shards:
                answers[shard["file"]] = pool.submit(read_shard, folder, shard)
        for shard in shards:
            try:
                results.append(answers[shard["file"]].result())
            except (BrokenProcessPool, KeyError):  # by this shard, or by another: again, alone
                results.append(read_alone(folder, shard, context))
            tick(shard)
    return results


def read_alone(folder: Path, shard: dict[str, Any], context: Any) -> dict[str, Any]:
    with ProcessPoolExecutor(1, context) as pool:
        try:
            return pool.submit(read_shard, folder, shard).result()
        except BrokenProcessPool:
            return {"problems": [f"{shard['file']}: reading it ends MindSpore's process"], "labels": {}}


def read_shard(folder: Path, shard: dict[str, Any]) -> dict[str, Any]:
    """Every byte of every row, by MindSpore; how often each label occurs."""
    path, name = str(folder / shard["file"]), shard["file"]
    labels: Counter[int] = Counter()
    num_rows = 0
    try:
        address = read_header(Path(path))["shard_addresses"][0]
        if address != name:
            return {"problems": [f"{name} was renamed: it calls itself {address}"], "labels": {}}
        schema = schema_of(path)[1]
        for row in read_rows([path], schema):
            num_rows += 1
            if isinstance(row.get("label"), int):
                labels[row["label"]] += 1
    except (RuntimeError, ValueError, OSError, KeyError) as error:
        reason = next((x[8:] for x in str(error).splitlines() if x.startswith("[ERROR] ")), str(error)[:200])
        return {"problems": [f"{name} cannot be read by MindSpore: {reason}"], "labels": {}}
    if num_rows != shard["num_rows"]:
        wrong = f"{name} gives {num_rows:,} rows, and manifest.json says {shard['num_rows']:,}"
        return {"problems": [wrong], "labels": dict(labels)}
    return {"problems": [], "labels": dict(labels)}


def class_problems(manifest: dict[str, Any], labels: Counter[int]) -> list[str]:
    found = []
    expected = {item["index"]: item["num_images"] for item in manifest["classes"]}
    for item in manifest["classes"]:
        if labels[item["index"]] != item["num_images"]:
            found.append(
                f"class {item['index']} ({item['wnid']}) has {labels[item['index']]:,} rows, and "
                f"manifest.json says {item['num_images']:,}"
            )
    return found + [f"label {label} is no class" for label in sorted(labels) if label not in expected]
