"""Huawei ModelArts: which of its conventions a job follows, and where it keeps things. docs/modelarts.md.

Old: --data_url and --train_url are addresses in object storage. Current: they are local paths that the
platform fills before, and empties after, the job. Anywhere else they are not given. The value decides.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Optional

from src.errors import OptionError
from src.platform import environment

# Set in every job: now (users may set no MA_ names), and until about 2021.
PLATFORM = ("MA_JOB_DIR", "MA_MOUNT_PATH", "MA_VJ_NAME", "MA_NUM_HOSTS", "DLS_TASK_NUMBER", "DLS_TRAIN_URL")
JOB_NAMES = ("MA_VJ_NAME", "JOB_ID", "BATCH_JOB_ID")
ATTEMPT = "SUITE_ATTEMPT"
CACHE = Path("/cache")  # the platform's large local disk


def is_here() -> bool:
    """Whether this is a job of ModelArts."""
    variables = environment.given()
    return any(name in variables for name in PLATFORM) or any(
        name.startswith("BATCH_") and name.endswith("_HOSTS") for name in variables
    )


def job_name() -> str:
    """The platform's name of this job, fit for a folder; "job" where there is none."""
    variables = environment.given()
    name = next((variables[name] for name in JOB_NAMES if variables.get(name)), "job")
    return re.sub(r"[^\w.-]", "_", name)


def attempt() -> str:
    """What the processes of one start on one machine share, and no other start has.

    That is the birth of the parent that started them all; of a process alone, its own.
    """
    handed = environment.given().get(ATTEMPT)
    if handed:
        return handed
    process = os.getpid() if environment.this_rank().size == 1 else os.getppid()
    # Field 22 of proc(5), counted behind the name in parentheses, which may hold spaces.
    birth = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19]
    return f"{process}-{birth}"


def hand_down() -> dict[str, str]:
    """Variables that tell every rank which attempt it belongs to."""
    return {ATTEMPT: attempt()}


def scratch_folder(chosen: Optional[Path]) -> Path:
    """--scratch, else /cache where it can be written, else a folder of this user's among temporary ones."""
    if chosen is not None:
        return chosen
    if os.access(CACHE, os.W_OK | os.X_OK):
        return CACHE / "resnet-suite"
    return Path(tempfile.gettempdir()) / f"resnet-suite-{os.getuid()}"


def folder_of(scratch: Path, kind: str, url: str) -> Path:
    """The local stand-in of an address: the same for every attempt, another for another address."""
    url = url.rstrip("/")
    return scratch / f"{kind}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"


def attempt_folder(scratch: Path) -> Path:
    """A folder that only the processes of this attempt of this job use, on this node."""
    return scratch / f"{job_name()}-{attempt()}"


def results_folder(workspace: Path, train_url: Path) -> Path:
    """Where a job of the current convention writes. Raises OptionError where two options contradict."""
    if workspace == Path("."):
        return train_url
    inside = (train_url / workspace).resolve()
    if inside != train_url.resolve() and train_url.resolve() not in inside.parents:
        raise OptionError(
            f"--workspace {workspace} is not inside --train_url {train_url}, and only that is kept after the "
            "job: give one of the two, or a --workspace relative to it"
        )
    return inside
