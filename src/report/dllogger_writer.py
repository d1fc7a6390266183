"""Stands in for NVIDIA's `dllogger`, which no registry offers: the same calls, the same lines.

One difference, on purpose: NaN, infinities and numpy types are written as strict JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Callable, Union

from src.report.strict import strict

PathLike = Union[str, "os.PathLike[str]"]


class Verbosity:
    """A backend shows the records whose verbosity is not above its own."""

    OFF = -1
    DEFAULT = 0
    VERBOSE = 1


def default_step_format(step: Any) -> str:
    return str(step)


def default_metric_format(metric: str, metadata: Mapping[str, Any], value: Any) -> str:
    shown = value if value is None else ("{" + metadata.get("format", "") + "}").format(value)
    return f"{metric} : {shown} {metadata.get('unit', '')}"


def default_prefix_format(timestamp: datetime) -> str:
    return f"DLL {timestamp} - "


class StdOutBackend:
    """Lines for people: `DLL 2024-05-01 12:00:00.000001 - (0, 19) train.loss : 6.90400`."""

    def __init__(
        self,
        verbosity: int,
        step_format: Callable[[Any], str] = default_step_format,
        metric_format: Callable[[str, Mapping[str, Any], Any], str] = default_metric_format,
        prefix_format: Callable[[datetime], str] = default_prefix_format,
    ):
        self.verbosity = verbosity
        self.step_format = step_format
        self.metric_format = metric_format
        self.prefix_format = prefix_format
        self._metadata: dict[str, dict[str, Any]] = {}

    def metadata(
        self, timestamp: datetime, elapsedtime: float, metric: str, metadata: Mapping[str, Any]
    ) -> None:
        self._metadata.setdefault(metric, {}).update(metadata)

    def log(self, timestamp: datetime, elapsedtime: float, step: Any, data: Mapping[str, Any]) -> None:
        metrics = " ".join(
            self.metric_format(name, self._metadata.get(name, {}), data[name]) for name in data
        )
        print(f"{self.prefix_format(timestamp)}{self.step_format(step)} {metrics}")

    def flush(self) -> None:
        pass


class JSONStreamBackend:
    """Lines for programs: `DLLL {"timestamp": …}`, one record each.  Raises OSError where it cannot write."""

    def __init__(self, verbosity: int, filename: PathLike, append: bool = False):
        self.verbosity = verbosity
        self.file = open(filename, "a" if append else "w", encoding="utf-8")  # noqa: SIM115

    def metadata(
        self, timestamp: datetime, elapsedtime: float, metric: str, metadata: Mapping[str, Any]
    ) -> None:
        # The order of the keys differs between the two kinds of lines, as it does in the original.
        times = {
            "timestamp": str(timestamp.timestamp()),
            "elapsedtime": str(elapsedtime),
            "datetime": str(timestamp),
        }
        self._write({**times, "type": "METADATA", "metric": metric, "metadata": metadata})

    def log(self, timestamp: datetime, elapsedtime: float, step: Any, data: Mapping[str, Any]) -> None:
        times = {
            "timestamp": str(timestamp.timestamp()),
            "datetime": str(timestamp),
            "elapsedtime": str(elapsedtime),
        }
        self._write({**times, "type": "LOG", "step": step, "data": data})

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        self.file.close()

    def _write(self, record: Mapping[str, Any]) -> None:
        self.file.write(f"DLLL {json.dumps(strict(record), allow_nan=False)}\n")


class Logger:
    """Hands every record to all backends, with the time and the seconds since this object was made."""

    def __init__(self, backends: Sequence[Any], clock: Callable[[], datetime] = datetime.now):
        self.backends = backends
        self._clock = clock
        self.starttime = clock()

    def metadata(self, metric: str, metadata: Mapping[str, Any]) -> None:
        now = self._clock()
        for backend in self.backends:
            backend.metadata(now, (now - self.starttime).total_seconds(), metric, metadata)

    def log(self, step: Any, data: Mapping[str, Any], verbosity: int = Verbosity.VERBOSE) -> None:
        now = self._clock()
        for backend in self.backends:
            if backend.verbosity >= verbosity:
                backend.log(now, (now - self.starttime).total_seconds(), step, data)

    def flush(self) -> None:
        for backend in self.backends:
            backend.flush()
