"""Writes some images of a set back out, to look at them: OUT/<class>/<file>, and OUT/labels.csv."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
from pathlib import Path
from typing import Any, Iterator, Optional

from failure import DATA_UNUSABLE, WRONG_OPTIONS, ConvertError
from manifest import load_manifest
from PIL import Image
from reading import need_mindspore, read_labels, read_rows, schema_of, shard_paths

SUFFIXES = {
    "JPEG": (".jpg", ".jpeg", ".jfif"),
    "MPO": (".jpg", ".jpeg", ".jfif"),
    "PNG": (".png",),
    "BMP": (".bmp",),
    "GIF": (".gif",),
    "WEBP": (".webp",),
}
COLUMNS = ("file", "label", "wnid", "name", "row")


def extract(folder: Path, out: Path, rows: Optional[str], classes: list[str], number: int) -> int:
    """How many images were written.  Raises ConvertError."""
    need_mindspore()
    manifest = load_manifest(folder)
    if out.exists() and (not out.is_dir() or os.listdir(out)):
        raise ConvertError(f"{out} exists already: name a folder that is to be made", WRONG_OPTIONS)
    files = shard_paths(folder, manifest)
    schema = schema_of(files[0])[1]
    if schema.get("image", {}).get("type") != "bytes":
        raise ConvertError(f"{folder} has no field 'image' of type bytes", DATA_UNUSABLE)
    chosen = list(range(manifest["num_images"])) if rows is None else row_numbers(rows, manifest)
    wanted = class_labels(classes, manifest)
    if wanted:
        labels = read_labels(files, schema)
        chosen = [row for row in chosen if labels[row] in wanted]
    if rows is None:
        chosen = chosen[:number]
    if not chosen:
        raise ConvertError("there is no such image in the set", DATA_UNUSABLE)
    building = Path(f"{os.path.abspath(out)}.extracting-{os.getpid()}")
    try:
        building.mkdir(parents=True)
        with open(building / "labels.csv", "w", encoding="utf-8", newline="") as handle:
            table = csv.writer(handle)
            table.writerow(COLUMNS)
            table.writerows(written(building, manifest, chosen, read_rows(files, schema, rows=chosen)))
        os.rename(building, out)  # an empty folder there is replaced
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return len(chosen)


def written(
    out: Path, manifest: dict[str, Any], chosen: list[int], found: Iterator[dict[str, Any]]
) -> Iterator[tuple]:
    """Write each image; yields its line of the table."""
    known = {item["index"]: item for item in manifest["classes"]}
    for number, row in zip(chosen, found):
        label = row.get("label", 0)
        item = known.get(label, {"wnid": str(label), "name": str(label)})
        name = inner_name(str(row.get("file_name", "")), item["wnid"], number, row["image"])
        path = out / safe(item["wnid"]) / name
        if path.exists():
            path = path.with_name(f"{path.stem}-row{number}{path.suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(row["image"])
        yield path.relative_to(out).as_posix(), label, item["wnid"], item["name"], number


def row_numbers(text: str, manifest: dict[str, Any]) -> list[int]:
    """`0,5,100:110` -> numbers of rows, counted from 0; the end of a span is not in it."""
    chosen: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?::(\d+))?", part.strip())
        if not match:
            raise ConvertError(
                f"--rows {text}: {part!r} is neither a row nor a span such as 0:10", WRONG_OPTIONS
            )
        first = int(match[1])
        chosen += range(first, int(match[2]) if match[2] else first + 1)
    beyond = [row for row in chosen if row >= manifest["num_images"]]
    if beyond:
        raise ConvertError(
            f"--rows {text}: there is no row {beyond[0]}, the last is {manifest['num_images'] - 1}",
            WRONG_OPTIONS,
        )
    return chosen


def class_labels(wanted: list[str], manifest: dict[str, Any]) -> set[int]:
    """Classes by label, folder or name."""
    labels = set()
    for word in wanted:
        found = [
            item["index"]
            for item in manifest["classes"]
            if word == item["wnid"] or word.lower() == item["name"].lower()
        ] or [item["index"] for item in manifest["classes"] if word == str(item["index"])]
        if not found:
            raise ConvertError(f"--class {word}: no class has this folder, name or label", WRONG_OPTIONS)
        labels.update(found)
    return labels


def inner_name(file_name: str, wnid: str, row: int, data: bytes) -> str:
    """The file's own name, without its class and with the suffix of its content."""
    name = file_name[len(wnid) + 1 :] if file_name.startswith(f"{wnid}/") else file_name
    name = safe(name.replace("/", "_")) if name else f"row{row}"
    try:
        suffixes = SUFFIXES.get(Image.open(io.BytesIO(data)).format or "", ())
    except (OSError, ValueError, SyntaxError):
        suffixes = ()
    return name if not suffixes or name.lower().endswith(suffixes) else name + suffixes[0]


def safe(name: str) -> str:
    """Never a path that leads elsewhere."""
    return re.sub(r"[/\\\0]", "_", name).strip() if name.strip(". ") else "_"
