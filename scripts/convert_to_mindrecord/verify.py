"""Reads a whole set again and names everything that is not as its manifest says."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from children import ChildDied, in_processes
from failure import DATA_UNUSABLE, ConvertError
from manifest import load_manifest
from progress import Log, Progress
from reading import need_mindspore, read_rows, schema_of
from record_files import checksum, read_header


def problems_of(folder: Path, num_workers: int, log: Log) -> list[str]:
    """One sentence for each thing that is wrong; none if all is well.  Raises ConvertError."""
    need_mindspore()
    manifest = load_manifest(folder)
    shards = {shard["file"]: shard for shard in manifest["shards"]}
    progress = Progress(folder.name, "rows", len(shards), sum(x["num_bytes"] for x in shards.values()), log)
    check = partial(check_shard, folder, shards, unnamed_files(folder, manifest))
    reports = {}
    for name, report in in_processes(check, shards, num_workers):
        reports[name] = after_death(name, report) if isinstance(report, ChildDied) else report
        progress.add(1, shards[name]["num_rows"], shards[name]["num_bytes"])
        progress.show()
    progress.close()
    found = contradictions(manifest)
    labels: Counter[int] = Counter()
    for name in shards:
        found += reports[name]["problems"]
        labels.update(reports[name]["labels"])
    if labels and not any(report["problems"] for report in reports.values()):
        found += class_problems(manifest, labels)
    return found + stale_files(folder, manifest)


def check_shard(folder: Path, shards: dict[str, dict], strangers: list[Path], name: str) -> dict[str, Any]:
    """Its files, and what is in them if they are whole."""
    problems = problems_of_files(folder, shards[name], strangers)
    return {"problems": problems, "labels": {}} if problems else read_shard(folder, shards[name])


def after_death(name: str, death: ChildDied) -> dict[str, Any]:
    """What a shard that ends MindSpore's process has to be blamed for.  Raises ConvertError if it is none."""
    if death.from_outside:
        raise ConvertError(
            f"the process that read {name} was ended by {death}, so that not all is verified; out of memory? "
            "try fewer --workers"
        )
    return {"problems": [f"{name}: reading it ends MindSpore's process ({death})"], "labels": {}}


def contradictions(manifest: dict[str, Any]) -> list[str]:
    found = []
    num_rows = sum(shard["num_rows"] for shard in manifest["shards"])
    if num_rows != manifest["num_images"]:
        found.append(f"manifest.json counts {manifest['num_images']:,} images, its shards {num_rows:,} rows")
    indices = [item["index"] for item in manifest["classes"]]
    if sorted(indices) != list(range(len(indices))):
        found.append("manifest.json: the indices of the classes are not 0, 1, 2, ...")
    return found


def file_problems(folder: Path, manifest: dict[str, Any], num_workers: int) -> dict[str, list[str]]:
    """Shard -> what is wrong with its two files, by presence, size and checksum; not those without fault."""
    check = partial(problems_of_files, folder, strangers=unnamed_files(folder, manifest))
    found = {}
    for shard, problems in in_processes(check, manifest["shards"], num_workers):
        if isinstance(problems, ChildDied):
            raise ConvertError(f"the process that read {shard['file']} ended ({problems})")
        found[shard["file"]] = problems
    return {name: problems for name, problems in sorted(found.items()) if problems}


def refuse_broken(folder: Path, manifest: dict[str, Any], num_workers: int) -> None:
    """Raises ConvertError unless all files are those of the manifest, so that damage is not passed on."""
    broken = file_problems(folder, manifest, num_workers)
    if broken:
        sentence = next(iter(broken.values()))[0]
        raise ConvertError(f"{folder}: {sentence}; `verify` names all that is wrong", DATA_UNUSABLE)


def problems_of_files(folder: Path, shard: dict[str, Any], strangers: list[Path]) -> list[str]:
    files = [
        (shard["file"], shard["num_bytes"], shard["sha256"]),
        (f"{shard['file']}.db", shard["index_num_bytes"], shard.get("index_sha256")),
    ]
    return [problem for file in files for problem in [file_problem(folder, *file, strangers)] if problem]


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
