"""The only door to `dllogger`: the lines that people's scrapers read, written and read back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Optional, Union

from src.errors import SuiteError
from src.report.report import write_atomically
from src.report.strict import strict

PathLike = Union[str, "os.PathLike[str]"]

# What a reader of the log needs to print a metric.  An empty unit, not null: the original prints "None".
_FRACTION = {"unit": "", "format": ":.5f"}
_LOSS = {"unit": "", "format": ":.5f"}
_SPEED = {"unit": "images/s", "format": ":.2f"}
_SECONDS = {"unit": "s", "format": ":.5f"}
_PERCENTILES = ("avg", "50", "90", "95", "99", "100")
_TIMED_PARTS = ("data", "compute", "other", "warmup", "compile")
METADATA: dict[str, dict[str, str]] = {
    "train.loss": _LOSS,
    "train.ips": _SPEED,
    "train.lr": {"unit": "", "format": ":.6g"},
    "train.accuracy": _FRACTION,
    "train.top_k_accuracy_5": _FRACTION,
    **{f"{mode}.{part}_time": _SECONDS for mode in ("train", "val") for part in _TIMED_PARTS},
    "val.time": _SECONDS,
    "checkpoint_time": _SECONDS,
    "epoch_time": _SECONDS,
    "train.skipped_steps": {"unit": "", "format": ":.0f"},
    "train.loss_scale": {"unit": "", "format": ":.0f"},
    **{f"train.latency_{which}": _SECONDS for which in _PERCENTILES},
    "val.accuracy": _FRACTION,
    "val.top_k_accuracy_5": _FRACTION,
    "val.loss": _LOSS,
    "val.ema_accuracy": _FRACTION,
    "val.ema_top_k_accuracy_5": _FRACTION,
    "val.ema_loss": _LOSS,
    "val.ips": _SPEED,
    **{f"val.latency_{which}": _SECONDS for which in _PERCENTILES},
}


class Log:
    """A dllogger `Logger`, whichever implementation: values are sanitised and every record is flushed."""

    def __init__(self, logger: Any):
        self.logger = logger

    def log(self, step: Any, data: Mapping[str, Any], verbosity: int = 0) -> None:
        """`step`: "PARAMETER", (epoch, step), (epoch,) or () for the summary; verbosity 0 is DEFAULT."""
        self.logger.log(step=step, data=strict(data), verbosity=verbosity)
        self.logger.flush()

    def metadata(self, metric: str, metadata: Mapping[str, Any]) -> None:
        self.logger.metadata(metric, strict(metadata))
        self.logger.flush()

    def flush(self) -> None:
        self.logger.flush()

    def close(self) -> None:
        """Close the file; no record may follow."""
        self.logger.flush()
        for backend in self.logger.backends:
            if hasattr(backend, "close"):  # the original closes its file by itself, at exit
                backend.close()


def open_log(path: Optional[PathLike], append: bool, console: bool = False, announce: bool = True) -> Log:
    """A log into `path` (None: no file), and on stdout with `console`, where METADATA is announced.

    `append` continues the file of a resumed run; without `announce` METADATA stands there already.
    Raises SuiteError where the file cannot be opened.
    """
    dllogger = _implementation()
    backends = []
    if console:
        backends.append(dllogger.StdOutBackend(dllogger.Verbosity.DEFAULT, step_format=step_format))
    if path is not None:
        try:
            if append:
                _end_last_line(path)
            backends.append(
                dllogger.JSONStreamBackend(dllogger.Verbosity.VERBOSE, os.fspath(path), append=append)
            )
        except OSError as error:
            raise SuiteError(f"cannot write the log {os.fspath(path)}: {error.strerror or error}") from error
    log = Log(dllogger.Logger(backends))
    for metric, metadata in METADATA.items() if announce else ():
        log.metadata(metric, metadata)
    return log


def step_format(step: Any) -> str:
    """The published console form: `Epoch: 0 Iteration: 19 `."""
    if isinstance(step, str):
        return step
    if not step:
        return "Summary:"
    return "".join(
        f"{name}: {number} " for name, number in zip(("Epoch", "Iteration", "Validation Iteration"), step)
    )


def read_lines(path: PathLike) -> list[dict[str, Any]]:
    """The records of a log, other lines passed over; `dllog_reader.read` gives them types.

    A last line that a crash cut short is passed over too; damage elsewhere raises SuiteError.
    """
    return [record for _, record in numbered_lines(path)]


def numbered_lines(path: PathLike) -> list[tuple[int, dict[str, Any]]]:
    """The same, each record with the number of its line, from 1."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().rstrip().split("\n")
    except OSError as error:
        raise SuiteError(f"cannot read the log {os.fspath(path)}: {error.strerror or error}") from error
    records = []
    for number, line in enumerate(lines, start=1):
        if not line.startswith("DLLL "):
            continue
        record = _record(line)
        if record is not None:
            records.append((number, record))
        elif number < len(lines):
            raise SuiteError(
                f"line {number} of the log {os.fspath(path)} is damaged: remove the line to go on"
            )
    return records


def cut(path: PathLike, epoch: int, step: int) -> None:
    """Remove the records of what a resumed run makes again: from `step` of `epoch` on, both from 0.

    So no epoch stands there twice. Records of settings stay, and other lines. Raises SuiteError.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
        seen: set[str] = set()
        kept = [line for line in lines if _stays(line, epoch, step, seen)]
        if len(kept) < len(lines):
            write_atomically(path, "".join(kept), errors="surrogateescape")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise SuiteError(f"cannot write the log {os.fspath(path)}: {error.strerror or error}") from error


def _stays(line: str, epoch: int, step: int, seen: set[str]) -> bool:
    """`seen`: the metrics that were announced before."""
    record = _record(line) if line.startswith("DLLL ") else None
    if record is None:
        return True
    if record.get("type") == "METADATA":
        metric = str(record.get("metric"))
        again = metric in seen
        seen.add(metric)
        return not again
    at = record.get("step")
    if not isinstance(at, list):
        return True
    # The line of an epoch comes after its last step, the summary after all.
    return tuple(at) < (epoch, step) if len(at) > 1 else len(at) == 1 and at[0] < epoch


def _implementation() -> Any:
    try:
        import dllogger  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from src.report import dllogger_writer as dllogger
    return dllogger


def _record(line: str) -> Optional[dict[str, Any]]:
    """The record of a DLLL line, or None where the line is damaged."""
    try:
        record = json.loads(line[len("DLLL ") :])
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _end_last_line(path: PathLike) -> None:
    """Remove a record that a crash cut short: the next one would be glued to it, and both be lost."""
    try:
        with open(path, "r+b") as file:
            content = file.read()
            start = content.rfind(b"\n") + 1
            if start == len(content):
                return
            if _record(content[start:].decode("utf-8", "replace")) is None:
                file.truncate(start)
            else:
                file.write(b"\n")
    except FileNotFoundError:
        pass
