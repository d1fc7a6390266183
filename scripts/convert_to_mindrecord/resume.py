"""What a killed run leaves behind, and whether the next one may go on from there.

A finished shard gets a small record beside it: what is to be said of it, its checksums, and a checksum of the
rows that it was made from.  All of them count only for a run with the same fingerprint.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import sqlite3
from pathlib import Path
from typing import Any, Optional

import numpy
import PIL
from record_files import checksum

# These decide how fast and where a set is made, not what is in it.
DECIDE_NOTHING = {"mindrecord_workers", "mindrecord_file", "overwrite", "image_timeout"}
HERE = Path(__file__).resolve().parent


def code_checksum(folder: Path) -> str:
    """Of all Python files of a folder: another version of them may write other bytes."""
    return "".join(checksum(path) for path in sorted(folder.glob("*.py")))


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def fingerprint(args: argparse.Namespace, plugin_folder: Path, plan: Any) -> str:
    """Of everything that decides the bytes, but for what the sources hold."""
    options = {name: str(value) for name, value in vars(args).items() if name not in DECIDE_NOTHING}
    return fingerprint_of([options, plan, code_checksum(plugin_folder)])


def fingerprint_of(parts: list[Any]) -> str:
    """Of these, and of the code and the versions that write the bytes."""
    versions = [version_of("mindspore"), sqlite3.sqlite_version, PIL.__version__, numpy.__version__]
    everything = [parts, versions, code_checksum(HERE)]
    return hashlib.sha256(json.dumps(everything, sort_keys=True, default=str).encode()).hexdigest()


class ShardRecords:
    """The records of one unfinished set, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def save(self, name: str, content: dict[str, Any]) -> None:
        """Whole or not at all."""
        temporary = self.folder / f"{name}.json.part"
        with open(temporary, "w", encoding="utf-8") as handle:
            json.dump(content, handle)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, self.path(name))

    def load(self, name: str) -> Optional[dict[str, Any]]:
        try:
            return json.loads(self.path(name).read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def finished(self, names: list[str]) -> list[str]:
        return [name for name in names if self.path(name).is_file()]
