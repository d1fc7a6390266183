"""Where a run's time went, and in words whether data or computing bounds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

# Of the steady steps' time, the share of waiting for data from which on one can feel it, and from which on it
# is what decides. Below the first, a faster pipeline could not make training faster by more than that.
NOTICEABLE, DECISIVE = 0.05, 0.2
# Part of the time -> the metrics whose sum it is (s); "-" before one takes it away.
PARTS: dict[str, tuple[str, ...]] = {
    "computing": ("train.compute_time",),
    "waiting for data": ("train.data_time",),
    "between steps": ("train.other_time",),
    "compiling": ("train.compile_time", "val.compile_time"),
    "first steps": ("train.warmup_time", "-train.compile_time"),
    "validation": ("val.time", "-val.compile_time"),
    "checkpoints": ("checkpoint_time",),
}
REST = "everything else"
Metrics = Mapping[str, Sequence[Optional[float]]]


def breakdown(metrics: Metrics) -> dict[str, float]:
    """Part of the time -> its seconds over all epochs, in all that of `epoch_time`; empty if nothing trained.

    What was not measured, as in a report of an older suite, is part of the rest.
    """
    if not metrics.get("epoch_time") or "train.compute_time" not in metrics:
        return {}
    found = {}
    for part, names in PARTS.items():
        signed = [(-1 if name[0] == "-" else 1) * _total(metrics, name.lstrip("-")) for name in names]
        found[part] = max(0.0, sum(signed))
    # A first step is no shorter than its compiling where both were measured; elsewhere nothing is known.
    found[REST] = max(0.0, _total(metrics, "epoch_time") - sum(found.values()))
    return found


def bound_by(metrics: Metrics) -> Optional[str]:
    """One sentence: is training bound by data or by compute? None if no step could be measured."""
    data, compute, other = (_total(metrics, f"train.{name}_time") for name in ("data", "compute", "other"))
    total = data + compute + other
    if total <= 0:
        return None
    waiting, between = data / total, other / total
    told = f"{waiting:.0%} of the time of steady steps is waiting for data"
    if between > max(DECISIVE, waiting):
        return f"neither data nor compute: {between:.0%} of the time passes between the steps; {told}"
    if waiting >= DECISIVE:
        return f"data: {told}; see --data-threads, --test-io"
    if waiting >= NOTICEABLE:
        return f"compute, though {told}"
    return f"compute: {told}"


def _total(metrics: Mapping[str, Any], name: str) -> float:
    return sum(value for value in metrics.get(name, ()) if value is not None)
