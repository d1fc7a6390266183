"""How a conversion ends when it cannot go on: one sentence, and an exit code that scripts can rely on."""

from __future__ import annotations

import errno
import sqlite3

WRONG_OPTIONS = 2
DATA_UNUSABLE = 3
OTHER = 1


class ConvertError(Exception):
    """What was seen, which file or option, and what to do; shown without a traceback.

    `keeps_work`: the same command may do better later, so finished shards are kept for it.
    """

    def __init__(self, sentence: str, exit_code: int = OTHER, keeps_work: bool = False) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
        self.keeps_work = keeps_work


class DiskFull(ConvertError):
    """No space is left; whoever knows how much is needed says so."""


def is_disk_full(error: Exception) -> bool:
    """Whatever says so: the system, SQLite, or ourselves."""
    if isinstance(error, sqlite3.Error):
        return "full" in str(error)  # Python 3.10 and older give no code
    return isinstance(error, DiskFull) or (
        isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    )
