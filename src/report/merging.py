"""One figure for all ranks, out of what each of them measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

from src.report.timing import StepTimes

Gather = Callable[[Sequence[float]], list[list[float]]]
# What each rank tells the others.
TOLD = ("ips", "data_time", "compute_time", "other_time", "warmup_time")


def merged(
    times: StepTimes, prefix: str, batch_size: int, gather: Gather
) -> tuple[dict[str, Optional[float]], dict[str, Any]]:
    """The report's figures of speed and time over all ranks, and what each rank measured, rank by rank.

    Images of all devices over the wall time of the slowest: devices that train together all take as long.
    The times are those of the rank that waited longest for data, as the others waited for it, and seem to
    compute meanwhile. Latencies are this rank's. `gather` is a collective (World.gather).
    """
    own = times.metrics(prefix, batch_size)
    told = {"ips": own[f"{prefix}.total_ips"] or 0.0}
    told.update({name.split(".")[1]: seconds for name, seconds in times.parts(prefix).items()})
    rows = gather([told[name] for name in TOLD])
    speeds = [row[0] for row in rows if row[0] > 0]  # a rank may have had too little to measure
    waited = max(rows, key=lambda row: row[TOLD.index("data_time")])
    figures = {
        **own,
        f"{prefix}.total_ips": min(speeds) * len(rows) if speeds else None,
        **{f"{prefix}.{name}": seconds for name, seconds in zip(TOLD[1:], waited[1:])},
    }
    return figures, {f"{prefix}.{name}": [row[i] for row in rows] for i, name in enumerate(TOLD)}
