"""Processes whose parent has died: this process adopts those that it caused, to be able to end them."""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Set

PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h
POLL_S = 0.01


class Orphanage:
    """From its making on, every descendant that loses its parent becomes a child of this process (Linux).

    So nothing can slip away by starting a session of its own. Children of the time before stay untouched.
    """

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._others = children()

    def clear(self) -> int:
        """Kill all children since, and what they leave behind in turn; returns how many there were."""
        killed: Set[int] = set()
        while True:
            left = children() - self._others
            if not left:
                return len(killed)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    if os.waitpid(pid, os.WNOHANG) != (0, 0):  # its own children are ours now
                        killed.add(pid)
            time.sleep(POLL_S)


def children() -> Set[int]:
    """The processes that this one is the parent of, ended ones that nobody waited for included."""
    found, own = set(), os.getpid()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            # pid (name) state parent ...; the name may hold anything, also brackets
            if int(file.read_text(errors="replace").rpartition(")")[2].split()[1]) == own:
                found.add(int(file.parent.name))
    return found
