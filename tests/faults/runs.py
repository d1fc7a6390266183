"""Runs of runner in which something goes wrong: how they are started, watched, and what is left of them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Sequence

from tests.support import ROOT

INJECTED = Path(__file__).parent / "injected"
OPTIONS = {
    **{"data-backend": "synthetic", "num-classes": 10, "image-shape": "3,32,32", "num-examples": 96},
    **{"num-layers": 18, "batch-size": 4, "num-epochs": 2, "warmup-epochs": 0, "lr": 0.1, "seed": 1},
    **{"data-threads": 1, "disp-batches": 4},
}  # 12 steps an epoch on two ranks
WORDS = [f"--{name}={value}" for name, value in OPTIONS.items()]
SLACK_S = 5.0  # all waiting in the code is a part of the 10 s: this is for a machine that is busy with others
TIME_LIMIT_S = 240.0  # for a whole run on a machine that is busy with others


@dataclasses.dataclass(frozen=True)
class End:
    """How a run ended."""

    code: int
    out: str
    err: str
    workspace: Path
    seconds: float | None
    """from the fault to the end of runner; None if it did not strike"""
    left: list[str]
    """processes that still ran two seconds later"""

    @property
    def report(self) -> dict:
        return json.loads((self.workspace / "report.json").read_text(encoding="utf-8"))


def run(folder: Path, fault: str, *options: object, small: bool = True, before: Sequence[str] = ()) -> End:
    """Run runner with `fault` (see injected/sitecustomize.py), as an argument of `before` if given."""
    mark, struck, workspace = uuid.uuid4().hex, folder / "struck", folder / "run"
    variables = {"PYTHONPATH": str(INJECTED), "FAULT": fault, "FAULT_FILE": str(struck), "FAULT_MARK": mark}
    if small:
        variables["SMALL_NETWORK"] = "1"
    words = [*before, sys.executable, str(ROOT / "runner"), *WORDS, "--workspace", str(workspace)]
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        process = subprocess.Popen(
            [*words, *map(str, options)], env={**os.environ, **variables}, stdout=out, stderr=err
        )
        try:
            code = process.wait(TIME_LIMIT_S)
        finally:
            end = time.monotonic()
            process.kill()
    seconds = end - float(struck.read_text()) if struck.exists() else None
    left = survivors(mark)
    texts = [(folder / name).read_text(errors="replace") for name in ("out", "err")]
    return End(code, *texts, workspace, seconds, left)


def survivors(mark: str) -> list[str]:
    """What still runs of a run two seconds from now, found by a variable that all its processes inherit."""
    end = time.monotonic() + 2
    while True:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:  # a zombie's environment is empty
                if mark.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)
