"""One run at a time in a workspace: a lock that the kernel releases when the last process of a run has ended.

It is flock's lock on a file in the workspace. The file stays, and says who has it or had it last; by itself
it locks nothing, so nothing is left to be cleared away after a crash.
Such a lock belongs to the open file, not to a process: runner hands it on to its ranks, and it is held for as
long as one of them lives, also when runner was killed and they have not ended yet.
"""

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import Any, Dict, List, Sequence

from src.errors import OptionError
from src.platform import environment
from src.platform.child import Process

FILE = ".lock"
POLL_S = 0.1
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # what such file systems answer


class WorkspaceLock:
    """Not yet taken. Not `wanted` for commands that do not train: they replace no file of a run.

    Each node of a run has a file of its own, because they may share the workspace.
    """

    wait_s = 3.0  # ranks of a runner that was killed a moment ago may take so long to end

    def __init__(self, node_rank: int = 0, wanted: bool = True) -> None:
        self.name, self.wanted = f"{FILE}-node-{node_rank}" if node_rank else FILE, wanted
        self.fd = -1
        self.notices: List[str] = []

    def take(self, workspace: Path) -> bool:
        """Lock the workspace for this process and those it is handed to; whether this call did so.

        Raises OptionError if another run has it, or the workspace cannot be written.
        """
        if not self.wanted:
            return False
        self.wanted = False
        try:
            workspace.mkdir(parents=True, exist_ok=True)
            fd = os.open(workspace / self.name, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OptionError(
                f"--workspace {workspace} cannot be written: {error.strerror or error}"
            ) from None
        try:
            _lock(fd, workspace, time.monotonic() + self.wait_s)
        except BaseException as error:
            os.close(fd)
            if not isinstance(error, OSError) or error.errno not in NO_LOCKS:
                raise
            self.notices.append(
                f"the file system of --workspace {workspace} has no locks ({error.strerror}): see to it that "
                "no second run is started there"
            )
            return False
        self.fd = fd
        _note(fd)
        return True

    def handed_to(self, plan: Sequence[Process]) -> List[Process]:
        """The processes of `plan`, those which compute holding the lock too."""
        return [process if process.service else self._handed(process) for process in plan]

    def _handed(self, process: Process) -> Process:
        if self.fd < 0:
            return process
        variables = {**process.environment, environment.LOCK: str(self.fd)}
        return dataclasses.replace(process, environment=variables, pass_fds=(self.fd,))

    def keep_to_this_process(self) -> "WorkspaceLock":
        """Leave the lock out of what this process starts: it would hold it after this one's end."""
        os.register_at_fork(after_in_child=self._drop)
        return self

    def _drop(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def of_rank(rank: int, trains: bool) -> WorkspaceLock:
    """The lock of a process of train.py: handed on by runner, or to be taken by the rank that writes."""
    lock = WorkspaceLock(wanted=trains and rank == 0 and not environment.started_by_runner())
    handed = environment.lock_fd(FILE)
    if handed is not None:
        lock.fd = handed
        os.set_inheritable(handed, False)
    return lock.keep_to_this_process()


def _lock(fd: int, workspace: Path, deadline: float) -> None:
    """Raises OptionError if another run has it, OSError if it cannot be had by anyone."""
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise OptionError(
                    f"--workspace {workspace} is in use by another run{_holder(fd)}; give this one another "
                    "--workspace, or wait until that one has ended"
                ) from None
            time.sleep(POLL_S)


def _note(fd: int) -> None:
    """Say who has the lock. A disk so full that it does not take that tells so at the next file."""
    about = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(about).encode(), 0)


def _holder(fd: int) -> str:
    """Who has the lock, as it noted."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        about: Dict[str, Any] = json.loads(os.pread(fd, 4096, 0))
        return f" (process {about['pid']} on {about['host']}, since {about['since']})"
    return ""
