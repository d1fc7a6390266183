"""A manifest as a person reads it."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any, Iterator

from manifest import load_manifest, num_bytes
from reading import schema_of, shard_paths

BARS, BAR_WIDTH, SOME = 8, 40, 10


def describe(folder: Path, everything: bool) -> str:
    """Raises ConvertError."""
    manifest = load_manifest(folder)
    most = 10**9 if everything else SOME
    lines = [f"{folder} ({manifest['split']})", *facts(folder, manifest), *histogram(manifest)]
    for key in ("refused", "repaired"):
        files = [f"{item['file']} {item['reason']}" for item in manifest[key]]
        lines += [f"  {key}: {len(files):,}", *shortened(files, most)]
    names = [
        f"{item['index']:>5}  {item['wnid']}  {item['name']}  {item['num_images']:,}"
        for item in manifest["classes"]
    ]
    return "\n".join([*lines, "  label, folder, name, images:", *shortened(names, most)])


def facts(folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    rows = [shard["num_rows"] for shard in manifest["shards"]]
    size = num_bytes(manifest)
    yield (
        f"  {manifest['num_images']:,} images in {len(rows)} shard(s) of {min(rows, default=0):,} to "
        f"{max(rows, default=0):,} rows, {size / 1e6:,.1f} MB, "
        f"{size / max(manifest['num_images'], 1) / 1e3:,.1f} kB an image"
    )
    share = manifest.get("share")
    if share:
        yield f"  the share of machine {share['node_rank']} of {share['nodes']}: to be joined with `merge`"
    if rows and Path(shard_paths(folder, manifest)[0]).is_file():
        _, schema, index = schema_of(shard_paths(folder, manifest)[0])
        fields = (f"{name} {kind['type']}{'*' if name in index else ''}" for name, kind in schema.items())
        yield f"  fields (* indexed): {', '.join(fields)}"
    tool = manifest["tool"]
    beside = f"MindSpore {tool['mindspore']}" if tool["mindspore"] else "no MindSpore"
    yield (
        f"  made by {tool['name']} {tool['version']} with Pillow {tool['pillow']} and "
        f"{beside}; seed {manifest['seed']}"
    )
    told = (f"{name} {value}" for name, value in manifest["options"].items() if value is not None)
    yield f"  options: {', '.join(told)}"
    rotated = manifest.get("rotated")
    unknown = "unknown, they were not looked at" if rotated is None else f"{rotated:,}"
    yield f"  made smaller: {manifest.get('resized', 0):,}; rotated by EXIF: {unknown}"


def histogram(manifest: dict[str, Any]) -> list[str]:
    """How many classes have how many images."""
    counts = sorted(item["num_images"] for item in manifest["classes"])
    if not counts:
        return ["  no classes"]
    least, most = counts[0], counts[-1]
    lines = [f"  {len(counts):,} classes of {least:,} to {most:,} images, median {median(counts):,.0f}"]
    width = max(1, -(-(most - least + 1) // BARS))
    steps = range(least, most + 1, width)
    bars = [sum(start <= count < start + width for count in counts) for start in steps]
    digits = len(f"{most:,}")
    for start, number in zip(steps, bars):
        span = f"{start:>{digits},}" if width == 1 else f"{start:>{digits},} - {start + width - 1:>{digits},}"
        bar = "#" * -(-number * BAR_WIDTH // max(bars))
        lines.append(f"    {span} images  {number:>5,} classes  {bar}")
    return lines


def shortened(lines: list[str], most: int) -> list[str]:
    rest = [f"    ... and {len(lines) - most:,} more (--all shows them)"] if len(lines) > most else []
    return [f"    {line}" for line in lines[:most]] + rest
