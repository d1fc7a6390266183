"""What a profile of some training steps says: operators, waiting for data, and the rest."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from src.errors import SuiteError

TOP = 12  # operators that are listed; the rest is one line
# Where MindSpore's profiler puts the CPU's operators, below a folder with the time in its name.
OPERATORS = "*/FRAMEWORK/cpu_op_type_info_*.csv"
COLUMNS = ("op_type", "type_occurrences", "total_compute_time")  # the last in ms


def read_operators(folder: Path) -> list[dict[str, Any]]:
    """Operator types by time, the longest first: name, calls, seconds. Empty if the profiler wrote none.

    Raises SuiteError for a file that is not of the form that MindSpore 2.9 and 2.10 write.
    """
    found: dict[str, list[float]] = {}
    for path in sorted(folder.glob(OPERATORS)):
        try:
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    name, calls, milliseconds = (row[column] for column in COLUMNS)
                    total = found.setdefault(name, [0, 0.0])
                    total[0] += int(calls)
                    total[1] += float(milliseconds) / 1000
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise SuiteError(f"{path} is no table of operators: {type(error).__name__}: {error}") from error
    rows = [{"name": name, "calls": int(calls), "seconds": s} for name, (calls, s) in found.items()]
    return sorted(rows, key=lambda row: -float(row["seconds"]))


def document(
    epoch: int,
    waits: Sequence[float],
    durations: Sequence[float],
    totals: Sequence[float],
    operators: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """The report's `profile`, of the steps with these times (s); `operators` as read_operators gives them."""
    data, compute, wall = sum(waits), sum(durations), sum(totals)
    return {
        "epoch": epoch,
        "steps": len(totals),
        "wall_s": wall,
        "data_s": data,
        "compute_s": compute,
        "between_s": max(0.0, wall - data - compute),
        "operators_s": sum(row["seconds"] for row in operators) if operators else None,
        "operators": list(operators),
    }


def lines(profile: dict[str, Any]) -> list[str]:
    """The profile as a table for people. Shares are of the wall time."""
    wall = profile["wall_s"]
    rows: list[tuple[str, float, Optional[int]]] = [
        ("waiting for data", profile["data_s"], None),
        ("computing", profile["compute_s"], None),
    ]
    operators = profile["operators"]
    for row in operators[:TOP]:
        rows.append((f"  {row['name']}", row["seconds"], row["calls"]))
    if operators[TOP:]:
        rest = operators[TOP:]
        rows.append(
            (f"  {len(rest)} others", sum(row["seconds"] for row in rest), sum(row["calls"] for row in rest))
        )
    if operators:
        # Where operators run beside each other their times add up to more than the clock's.
        host = profile["compute_s"] - profile["operators_s"]
        rows.append(("  no operator (host)", max(0.0, host), None))
    rows.append(("between steps", profile["between_s"], None))
    width = max(len(name) for name, *_ in rows)
    steps = profile["steps"]
    told = [f"profile of {steps} steps of epoch {profile['epoch'] + 1}, {1000 * wall / steps:.1f} ms each"]
    for name, seconds, calls in rows:
        per_step = f"{1000 * seconds / steps:9.2f} ms  {seconds / wall:6.1%}"
        counted = f"  {calls / steps:6.0f} calls" if calls is not None else ""
        told.append(f"  {name:<{width}}  {per_step}{counted}")
    if not operators:
        told.append("  no operators: MindSpore's profiler wrote none for this device that are known here")
    return told
