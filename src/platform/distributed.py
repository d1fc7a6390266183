"""The ranks of a run as one World: exact sums, gathers and agreement, on whatever device.

Everything stands on float32 ops.AllReduce, the one collective that MindSpore documents for Ascend, GPU and
CPU alike. Every method is a collective: all ranks must call it, in the same order, with as many numbers.
Nothing checks that for us. On the CPU (MindSpore 2.10) an all-reduce of three numbers on one rank and of one
number on another "succeeds" on the first, with a number that means nothing. So whether a
collective is reached depends only on what all ranks know alike, never on one rank's data, time or luck:

* options, and the numbers of images, steps and epochs: compared at the start (train/agreement.py);
* steps: every rank cuts the same number of batches from one order (data/sampling.py), a file that cannot be
  decoded is replaced, never left out, and an epoch that ends early all the same ends its rank;
* what is decided on the way is decided from sums over all ranks: divergence from reduced gradients and
  summed losses, stopping from `any`;
* validation sums once at its end, whether a rank had images or not;
* MindSpore adds no collective of its own: its parameter_broadcast would hide one in each graph that is
  compiled, and a rank without validation images compiles none (measured: its sums were then silently wrong);
* a rank that raises leaves at once, without another collective (`leave`), and whoever started the processes
  ends the rest: they may be waiting for it in a collective, where no Python handler runs.
"""

import dataclasses
import functools
import logging
import math
import os
import sys
import time
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from src.errors import SuiteError
from src.platform import environment, pulse

LEAVE_DELAY_S = 1.0  # a rank that has its result may still have to send the others theirs, in a thread
PARTS = 3  # float32 parts of 24 bits each hold the 53 bits of a Python float


@dataclasses.dataclass(frozen=True)
class World:
    """The processes that train together; rank 0 is the one that writes and speaks."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    device: str = "CPU"

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def gather(self, values: Sequence[float]) -> List[List[float]]:
        """Every rank's values, a row per rank, exactly (down to 1e-38, and integers up to 2^53)."""
        if self.size == 1:
            return [[float(value) for value in values]]
        matrix = np.zeros((self.size, len(values), PARTS), np.float32)
        matrix[self.rank] = [_split(float(value)) for value in values]
        summed = _all_reduce(matrix)  # x + 0 is x: the other ranks' rows are zeros
        return [[math.fsum(map(float, parts)) for parts in row] for row in summed]

    def sum(self, values: Sequence[float]) -> List[float]:
        """The sum over ranks of each value, rounded once; the same on every rank."""
        return [_fsum(column) for column in zip(*self.gather(values))]

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return self.any_of([flag])[0]

    def any_of(self, flags: Sequence[bool]) -> List[bool]:
        """`any` of each flag, in one collective."""
        if self.size == 1:
            return [bool(flag) for flag in flags]
        return [bool(total > 0) for total in _all_reduce(np.array(flags, np.float32))]

    def barrier(self) -> None:
        """Return once every rank has come here."""
        self.any(False)

    def broadcast_arrays(self, arrays: Sequence[np.ndarray]) -> List[np.ndarray]:
        """The main process's arrays on every rank, in their types; integers up to 2^53."""
        if self.size == 1:
            return [np.asarray(array) for array in arrays]
        return [self._broadcast(array) for array in arrays]

    def _broadcast(self, array: np.ndarray) -> np.ndarray:
        if array.dtype == np.float32:  # x + 0 is x; of a NaN not every bit, and -0 is 0, but so on all ranks
            return _all_reduce(array if self.is_main else np.zeros_like(array)).reshape(array.shape)
        numbers = self.sum([float(x) if self.is_main else 0.0 for x in np.ravel(array)])
        return np.array(numbers, np.float64).astype(array.dtype).reshape(array.shape)

    def mean_arrays(self, arrays: Sequence[np.ndarray]) -> List[np.ndarray]:
        """The mean over ranks of float32 arrays (batch norm's statistics), bitwise the same on every rank."""
        if self.size == 1:
            return [np.asarray(array, np.float32) for array in arrays]
        shapes = [np.shape(array) for array in arrays]
        flat = np.concatenate([np.ravel(array).astype(np.float32) for array in arrays])
        mean = _all_reduce(flat) / np.float32(self.size)
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(mean, ends), shapes)]

    def collect(self, arrays: Sequence[np.ndarray]) -> List[List[np.ndarray]]:
        """Every rank's float32 arrays, a list per rank, bit for bit; as many small collectives as ranks."""
        shapes = [np.shape(array) for array in arrays]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        flat = np.concatenate([np.ravel(array).astype(np.float32, copy=False) for array in arrays])
        bits = flat.view(np.uint32)
        # In halves, which float32 numbers hold exactly: the bits of -0 and NaN would not survive a sum.
        halves = np.stack([bits >> 16, bits & 0xFFFF]).astype(np.float32)
        collected = []
        for rank in range(self.size):
            row = halves if rank == self.rank else np.zeros_like(halves)
            high, low = (row if self.size == 1 else _all_reduce(row)).astype(np.uint32)
            flat = (high << 16 | low).view(np.float32)
            collected.append([part.reshape(s) for part, s in zip(np.split(flat, ends), shapes)])
        return collected


