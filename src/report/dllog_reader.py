"""The dllogger lines of a run as typed records: what steps, epochs and the run came to, and in what units."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from src.errors import SuiteError
from src.report.dllog import numbered_lines

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Line:
    """What was logged at one place of the run."""

    time_s: float  # since 1970
    elapsed_s: float  # since this part of the run began
    step: tuple[int, ...]  # (epoch, step), (epoch,), or () for the summary; all counted from 0
    data: dict[str, Any]  # metric -> value, None where there is none


@dataclass(frozen=True)
class Metric:
    """How a metric is meant to be shown."""

    unit: str = ""
    format: str = ""  # of Python, with its colon: `:.2f`


@dataclass(frozen=True)
class Lines:
    """All records of a log, in the order in which they were written."""

    options: dict[str, Any] = field(default_factory=dict)  # of the last part of the run
    steps: list[Line] = field(default_factory=list)
    epochs: list[Line] = field(default_factory=list)
    summary: Optional[Line] = None  # a run that did not complete has none
    metrics: dict[str, Metric] = field(default_factory=dict)

    def series(self, metric: str) -> list[tuple[int, int, float]]:
        """(epoch, step, value) of each step line that holds a number for this metric."""
        found = [(line.step[0], line.step[1], line.data.get(metric)) for line in self.steps]
        return [(epoch, step, float(value)) for epoch, step, value in found if value is not None]


def read(path: PathLike) -> Lines:
    """The records of a log. Other lines, and a last one that a crash cut short, are passed over.

    Raises SuiteError, with file and line, for a line that is damaged or is none of dllogger's.
    """
    options: dict[str, Any] = {}
    steps: list[Line] = []
    epochs: list[Line] = []
    metrics: dict[str, Metric] = {}
    summary: Optional[Line] = None
    for number, record in numbered_lines(path):
        try:
            if record["type"] == "METADATA":
                about = record["metadata"]
                metrics[record["metric"]] = Metric(about.get("unit") or "", about.get("format") or "")
            elif record["step"] == "PARAMETER":
                options = dict(record["data"])
            else:
                line = _line(record)
                if len(line.step) == 0:
                    summary = line
                else:
                    (epochs if len(line.step) == 1 else steps).append(line)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SuiteError(
                f"line {number} of the log {os.fspath(path)} is no record of dllogger "
                f"({type(error).__name__}: {error}): remove the line to go on"
            ) from error
    return Lines(options, steps, epochs, summary, metrics)


def _line(record: dict[str, Any]) -> Line:
    step = record["step"]
    if record["type"] != "LOG" or not isinstance(step, list) or not all(type(n) is int for n in step):
        raise ValueError(f"type {record['type']!r}, step {step!r}")
    times = float(record["timestamp"]), float(record["elapsedtime"])
    if not all(map(math.isfinite, times)):
        raise ValueError("a time is not finite")
    return Line(*times, tuple(step), dict(record["data"]))
