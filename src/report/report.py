"""report.json: what a run was, how it went epoch by epoch, and how it ended."""

from __future__ import annotations

import bisect
import glob
import itertools
import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

from src.errors import SuiteError
from src.report.strict import strict

PathLike = Union[str, "os.PathLike[str]"]

SCHEMA_VERSION = 1
STATUSES = ("running", "completed", "interrupted", "failed")
THROUGHPUT_DEFINITION = (
    "total_ips: images of all devices divided by the wall time of the epoch's steady steps on the slowest "
    "device. The first min(20, steps / 10 rounded up) steps of an epoch and the compilation of the graph are "
    "left out and reported apart. Latencies are seconds per step over the same steps. Where no steady step "
    "is left the value is null, never 0."
)

# Only the methods below may change these: everything else is free for `set`.
_MANAGED = ("schema_version", "status", "status_reason", "total_duration", "epochs", "metrics")
_REQUIRED: dict[str, Any] = {
    "model": str,
    "ngpus": int,
    "total_duration": (int, float),
    "cmd": list,
    "metrics": dict,
    "epochs": list,
}
_temporary_number = itertools.count()


class Report:
    """The record of one run.  The file on disk is whole at every moment, whatever kills the process.

    `write()` once at the start, so that a run that dies in its first epoch leaves its configuration.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        model: str,
        num_devices: int,
        cmd: list[str],
        config: Mapping[str, Any],
        environment: Mapping[str, Any],
        dataset: Mapping[str, Any],
        fields: Optional[Mapping[str, Any]] = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.path = os.fspath(path)
        self._clock = clock
        self._started = clock()
        self._duration_before = 0.0
        self._document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "status": "running",
            "status_reason": None,
            "model": model,
            "ngpus": num_devices,
            "total_duration": 0.0,
            "cmd": cmd,
            "num_samples": None,
            "best": None,
            "epochs": [],
            "metrics": {},
            "dataset": dataset,
            "environment": environment,
            "config": config,
            "throughput_definition": THROUGHPUT_DEFINITION,
        }
        self.set(**(fields or {}))

    @classmethod
    def read(cls, path: PathLike, *, clock: Callable[[], float] = time.monotonic) -> Report:
        """Continue the run that left `path`: its status is "running" again and its duration counts on.

        Raises SuiteError where the file is missing or damaged.  `load` only looks.
        """
        report = cls.__new__(cls)
        report.path = os.fspath(path)
        report._clock = clock
        report._started = clock()
        report._document = load(path)
        report._duration_before = report._document["total_duration"]
        report._document.update(status="running", status_reason=None)
        return report

    def set(self, **fields: Any) -> None:
        """Note what concerns the whole run: best={...}, num_samples=50000, notes=...; not written yet."""
        forbidden = [name for name in fields if name in _MANAGED]
        assert not forbidden, f"{forbidden} are kept by the report itself"
        self._document.update(fields)

    def add_epoch(self, epoch: int, metrics: Mapping[str, Any]) -> None:
        """Record all metrics of an epoch (numbered from 0) and write the file.

        An epoch given again replaces what was recorded of it.  A metric without a value is null.
        """
        epochs, table = self._document["epochs"], self._document["metrics"]
        position = bisect.bisect_left(epochs, epoch)
        if epochs[position : position + 1] != [epoch]:
            epochs.insert(position, int(epoch))
            for values in table.values():
                values.insert(position, None)
        for name in metrics:
            table.setdefault(name, [None] * len(epochs))
        for name, values in table.items():
            values[position] = strict(metrics.get(name))
        self.write()

    def drop_epochs_from(self, epoch: int) -> None:
        """Forget `epoch` and all later ones: a run resumed there will train them again."""
        keep = bisect.bisect_left(self._document["epochs"], epoch)
        del self._document["epochs"][keep:]
        for values in self._document["metrics"].values():
            del values[keep:]

    def finish(self, status: str, reason: Optional[str] = None) -> None:
        """Record how the run ended (completed, interrupted or failed), and write the file."""
        assert status in STATUSES[1:], status
        self._document.update(status=status, status_reason=reason)
        self.write()

    def as_dict(self) -> dict[str, Any]:
        """The document as it would be written now: a copy, strict JSON."""
        duration = self._duration_before + self._clock() - self._started
        return strict({**self._document, "total_duration": round(duration, 3)})

    def write(self) -> None:
        """Replace the file in one step.  Raises SuiteError where that fails; the old file stays whole."""
        try:
            write_atomically(self.path, _to_text(self.as_dict()))
        except OSError as error:
            raise SuiteError(f"cannot write the report {self.path}: {error.strerror or error}") from error


def load(path: PathLike) -> dict[str, Any]:
    """The document in `path`, as it is.  Raises SuiteError with what is wrong and what to do."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise SuiteError(f"cannot read the report {os.fspath(path)}: {error.strerror or error}") from error
    except ValueError as error:  # covers both JSON and text decoding
        raise _damaged(path, f"it is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise _damaged(path, "it holds no JSON object")
    version = document.get("schema_version")
    if not isinstance(version, int):
        raise _damaged(path, "schema_version is missing")
    if version > SCHEMA_VERSION:
        message = f"the report {os.fspath(path)} has schema version {version}, newer than this suite's"
        raise SuiteError(f"{message} ({SCHEMA_VERSION}): update the suite or choose another workspace")
    for name, kind in _REQUIRED.items():
        if not isinstance(document.get(name), kind):
            raise _damaged(path, f"{name} is missing or of the wrong type")
    for name, values in document["metrics"].items():
        if not isinstance(values, list) or len(values) != len(document["epochs"]):
            raise _damaged(path, f"metric {name} does not have one value per epoch")
    return document


def mark_ended(path: PathLike, status: str, reason: str, left_as: Sequence[str] = ("running",)) -> bool:
    """Give a report that was left with one of the statuses `left_as` its end; whether it did.

    For the supervisor of the processes, when a rank died without a word.  It never raises: the rank's
    own error is what the user must see.
    """
    assert status in STATUSES[1:], status
    try:
        document = load(path)
        if document.get("status") not in left_as:
            return False
        document.update(status=status, status_reason=reason)
        write_atomically(path, _to_text(strict(document)))
    except (SuiteError, OSError):
        return False
    return True


def write_atomically(path: PathLike, text: str, errors: str = "strict") -> None:
    """Write `text` beside `path`, force it to the disk, and rename.  Raises OSError; `path` stays whole."""
    path = os.fspath(path)
    # A name of its own for each call: a signal handler may write while another write is under way.
    name = f".{os.path.basename(path)}.{os.getpid()}.{next(_temporary_number)}.tmp"
    temporary = os.path.join(os.path.dirname(path), name)
    try:
        with open(temporary, "x", encoding="utf-8", errors=errors) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def remove_unfinished(path: PathLike) -> None:
    """Remove what `write_atomically` left beside `path` where it was killed.  Nobody may be writing it."""
    folder, name = os.path.split(os.fspath(path))
    for left in glob.glob(os.path.join(glob.escape(folder), f".{glob.escape(name)}.*.tmp")):
        os.unlink(left)


def _to_text(document: Mapping[str, Any]) -> str:
    """JSON with one line per entry, for people: the epochs of a metric stand side by side."""
    entries = []
    for key, value in document.items():
        if isinstance(value, dict) and value:
            lines = [
                f"    {json.dumps(name)}: {json.dumps(item, allow_nan=False)}" for name, item in value.items()
            ]
            text = "{\n" + ",\n".join(lines) + "\n  }"
        else:
            text = json.dumps(value, allow_nan=False)
        entries.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _damaged(path: PathLike, why: str) -> SuiteError:
    return SuiteError(
        f"the report {os.fspath(path)} is damaged ({why}): move it away or choose another workspace"
    )
