"""What each peer's input pipeline is told: its data, threads, and the suite's own options, name to value."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def parse() -> argparse.Namespace:
    """`data`, `threads`, `batch_size`, `skip`, `antialias`, and `options`, the suite's.

    `data` is a folder of class folders, or the path of a record file and its index without the suffix.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--skip", type=int, required=True, help="batches at the start that do not count")
    parser.add_argument("--options", type=json.loads, required=True, help="JSON")
    parser.add_argument("--antialias", action="store_true")
    parsed = parser.parse_args()
    unlike = [name for name, value in ONLY.items() if parsed.options[name] != value]
    if unlike:
        parser.error(f"the peers have only --{unlike[0]} {ONLY[unlike[0]]}")
    return parsed


# What the peers do of what the suite can do.
ONLY: dict[str, Any] = {
    "random-resized-crop": True,
    "random-mirror": True,
    "interpolation": "bilinear",
    "auto-augment": "none",
}
