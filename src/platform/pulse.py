"""Signs of life: what a rank is doing, in a small file in memory that the supervisor reads.

A sign is written at every step and phase, without a lock and without waiting: one system call, about a
microsecond. A process that no runner started has nowhere to write to, and says nothing.
"""

import contextlib
import enum
import faulthandler
import functools
import io
import os
import signal
import struct
import time
from typing import NamedTuple, Optional

from src.platform import environment

_RECORD = struct.Struct("<qqqqd")
STACKS_SIGNAL = signal.SIGUSR2  # asks a rank to write the stacks of its Python threads to stderr


class Phase(enum.IntEnum):
    """What a rank is doing, in the order of a run."""

    SILENT = 0
    STARTING = 1
    STAGING = 2  # bringing data, or waiting for the rank that does
    OPENING = 3  # the device
    JOINING = 4  # waiting for the other ranks
    JOINED = 5
    COMPILING = 6
    TRAINING = 7
    VALIDATING = 8
    SAVING = 9
    LEAVING = 10
    FAILING = 11

    def __str__(self) -> str:
        return {Phase.STAGING: "bringing data", Phase.OPENING: "opening the device"}.get(
            self, self.name.lower()
        )


class Sign(NamedTuple):
    """The last sign of a rank. `number` tells a new one from an old; `time` is the monotonic clock's."""

    number: int = 0
    phase: Phase = Phase.SILENT
    epoch: int = -1
    step: int = -1
    time: float = 0.0

    def __str__(self) -> str:
        place = f" in epoch {self.epoch + 1}" if self.epoch >= 0 else ""
        place += f" after step {self.step}" if self.step >= 0 else ""
        return f"{self.phase}{place}"


class Pulse:
    """The side that gives signs; `fd` None: to nobody."""

    def __init__(self, fd: Optional[int]) -> None:
        self._fd, self._last = fd, Sign()

    def give(self, phase: Phase, epoch: Optional[int] = None, step: int = -1) -> None:
        """Say what is being done; the epoch stays as it was if none is given."""
        epoch = self._last.epoch if epoch is None else epoch
        self._last = Sign(self._last.number + 1, phase, epoch, step, time.monotonic())
        if self._fd is not None:
            os.pwrite(self._fd, _RECORD.pack(*self._last), 0)


def give(phase: Phase, epoch: Optional[int] = None, step: int = -1) -> None:
    """A sign of this process, counted from 0 in `epoch` and from 1 in `step`, to whoever started it."""
    _own().give(phase, epoch, step)


@functools.cache
def _own() -> Pulse:
    fd = environment.pulse_fd()
    if fd is not None:
        os.set_inheritable(fd, False)  # a process that this one starts has no part in it
    return Pulse(fd)


def answer_for_stacks() -> None:
    """Let the supervisor ask this process where it is, even if it is stuck outside Python."""
    if environment.pulse_fd() is not None:
        with contextlib.suppress(AttributeError, ValueError, OSError):  # stderr that is no file
            faulthandler.register(STACKS_SIGNAL, all_threads=True)


def open_file() -> io.FileIO:
    """A new file for the signs of one rank; its descriptor goes to the rank."""
    file = io.FileIO(os.memfd_create(environment.PULSE), "r+")
    file.truncate(_RECORD.size)
    return file


def read(file: io.FileIO) -> Sign:
    """The last sign that was written."""
    number, phase, epoch, step, when = _RECORD.unpack(os.pread(file.fileno(), _RECORD.size, 0))
    return Sign(number, Phase(phase), epoch, step, when) if number else Sign()
