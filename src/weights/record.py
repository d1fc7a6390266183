"""What a checkpoint says of itself, read from the head of the file alone: no tensors, no MindSpore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from src.errors import CheckpointError

# Options that a network must be used with as it was trained.
NETWORK_OPTIONS = (
    "arch", "num-layers", "num-groups", "width-per-group", "num-classes", "batchnorm-eps", "batchnorm-mom",
    "image-shape", "rgb-mean", "rgb-std", "data-val-resize", "interpolation",
    "image-size-steps", "val-image-size", "val-interpolation", "test-flips",
)  # fmt: skip


def parse_record(metadata: dict[str, str] | None) -> dict[str, Any]:
    """The record in a safetensors file's metadata; empty for files of other origin."""
    record: dict[str, Any] = json.loads((metadata or {}).get("record", "{}"))
    return record


def read_record(path: Path) -> dict[str, Any]:
    """The record of a checkpoint; empty for files of other origin.

    Raises CheckpointError for a file that is missing or damaged.
    """
    return read_head(path)[0]


def read_head(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The record of a checkpoint and the names of its tensors; both empty for .ckpt, MindSpore's to read.

    Raises CheckpointError for a file that is missing or damaged.
    """
    from safetensors import safe_open

    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {path}")
    if path.suffix == ".ckpt":
        return {}, []
    try:
        with safe_open(str(path), framework="numpy") as file:
            return parse_record(file.metadata()), list(file.keys())
    except Exception as error:  # the library's own error types are many
        raise CheckpointError(f"{path} ({path.stat().st_size} bytes) is damaged: {error}") from None


def network_options(path: Path) -> dict[str, Any]:
    """Option name -> value, of the options that the checkpoint's network must be used with."""
    then = read_record(path).get("config", {})
    return {name: then[name] for name in NETWORK_OPTIONS if then.get(name) is not None}
