"""Is there room on the disk: before the work, and when it turns out that there was not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Optional

from failure import ConvertError, DiskFull
from layout import estimated_bytes
from progress import Log, Progress
from shards import Job

LEAST_FREE = 12 << 20  # beyond what the files are expected to take


def expected_bytes(job: Job, num_bytes: Optional[int]) -> Optional[int]:
    """Of the finished set, where the plug-in knows its sizes (`num_bytes`: of this machine's rows)."""
    if num_bytes is None:
        return None
    return estimated_bytes(job.layout, len(job.shards), num_bytes, job.num_tasks)


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else 0


def check_space(folder: Path, kept: Path, needed: Optional[int], resize: Optional[int], log: Log) -> None:
    """Tell both numbers.  Raises DiskFull; images that are to be made smaller may fit all the same."""
    free = shutil.disk_usage(folder).free
    if needed is None:
        log.add(f"{free / 1e6:,.0f} MB are free; the plug-in does not say how much is needed")
        return
    at_most = "at most " if resize else "about "
    missing = max(0, needed - bytes_in(kept)) + LEAST_FREE
    log.note(f"{at_most}{missing / 1e6:,.0f} MB are needed, {free / 1e6:,.0f} MB are free")
    if free < missing and not resize:
        raise DiskFull(
            f"{folder.parent} has {free / 1e6:,.0f} MB free, and about {missing / 1e6:,.0f} MB are needed: "
            "free some space or name another disk",
            keeps_work=True,
        )


def how_much_was_needed(
    error: Exception, folder: Path, job: Job, num_bytes: Optional[int], progress: Progress
) -> ConvertError:
    """The sentence for a disk that filled up on the way."""
    written = bytes_in(folder)
    needed = expected_bytes(job, num_bytes)
    if progress.share > 0:
        needed = max(int(written / progress.share), needed or 0)
    how_much = f"about {needed / 1e6:,.0f} MB are needed" if needed else "it is not known how much is needed"
    return ConvertError(
        f"the disk is full after {written / 1e6:,.0f} MB: {how_much} in all ({error}); nothing was published "
        "and what was written is removed"
    )
