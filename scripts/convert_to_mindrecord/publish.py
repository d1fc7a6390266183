"""A set of records is built in a hidden folder beside its place, and put there by one rename."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Optional

from failure import WRONG_OPTIONS, ConvertError

# MindSpore refuses these in the name of a file (not of a folder).
FORBIDDEN_IN_NAMES = set("\\/:*?\"<>|`&;'")
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def split_target(file: str) -> tuple[Path, str]:
    """(folder to publish, base name of the shards) of --mindrecord_file."""
    path = Path(os.path.abspath(file))
    name = os.path.basename(file)
    if not name or set(name) & FORBIDDEN_IN_NAMES or name != name.strip():
        raise ConvertError(
            f"--mindrecord_file {file}: MindSpore refuses this file name (it must not be empty, hold any of "
            f"{' '.join(sorted(FORBIDDEN_IN_NAMES))}, or begin or end with a space)",
            WRONG_OPTIONS,
        )
    if not os.path.dirname(file):
        raise ConvertError(
            f"--mindrecord_file {file}: name a folder of its own for the set, such as train/{name}: "
            "the whole folder is published at once",
            WRONG_OPTIONS,
        )
    return Path(os.path.realpath(path.parent)), name


def check_target(folder: Path, overwrite: bool) -> None:
    """Refuse before any work what could not be published after it."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConvertError(f"{folder} is a file, where the folder of the set should be", WRONG_OPTIONS)
    entries = sorted(os.listdir(folder))
    if entries and not overwrite:
        raise ConvertError(f"{folder} exists already: add --overwrite to replace it", WRONG_OPTIONS)
    foreign = [name for name in entries if name != "manifest.json" and ".mindrecord" not in name]
    if foreign:
        raise ConvertError(
            f"{folder} holds {foreign[0]!r}, which is no part of a record set, and --overwrite would delete "
            "it: move it away, or name another folder",
            WRONG_OPTIONS,
        )


class Staging:
    """`.NAME.converting` beside the target: locked while in use, gone after any failure.

    What a killed run left there is cleared by the next run, which gets the lock that the dead one lost.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.parent / f".{target.name}.converting"
        self.made_parent = not target.parent.exists()

    def __enter__(self) -> Staging:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConvertError(f"cannot create {self.path}: {error.strerror}") from error
        self.lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.lock)
            raise ConvertError(
                f"another conversion into {self.target} is at work; wait for its end"
            ) from None
        self.clear()
        self.path.chmod(0o755)
        return self

    def clear(self) -> None:
        for entry in self.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def publish(self) -> None:
        """The old set can be read until the new one stands in its place."""
        if not self.target.exists() or not os.listdir(self.target):
            os.rename(self.path, self.target)
            return
        if not exchange(self.path, self.target):  # for a moment there is none
            aside = self.target.parent / f".{self.target.name}.replaced-{os.getpid()}"
            os.rename(self.target, aside)
            os.rename(self.path, self.target)
            os.rename(aside, self.path)
        shutil.rmtree(self.path)

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            if self.made_parent and self.target.parent.is_dir() and not os.listdir(self.target.parent):
                self.target.parent.rmdir()
        os.close(self.lock)


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; False where the system cannot."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):
        return False
    return renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0
