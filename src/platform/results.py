"""Sends what a run writes to object storage: after epochs in the background, at the end for certain."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Callable, Optional

from src.errors import SuiteError
from src.platform.object_storage import Storage, join

# Kubernetes kills a container 30 s after SIGTERM unless told otherwise, and the step in hand needs some too.
SIGNALLED_LIMIT_S = 20.0
FINAL_LIMIT_S = 600.0
OWN_FOLDER = ".sending-"
NOT_SENT = ("previous-", OWN_FOLDER)


class Results:
    """The workspace's files at `url`. `sent` remembers, over processes, what has arrived."""

    def __init__(self, workspace: Path, url: str, sent: Path, storage: Callable[[], Storage]) -> None:
        self.workspace, self.url, self._sent, self._open = workspace, url, sent, storage
        self._thread: Optional[threading.Thread] = None
        self._fault = ""

    def offer(self) -> None:
        """Send what is new, in the background; what comes while that is under way, the next time."""
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def finish(self, limit_s: float = FINAL_LIMIT_S) -> str:
        """Send all that is not there yet; what went wrong with it, or "". Never raises."""
        if self._thread is not None:
            self._thread.join(limit_s / 2)  # the other half is for the rest
        if self._thread is None or not self._thread.is_alive():
            self._start()
        assert self._thread is not None
        self._thread.join(limit_s / 2)
        fault = f"not done after {limit_s:.0f} s" if self._thread.is_alive() else self._fault
        if not fault:
            return ""
        return f"the results are not, or not all, in {self.url} ({fault}); they are in {self.workspace}"

    def _start(self) -> None:
        # A daemon: a connection that hangs must not keep the process.
        self._thread = threading.Thread(target=self._send, name="results", daemon=True)
        self._thread.start()

    def _send(self) -> None:
        self._fault = ""
        try:
            self._send_changed()
        except (SuiteError, OSError) as error:
            self._fault = str(error)

    def _send_changed(self) -> None:
        """Checkpoints first and the report last, so that a report never speaks of what is not there."""
        if not self.workspace.is_dir():
            return
        storage, sent = self._open(), self._read_sent()
        with tempfile.TemporaryDirectory(prefix=OWN_FOLDER, dir=self.workspace) as folder:
            changed = [(name, *self._snapshot(name, Path(folder))) for name in self._names()]
            for name, path, state in changed:
                if sent.get(name) != state:
                    storage.send(path, join(self.url, name))
                    sent[name] = state
                    self._write_sent(sent)

    def _names(self) -> list[str]:
        found = [
            str(path.relative_to(self.workspace))
            for path in self.workspace.rglob("*")
            if path.is_file() and not path.is_symlink()
        ]
        found = [name for name in found if not name.startswith(NOT_SENT) and Path(name).name[0] != "."]
        return sorted(found, key=lambda name: (name.endswith(".json"), not name.endswith("tensors"), name))

    def _snapshot(self, name: str, folder: Path) -> tuple[Path, list[int]]:
        """The file as it is now, and what tells it from a later one (checkpoints are only replaced)."""
        source, target = self.workspace / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if source.suffix != ".safetensors":
                raise OSError("appended in place: a link would change under way")
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)
        about = target.stat()
        return target, [about.st_size, about.st_mtime_ns]

    def _read_sent(self) -> dict[str, list[int]]:
        try:
            sent: dict[str, list[int]] = json.loads(self._sent.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return sent

    def _write_sent(self, sent: dict[str, list[int]]) -> None:
        self._sent.parent.mkdir(parents=True, exist_ok=True)
        part = self._sent.with_name(f"{self._sent.name}.part")
        part.write_text(json.dumps(sent))
        os.replace(part, self._sent)


class KeptHere(Results):
    """Of a run whose results stay where they are written."""

    def __init__(self) -> None:
        pass

    def offer(self) -> None:
        pass

    def finish(self, limit_s: float = FINAL_LIMIT_S) -> str:
        return ""
