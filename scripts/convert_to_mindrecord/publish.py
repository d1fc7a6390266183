"""A set of records is built in a hidden folder beside its place, and put there by one rename."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import time
from pathlib import Path
from types import TracebackType
from typing import Callable, Optional

from failure import WRONG_OPTIONS, ConvertError
from progress import LOG_NAME
from resume import ShardRecords

# MindSpore refuses these in the name of a file (not of a folder).
FORBIDDEN_IN_NAMES = set("\\/:*?\"<>|`&;'")
AT_FDCWD, RENAME_EXCHANGE = -100, 2
STATE = "conversion"  # name of the record that holds for all shards
LOCK_TRIES, LOCK_EVERY_S = 8, 0.25


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
    ours = {"manifest.json", LOG_NAME}
    foreign = [name for name in entries if name not in ours and ".mindrecord" not in name]
    if foreign:
        raise ConvertError(
            f"{folder} holds {foreign[0]!r}, which is no part of a record set, and --overwrite would delete "
            "it: move it away, or name another folder",
            WRONG_OPTIONS,
        )


class Staging:
    """`.NAME.converting` beside the target: locked while in use, gone after any failure.

    `set` in it becomes the target.  `records` tells the next run which shards are finished, should this one
    be killed, or interrupted when there are some already.
    """

    def __init__(self, target: Path, note: Callable[[str], None]) -> None:
        self.target = target
        self.note = note
        self.path = target.parent / f".{target.name}.converting"
        self.set = self.path / "set"
        self.records = ShardRecords(self.path / "records")
        self.made_parent = not target.parent.exists()

    def __enter__(self) -> Staging:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConvertError(f"cannot create {self.path}: {error.strerror}") from error
        self.lock = os.open(self.path, os.O_RDONLY)
        if not locked(self.lock):
            os.close(self.lock)
            raise ConvertError(f"another conversion into {self.target} is at work; wait for its end")
        if not self.path.exists() or not os.path.samestat(os.fstat(self.lock), os.stat(self.path)):
            os.close(self.lock)  # we waited for the folder that it has just published and removed
            raise ConvertError(f"another conversion into {self.target} has just ended; try again")
        return self

    def start(self, fingerprint: str, names: list[str]) -> int:
        """Make ready for shards; what an equal run has finished is kept, anything else there is removed.

        Returns the page size of the kept shards, 0 if there are none.
        """
        state = self.records.load(STATE) or {}
        kept = self.records.finished(names) if state.get("fingerprint") == fingerprint else []
        if kept:
            some = f"{len(kept)} of {len(names)} shards are finished"
            self.note(f"going on with an unfinished conversion of the same data: {some}")
            return int(state["page_size"])
        if state and state["fingerprint"] != fingerprint:
            self.note("starting over: an unfinished conversion here had other options, files or versions")
        self.clear()
        return 0

    def clear(self) -> None:
        for entry in self.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for folder in (self.set, self.records.folder):
            folder.mkdir()
            folder.chmod(0o755)

    def remember(self, fingerprint: str, page_size: int) -> None:
        self.records.save(STATE, {"fingerprint": fingerprint, "page_size": page_size})

    def publish(self) -> None:
        """The old set can be read until the new one stands in its place."""
        flush_folder(self.set)
        if not self.target.exists() or not os.listdir(self.target):
            os.rename(self.set, self.target)
        elif not exchange(self.set, self.target):  # for a moment there is none
            aside = self.path / "replaced"
            os.rename(self.target, aside)
            os.rename(self.set, self.target)
        flush_folder(self.target.parent)
        shutil.rmtree(self.path)

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is not None and not self.worth_keeping(error):
            shutil.rmtree(self.path, ignore_errors=True)
            if self.made_parent and self.target.parent.is_dir() and not os.listdir(self.target.parent):
                self.target.parent.rmdir()
        os.close(self.lock)

    def worth_keeping(self, error: Optional[BaseException]) -> bool:
        """After an interruption, as soon as one shard is finished."""
        interrupted = isinstance(error, (KeyboardInterrupt, SystemExit))
        if not interrupted and not getattr(error, "keeps_work", False):
            return False
        finished = len(list(self.records.folder.glob("*.json"))) - 1
        if finished < 1:
            return False
        self.note(
            f"{finished} finished shard(s) are kept in {self.path}: the same command goes on from there, "
            "or remove that folder"
        )
        return True


def locked(handle: int) -> bool:
    """Workers of a run that was just killed may hold the lock for a moment longer."""
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(LOCK_EVERY_S)
    return False


def flush_folder(folder: Path) -> None:
    """The names in it, which fsync of the files leaves out."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; False where the system cannot."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):
        return False
    return renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0
