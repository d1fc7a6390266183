"""The ranks of a run as one World: exact sums, gathers and agreement, on whatever device.

Everything stands on float32 ops.AllReduce, the one collective that MindSpore documents for Ascend, GPU and
CPU alike. Every method is a collective: all ranks must call it, in the same order.
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
from src.platform import environment

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
        if self.size == 1:
            return bool(flag)
        return bool(_all_reduce(np.array([flag], np.float32))[0] > 0)

    def barrier(self) -> None:
        """Return once every rank has come here."""
        self.any(False)

    def mean_arrays(self, arrays: Sequence[np.ndarray]) -> List[np.ndarray]:
        """The mean over ranks of float32 arrays (batch norm's statistics), bitwise the same on every rank."""
        if self.size == 1:
            return [np.asarray(array, np.float32) for array in arrays]
        shapes = [np.shape(array) for array in arrays]
        flat = np.concatenate([np.ravel(array).astype(np.float32) for array in arrays])
        mean = _all_reduce(flat) / np.float32(self.size)
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(mean, ends), shapes)]


def init(device: str) -> World:
    """Choose graph mode and the device, and join the other ranks if a launcher started several.

    `device` is what environment.detect_device answered, and environment.prepare must have run before
    MindSpore was first imported. Raises SuiteError if the ranks do not find each other.
    """
    import mindspore as ms
    from mindspore import communication

    place = environment.this_rank()
    ms.set_context(mode=ms.GRAPH_MODE)
    if device == "CPU":
        ms.set_device("CPU")
    else:
        ms.set_device(device, place.local_rank)
    if place.size == 1:
        return World(device=device, local_rank=place.local_rank)
    try:
        communication.init()
    except RuntimeError as error:
        raise SuiteError(
            f"rank {place.rank} of {place.size} did not find the others: {str(error).strip().splitlines()[0]}"
        ) from error
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, parameter_broadcast=True)
    return World(communication.get_rank(), communication.get_group_size(), place.local_rank, device)


def leave(code: int, world: Optional[World] = None, finish: Callable[[int], int] = lambda code: code) -> int:
    """End this process with `code` if it is one rank of many; give the code back if it is alone.

    With a `world`, all ranks come here and leave together; without, this one leaves at once.
    `finish` may take its time, and change the code: the others need not wait for it.
    MindSpore's own ending is skipped: taking down its cluster ends one run in ten with SIGSEGV.
    """
    if environment.this_rank().size == 1:
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