def init(device: str) -> World:
    """Choose graph mode and the device, and join the other ranks if a launcher started several.

    `device` is what environment.detect_device answered, and environment.prepare must have run before
    MindSpore was first imported. Raises SuiteError if the ranks do not find each other.
    """
    import mindspore as ms
    from mindspore import communication

    place = environment.this_rank()
    pulse.give(pulse.Phase.OPENING)  # an accelerator may take its time
    ms.set_context(mode=ms.GRAPH_MODE)
    if device == "CPU":
        ms.set_device("CPU")
    else:
        ms.set_device(device, place.device_id)
    if place.alone:
        pulse.give(pulse.Phase.JOINED)
        return World(device=device, local_rank=place.local_rank)
    pulse.give(pulse.Phase.JOINING)
    try:
        communication.init()
    except RuntimeError as error:
        raise SuiteError(
            f"rank {place.rank} of {place.size} did not find the others: {str(error).strip().splitlines()[0]}"
        ) from error
    pulse.give(pulse.Phase.JOINED)
    # All ranks draw or load the same weights, or are given them (train/agreement.py). MindSpore's broadcast
    # would give every rank the moving statistics of rank 0 too, so that a run could not go on exactly within
    # an epoch, and it hides a collective in each graph that is compiled.
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", gradients_mean=True, parameter_broadcast=False
    )
    return World(communication.get_rank(), communication.get_group_size(), place.local_rank, device)


def leave(code: int, world: Optional[World] = None, finish: Callable[[int], int] = lambda code: code) -> int:
    """End this process with `code` if it is one rank of many; give the code back if it is alone.

    With a `world`, all ranks come here and leave together; without, this one leaves at once.
    `finish` may take its time, and change the code: the others need not wait for it.
    MindSpore's own ending is skipped: taking down its cluster ends one run in ten with SIGSEGV.
    """
    if environment.is_alone():
        return finish(code)
    if world is not None:
        world.barrier()
        time.sleep(LEAVE_DELAY_S)
    code = finish(code)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _split(value: float) -> List[float]:
    """Float32 numbers whose exact sum is `value`."""
    parts = []
    for _ in range(PARTS):
        part = float(np.float32(value))
        parts.append(part)
        value = value - part if math.isfinite(part) else 0.0
    return parts


def _fsum(values: Sequence[float]) -> float:
    return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)


def _all_reduce(array: np.ndarray) -> np.ndarray:
    from mindspore import Tensor

    return _all_reduce_operator()(Tensor(array)).asnumpy()


@functools.cache
def _all_reduce_operator() -> Any:
    from mindspore import ops

    return ops.AllReduce()
