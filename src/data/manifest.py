"""Reads `manifest.json`, which says what a folder of records holds.  Needs no MindSpore."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from src.errors import DataError

FILE_NAME = "manifest.json"
SCHEMA_VERSION = 1
MOST_TO_SEARCH = 50


@dataclass(frozen=True)
class ClassInfo:
    """One class: its label, its folder's name, its name for people, its number of images in this split."""

    index: int
    wnid: str
    name: str
    num_images: int


@dataclass(frozen=True)
class Shard:
    """One MindRecord file, by its absolute path; its index is `path + ".db"`."""

    path: str
    num_rows: int
    num_bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """One split.  Row i of the split is row i of the shards, one after the other in this order."""

    path: str
    split: str
    num_images: int
    classes: tuple[ClassInfo, ...]
    shards: tuple[Shard, ...]
    seed: int
    options: dict[str, Any]
    tool: dict[str, str | None]
    refused: tuple[dict[str, str], ...]
    repaired: tuple[dict[str, str], ...]

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def class_names(self) -> list[str]:
        """Names by label."""
        return [item.name for item in self.classes]

    @property
    def files(self) -> list[str]:
        """What a reader opens: these files and no others."""
        return [shard.path for shard in self.shards]

    def identity(self) -> dict[str, Any]:
        """For the report: two runs saw the same records if `sha256` is equal."""
        return {
            "path": self.path,
            "split": self.split,
            "num_images": self.num_images,
            "num_classes": self.num_classes,
            "sha256": hashlib.sha256("".join(shard.sha256 for shard in self.shards).encode()).hexdigest(),
        }


def read_manifest(folder: Union[str, Path]) -> Manifest:
    """The manifest of one split's folder, its files checked by size.  Raises DataError."""
    path = Path(os.path.abspath(folder)) / FILE_NAME
    content = load(path)
    try:
        manifest = build(content, path)
        check_files(content["shards"], path.parent)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(
            f"{path} is no manifest of this suite's converter ({reason}): convert the data anew"
        ) from error
    check_counts(manifest)
    return manifest


def load(path: Path) -> dict[str, Any]:
    folder = path.parent
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise DataError(f"data folder {folder} {what}{meant(folder)}")
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"{folder} holds no {FILE_NAME}{meant(folder) or ': convert it with scripts/prepare_dataset.py'}"
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path} is broken ({error}): convert the data anew") from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != SCHEMA_VERSION:
        raise DataError(
            f"{path} has schema_version {version!r}; this suite reads {SCHEMA_VERSION}: convert the data anew"
        )
    share = content.get("share")
    if share:
        raise DataError(
            f"{folder} is the share of one of {share['nodes']} machines, not a whole set: join them with "
            "scripts/convert_to_mindrecord/records.py merge"
        )
    return content


def meant(folder: Path) -> str:
    """`: did you mean X?` with the folder of a manifest one or two levels above or below, or ""."""
    candidates = [parent for parent in list(folder.parents)[:2] if (parent / FILE_NAME).is_file()]
    candidates += with_manifest(folder, "*") + with_manifest(folder, "*/*")
    candidates = candidates or with_manifest(folder.parent, "*")  # DATA/trian beside DATA/train
    return f": did you mean {' or '.join(map(str, candidates[:2]))}?" if candidates else ""


def with_manifest(folder: Path, pattern: str) -> list[Path]:
    """Folders below that hold a manifest.  Not looked for among a thousand class folders full of images."""
    if not folder.is_dir() or len(os.listdir(folder)) > MOST_TO_SEARCH:
        return []
    return [path.parent for path in sorted(folder.glob(f"{pattern}/{FILE_NAME}"))]


def build(content: dict[str, Any], path: Path) -> Manifest:
    keys = ("file", "num_rows", "num_bytes", "sha256")
    shards = [[item[key] for key in keys] for item in content["shards"]]
    classes = sorted((ClassInfo(**item) for item in content["classes"]), key=lambda item: item.index)
    if [item.index for item in classes] != list(range(len(classes))):
        raise ValueError("the indices of the classes are not 0, 1, 2, ...")
    return Manifest(
        path=str(path),
        split=content["split"],
        num_images=content["num_images"],
        classes=tuple(classes),
        shards=tuple(Shard(str(path.parent / name), *rest) for name, *rest in shards),
        seed=content["seed"],
        options=content["options"],
        tool=content["tool"],
        refused=tuple(content["refused"]),
        repaired=tuple(content["repaired"]),
    )


def check_files(shards: list[dict[str, Any]], folder: Path) -> None:
    """Sizes, not checksums: enough for what is lost, renamed or cut, and quick.  Raises DataError."""
    for shard in shards:
        for name, expected in (
            (shard["file"], shard["num_bytes"]),
            (f"{shard['file']}.db", shard["index_num_bytes"]),
        ):
            size = size_of(folder / name)
            if size is None:
                raise DataError(
                    f"{folder / name}, named in {FILE_NAME}, is missing "
                    "(MindRecord files must keep their names): restore it or convert the data anew"
                )
            if size != expected:
                raise DataError(
                    f"{folder / name} has {size:,} bytes, and {FILE_NAME} says {expected:,}: "
                    "restore it or convert the data anew"
                )


def size_of(path: Path) -> Optional[int]:
    return path.stat().st_size if path.is_file() else None


def check_counts(manifest: Manifest) -> None:
    if manifest.num_images < 1 or not manifest.shards:
        raise DataError(f"{manifest.path} lists no images: convert the data anew")
    num_rows = sum(shard.num_rows for shard in manifest.shards)
    if num_rows != manifest.num_images:
        raise DataError(
            f"{manifest.path} counts {manifest.num_images:,} images, and its shards {num_rows:,} rows: "
            "convert the data anew"
        )
