"""One process of a node copies, the others wait for what it says: a file in a folder of this attempt."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Callable

from src.errors import SuiteError
from src.platform import pulse

WAIT_LIMIT_S = 6000.0  # four times what ImageNet's 150 GB take at 100 MB/s
POLL_S = 0.5


def leave(folder: Path, name: str, message: str = "") -> None:
    """Say that `name` is done, or with a message that it failed."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{name}.{os.getpid()}"
    part.write_text(json.dumps({"state": "failed" if message else "ok", "message": message}))
    os.replace(part, folder / name)


def is_done(folder: Path, name: str) -> bool:
    """Whether `name` was done in this attempt. Raises SuiteError with the other process's message."""
    try:
        mark = json.loads((folder / name).read_text())
    except FileNotFoundError:
        return False
    if mark["state"] != "ok":
        raise SuiteError(
            f"the process that copies for this node failed: {mark['message']} (told by {folder / name}; "
            "remove it before a new start by the same parent process)"
        )
    return True


def wait(
    folder: Path,
    name: str,
    limit_s: float = WAIT_LIMIT_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Return once `name` is done. Raises SuiteError if it failed, or after `limit_s`."""
    end = clock() + limit_s
    while not is_done(folder, name):
        if clock() >= end:
            raise SuiteError(
                f"no {folder / name} after {limit_s:.0f} s: local rank 0 copies for its node, "
                "but was not started, or by another parent (then give all of them the same SUITE_ATTEMPT)"
            )
        pulse.give(pulse.Phase.STAGING)
        sleep(POLL_S)
