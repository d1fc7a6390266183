"""That all ranks hold the same state: made so at the start, and required there and at every checkpoint.

Ranks that drift apart do not fail: each goes on with a network of its own, the gradients' mean fits none of
them, and only the main process's is ever saved. So what must be equal is compared, by checksum.

Every function here is a collective (see platform/distributed.py): all ranks call it, with the same cells.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import mindspore as ms
import numpy as np

from src.errors import SuiteError
from src.train.assigning import assign
from src.train.snapshot import own_state

if TYPE_CHECKING:
    from src.config import Config
    from src.data.splits import Splits
    from src.platform.distributed import World
    from src.train.step import TrainStep

# Options that say where things are on a rank's own machine, or how many threads read them.
LOCAL_OPTIONS = {
    "config", "seed", "data-root", "data-train", "data-val", "data-pred", "data-source", "workspace", "load",
    "pretrained", "resume", "overwrite", "log", "dllogger-log", "report", "device-target", "device-ids",
    "compile-cache", "data-url", "train-url", "scratch", "data-threads", "data-validation-threads",
    "prefetch-queue",
}  # fmt: skip
MAX_NAMED = 3  # tensors, facts or ranks that an error lists by name


def begin_together(
    step: TrainStep,
    world: World,
    config: Config,
    splits: Splits,
    same: Mapping[str, Any],
    *,
    resumed: bool,
    warn: Callable[[str], None],
) -> None:
    """Raises SuiteError unless all ranks do the same work; then sees to it that they hold the same state.

    `same`: further facts that decide when ranks meet.
    """
    when = "after resuming" if resumed else "before the first step"
    images = {name: split and len(split) for name, split in (("train", splits.train), ("val", splits.val))}
    facts = {
        **{f"--{name}": value for name, value in config.plain().items() if name not in LOCAL_OPTIONS},
        **{f"images in {name}": number for name, number in images.items()},
        "classes": [list(label) for label in splits.classes],
        **same,
    }
    require_same(facts, world, when)
    make_equal(step, world, when, resumed=resumed, warn=warn)


def of_each_rank(step: TrainStep) -> set[str]:
    """The names of what each rank has for itself between two updates; all else of a step must be equal.

    Each gathers its own batch norm statistics and the averages of those, until they are averaged for
    validation, and sums its own losses and, where batches are accumulated, its own gradients.
    """
    own = {p.name for p in own_state(step)}
    if step.statistics is not None:
        own.add(step.statistics.kept.name)
    if step.accumulator is not None:
        own |= {p.name for p in step.accumulator.sums}
    return own


def require_equal(step: TrainStep, world: World, when: str) -> None:
    """Raises SuiteError on all ranks, naming the tensors and ranks that differ, if any do.

    `when`, for the person: "before the first step". Costs a CRC-32 of the parameters and a gather of three
    numbers. CRC-32 is enough against chance, which is the only adversary here: two different tensors agree in
    it once in 4e9 times.
    """
    if world.size == 1:
        return
    own = of_each_rank(step)
    differing = _differing([p for p in step.get_parameters() if p.name not in own], world, when)
    if differing:
        raise SuiteError(f"the ranks do not hold the same state {when}: {_told(differing)}")


def make_equal(
    step: TrainStep, world: World, when: str, *, resumed: bool, warn: Callable[[str], None]
) -> None:
    """Give all ranks the main process's state where theirs is another, and require that it is so.

    At a fresh start that is everything, so that no rank begins with statistics of its own either; after a
    resume what must be equal. One gather where all is equal already, as it is when all ranks drew from one
    seed or read one checkpoint.
    """
    if world.size == 1:
        return
    own = of_each_rank(step) if resumed else set()
    parameters = [p for p in step.get_parameters() if p.name not in own]
    differing = _differing(parameters, world, when)
    if differing:
        warn(f"the ranks did not hold the same state {when}; all go on with rank 0's: {_told(differing)}")
        received = [p for p in parameters if p.name in differing]
        for parameter, value in zip(received, world.broadcast_arrays([p.asnumpy() for p in received])):
            assign(parameter, value)
    require_equal(step, world, when)


def require_same(facts: Mapping[str, Any], world: World, when: str) -> None:
    """Raises SuiteError on all ranks unless each has the same facts (JSON values): the number of steps, say.

    Ranks that disagree about those would wait for each other for ever, or worse: MindSpore's CPU all-reduce
    adds whatever two ranks happen to bring, sizes and purposes unasked.
    """
    if world.size == 1:
        return
    checksums = [_crc(json.dumps([name, value], default=str).encode()) for name, value in facts.items()]
    rows = world.gather([len(facts), _crc(repr(checksums).encode())])
    if any(row[0] != rows[0][0] for row in rows):
        raise SuiteError(f"the ranks do not run the same command {when}: {_ranks(rows)} knows other facts")
    if any(row != rows[0] for row in rows):
        columns = list(zip(*world.gather(checksums)))
        names = [name for name, column in zip(facts, columns) if len(set(column)) > 1]
        rank = next(r for r, row in enumerate(rows) if row != rows[0])
        here = ", ".join(f"{name} ({facts[name]} on rank {world.rank})" for name in names[:MAX_NAMED])
        raise SuiteError(
            f"the ranks do not run the same command {when}: rank {rank} and rank 0 differ in {here}; "
            "start all with the same options, data and checkpoint"
        )


def _differing(parameters: Sequence[ms.Parameter], world: World, when: str) -> dict[str, list[int]]:
    """The names of parameters that are not those of rank 0 everywhere, and the ranks where they are not.

    Raises SuiteError if not all ranks have the same parameters in the first place.
    """
    layout = repr([(p.name, p.shape, str(p.dtype)) for p in parameters])
    checksums = [_crc(np.ascontiguousarray(p.asnumpy()).reshape(-1).view(np.uint8)) for p in parameters]
    rows = world.gather([len(parameters), _crc(layout.encode()), _crc(repr(checksums).encode())])
    if any(row[:2] != rows[0][:2] for row in rows):
        raise SuiteError(
            f"the ranks do not train the same network {when}: {_ranks([row[:2] for row in rows])} has other "
            "tensors than rank 0; start all with the same options"
        )
    if all(row == rows[0] for row in rows):
        return {}
    columns = zip(*world.gather(checksums))
    ranks = {
        p.name: [r for r, c in enumerate(column) if c != column[0]] for p, column in zip(parameters, columns)
    }
    return {name: found for name, found in ranks.items() if found}


def _crc(data: Any) -> int:
    return zlib.crc32(data)


def _ranks(rows: Sequence[Sequence[float]]) -> str:
    """The first rank whose row is not rank 0's."""
    return f"rank {next(rank for rank, row in enumerate(rows) if row != rows[0])}"


def _told(differing: Mapping[str, Sequence[int]]) -> str:
    name, ranks = next(iter(differing.items()))
    which = ", ".join(map(str, ranks[:MAX_NAMED])) + (", ..." if len(ranks) > MAX_NAMED else "")
    others = f", as do {len(differing) - 1} more tensors" if len(differing) > 1 else ""
    return f"{name} of rank {which} differs from rank 0's{others}"
