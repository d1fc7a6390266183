"""One process of a run: how it is started, watched and ended.

Each is the leader of a session of its own, so that the terminal's Ctrl-C does not reach it and all that it
starts can be ended with it; and the kernel kills it if the supervisor is killed.
"""

import contextlib
import ctypes
import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import BinaryIO, Callable, List, Mapping, Optional, Tuple

from src.platform import environment, pulse
from src.platform.signals import ignore_save_requests

TAIL_LINES = 15
STACK_LINES = 60
STACKS_WAIT_S, STACKS_POLL_S = 0.5, 0.1
_NOISE = ("[INFO]", "[WARNING]")  # how MindSpore's own lines begin
PR_SET_PDEATHSIG = 1  # of linux/prctl.h


@dataclasses.dataclass(frozen=True)
class Process:
    """One process of a plan."""

    name: str
    command: List[str]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """added to the supervisor's own"""
    log: Optional[Path] = None
    """file to append its output to; None: the supervisor's own stdout and stderr"""
    cwd: Optional[Path] = None
    service: bool = False
    """serves the others: not waited for, and stopped after them"""
    pass_fds: Tuple[int, ...] = ()
    """files of the supervisor's that it keeps open too"""


class Child:
    """A started process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.code: Optional[int] = None  # as subprocess counts: -n is death by signal n
        self.ended_at: Optional[float] = None  # when that was noticed, on the monotonic clock
        self._log: Optional[BinaryIO] = None
        if process.log is not None:
            process.log.parent.mkdir(parents=True, exist_ok=True)
            self._log = process.log.open("a+b")
            self._log_start = self._log.seek(0, os.SEEK_END)
        self._pulse = None if process.service else pulse.open_file()
        told = {} if self._pulse is None else {environment.PULSE: str(self._pulse.fileno())}
        self._popen = subprocess.Popen(
            process.command,
            env=environment.for_child({**process.environment, **told}),
            pass_fds=(*process.pass_fds, *(() if self._pulse is None else (self._pulse.fileno(),))),
            cwd=process.cwd,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT if self._log else None,
            start_new_session=True,
            preexec_fn=_beginning(os.getpid()),
        )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self.code is None

    @property
    def sign(self) -> pulse.Sign:
        """Its last sign of life."""
        return pulse.Sign() if self._pulse is None else pulse.read(self._pulse)

    def poll(self) -> None:
        """Notice an end; before the process is reaped, kill what it left behind in its session."""
        if self.alive and os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self.signal_session(signal.SIGKILL)
            self._reap()

    def signal(self, number: int) -> None:
        if self.alive:
            os.kill(self._popen.pid, number)  # not reaped yet, so the pid is still its own

    def signal_session(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    def kill(self) -> None:
        if self.alive:
            self.signal_session(signal.SIGKILL)
            self._reap()

    def _reap(self) -> None:
        self.code, self.ended_at = self._popen.wait(), time.monotonic()

    def stacks(self, num_lines: int = STACK_LINES) -> List[str]:
        """Where its Python threads are, as it writes to its log when asked; without a log, to the console.

        Nothing if it is too early in its start to be asked: that would kill it.
        """
        if not self.alive or self.sign.phase is pulse.Phase.SILENT:
            return []
        begin, length = (self._log.seek(0, os.SEEK_END) if self._log else 0), -1
        self.signal(pulse.STACKS_SIGNAL)
        self.signal(signal.SIGCONT)  # a stopped process does not answer
        for _ in range(int(STACKS_WAIT_S / STACKS_POLL_S)):
            time.sleep(STACKS_POLL_S)
            end = self._log.seek(0, os.SEEK_END) if self._log else 0
            if end == length > begin:
                break  # there is something, and no more is coming
            length = end
        return self._lines(begin)[-num_lines:]

    def tail(self, num_lines: int = TAIL_LINES) -> List[str]:
        """The last lines that it wrote to its log in this run."""
        return self._lines(self._log_start)[-num_lines:] if self._log else []

    def _lines(self, begin: int) -> List[str]:
        if self._log is None:
            return []
        self._log.seek(begin)
        lines = self._log.read().decode("utf-8", "replace").splitlines()
        return [line for line in lines if not line.startswith(_NOISE)]


def _beginning(parent: int) -> Callable[[], None]:
    """What a child does before it becomes its command: ask to be killed when `parent` dies.

    And not to be killed by SIGUSR1: a batch system may send it to all processes of a job.
    """
    prctl = ctypes.CDLL(None).prctl  # loaded here, because little is safe between fork and exec

    def begin() -> None:
        ignore_save_requests()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return begin
