"""Copying between object storage (obs://, s3://) and the disk. The only door to ModelArts' moxing."""

from __future__ import annotations

import errno
import importlib
import os
import shutil
import time
from pathlib import Path, PurePosixPath
from typing import Any, Callable, Optional, Sequence, TypeVar

from src.errors import OptionError, SuiteError

T = TypeVar("T")

SCHEMES = ("obs://", "s3://")
# Pauses before the second and each further try: what passes by itself (a lost connection, a busy server) has
# passed after some 20 s; a wrong address or a missing right has not.
PAUSES_S = (1.0, 4.0, 16.0)
SPARE_BYTES = 1 << 30  # left free beside what is copied: logs, checkpoints, the system's own files


def is_url(value: Optional[str]) -> bool:
    """Whether an address is of object storage, and not a local path."""
    return value is not None and value.startswith(SCHEMES)


def join(url: str, name: str) -> str:
    return f"{url.rstrip('/')}/{name}"


def retry(
    what: str,
    action: Callable[[], T],
    pauses_s: Sequence[float] = PAUSES_S,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """The answer of `action`, tried again after each pause.

    Raises SuiteError with the last fault; at once where the disk is full, which waiting does not mend.
    moxing's own errors have no common type, so every Exception counts.
    """
    for pause_s in [*pauses_s, None]:
        try:
            return action()
        except Exception as error:
            full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            if full or pause_s is None:
                tries = "" if full else f" after {len(pauses_s) + 1} tries"
                raise SuiteError(f"{what} failed{tries}: {type(error).__name__}: {error}") from error
            sleep(pause_s)
    raise AssertionError("the last try returns or raises")


class Storage:
    """moxing's file functions as this suite uses them, each with retries."""

    def __init__(
        self,
        file: Any,
        pauses_s: Sequence[float] = PAUSES_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file, self._pauses_s, self._sleep = file, pauses_s, sleep

    def names(self, url: str) -> list[str]:
        """Files below a folder, by their path in it; none where there is no such folder."""
        if not self._try(f"looking for {url}", lambda: self._file.exists(url)):
            return []
        found = self._try(f"listing {url}", lambda: self._file.list_directory(url, recursive=True))
        # Folders are listed too, with or without a slash at the end.
        folders = {str(parent) for name in found for parent in PurePosixPath(name).parents}
        return sorted(name for name in found if not name.endswith("/") and name not in folders)

    def size(self, url: str, folder: bool = False) -> int:
        """Bytes of a file, or of all below a folder (moxing answers 0 for a folder unless told)."""
        return int(self._try(f"measuring {url}", lambda: self._file.get_size(url, recursive=folder)))

    def fetch_folder(self, url: str, target: Path) -> None:
        """Raises SuiteError where it cannot be copied, at once where the disk has not the room."""
        target.mkdir(parents=True, exist_ok=True)
        needed, free = self.size(url, folder=True), shutil.disk_usage(target).free
        held = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        if needed + SPARE_BYTES > free + held:
            raise SuiteError(
                f"{url} has {needed / 1e9:.1f} GB, and {target} room for {(free + held) / 1e9:.1f} GB, of "
                f"which {SPARE_BYTES / 1e9:.1f} GB must stay free: take a larger flavour or another --scratch"
            )
        self._try(f"copying {url} to {target}", lambda: self._file.copy_parallel(url, str(target)))

    def fetch(self, url: str, target: Path) -> None:
        """Copy one file; `target` is whole or not there."""
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        self._try(f"copying {url}", lambda: self._file.copy(url, str(part)))
        os.replace(part, target)

    def send(self, source: Path, url: str) -> None:
        """Copy one file up, and see that all of it arrived."""

        def action() -> None:
            self._file.copy(str(source), url)
            arrived, size = int(self._file.get_size(url)), source.stat().st_size
            if arrived != size:
                raise SuiteError(f"{url} has {arrived:,} bytes after copying, {source.name} {size:,}")

        self._try(f"copying {source.name} to {url}", action)

    def _try(self, what: str, action: Callable[[], T]) -> T:
        return retry(what, action, self._pauses_s, self._sleep)


def open_storage(url: str) -> Storage:
    """Raises OptionError where moxing is not installed."""
    try:
        return Storage(importlib.import_module("moxing").file)
    except ImportError as error:
        raise OptionError(
            f"{url} is in object storage, which takes moxing, and that cannot be imported ({error}): start "
            "from one of ModelArts' images, which have it, or let the job bring the data to a local path"
        ) from None
