"""What a checkpoint of a training run holds: taken from all ranks, and put back on all ranks."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy as np

from src.train.assigning import assign
from src.train.record import EpochRecord
from src.train.statistics import changing_statistics
from src.weights import checkpoint
from src.weights.checkpoint import Checkpoint

if TYPE_CHECKING:
    import mindspore as ms

    from src.platform.distributed import World
    from src.train.step import TrainStep

# Parameters of the step that follow from the others between two updates, the only place for a checkpoint:
# no gradients wait there, and the statistics to go back to are those of the last update.
DERIVED = ("accumulated.", "accumulated_batches", "kept_statistics")
NOT_PLAIN = re.compile(r"rank\d+\.|" + "|".join(map(re.escape, DERIVED)))


def of_rank(rank: int, name: str) -> str:
    """The name under which a checkpoint has a rank's own value of what differs between ranks."""
    return f"rank{rank}.{name}"


def state(step: TrainStep) -> list[ms.Parameter]:
    """The parameters that a checkpoint holds."""
    return [p for p in step.get_parameters() if not p.name.startswith(DERIVED)]


def own_state(step: TrainStep) -> list[ms.Parameter]:
    """Those that differ between ranks within an epoch: moving statistics, and the sums since the display."""
    return [*changing_statistics(step), step.sums]


def take(step: TrainStep, world: World, within_epoch: bool) -> dict[str, np.ndarray]:
    """The tensors of a checkpoint, on rank 0; empty on the others. A collective within an epoch.

    There each rank's own values come under names of their own, and under the plain names what all ranks
    together have: mean statistics, with which the file can be scored too, and the sum of the sums.
    """
    collected = []
    if within_epoch and world.size > 1:
        collected = world.collect([p.asnumpy() for p in own_state(step)])
    if not world.is_main:
        return {}
    tensors = checkpoint.tensors_of(state(step))
    for i, parameter in enumerate(own_state(step) if collected else []):
        values = [arrays[i] for arrays in collected]
        tensors.update({of_rank(rank, parameter.name): value for rank, value in enumerate(values)})
        total = np.sum(values, 0, dtype=np.float64)
        together = total if parameter is step.sums else total / world.size
        tensors[parameter.name] = together.astype(np.float32)
    return tensors


def put_back(step: TrainStep, world: World, saved: Checkpoint) -> None:
    """Give the step the state of a checkpoint, bit for bit where it is of as many ranks. Strict.

    Otherwise every rank begins with the mean statistics, and the sums are empty: `folded` counts them.
    """
    plain = {name: value for name, value in saved.tensors.items() if not NOT_PLAIN.match(name)}
    checkpoint.load_training_state(state(step), dataclasses.replace(saved, tensors=plain))
    if saved.meta["world_size"] != world.size:
        assign(step.sums, np.zeros(step.sums.shape))
    elif of_rank(world.rank, step.sums.name) in saved.tensors:
        for parameter in own_state(step):
            assign(parameter, saved.tensors[of_rank(world.rank, parameter.name)])
    if step.statistics is not None:
        step.statistics.keep_now()


def folded(
    progress: Mapping[str, Any], sums: Sequence[float], num_devices: int, accumulation: int, step: int
) -> dict[str, Any]:
    """`progress` of an epoch with the sums since the last display counted in, for a run with other steps.

    `num_devices` and `accumulation` are those until now; `step` is that of the new run.
    """
    record = EpochRecord(num_steps=0, accumulation=accumulation)
    record.go_on_from(progress)
    record.add(sums, num_devices)
    return {**progress, **record.progress(), "step": step, "summed_steps": step}
