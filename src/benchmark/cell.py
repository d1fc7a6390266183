"""One cell of the sweep: a number of devices and a batch size, its run, and what that found."""

import dataclasses
import statistics
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from src.benchmark.running import Ended
from src.config.benchmark import Benchmark
from src.errors import SuiteError
from src.platform.culprit import ending
from src.report.report import load

LATENCIES = ("avg", "50", "90", "95", "99", "100")
# Options that every run is given unless the command line says otherwise: counting right answers and saving
# are no part of what is measured.
DEFAULTS = ("--no-metrics", "--save-frequency=0")
CONSOLE = "console.log"  # in the workspace of a run: what it printed


@dataclasses.dataclass(frozen=True)
class Cell:
    """What is measured, and where the run leaves its files."""

    num_devices: int
    batch_size: int
    workspace: Path

    def __str__(self) -> str:
        devices = "1 device" if self.num_devices == 1 else f"{self.num_devices} devices"
        return f"{devices}, batch size {self.batch_size}"

    @property
    def key(self) -> Tuple[str, str]:
        """Of the report's nested tables."""
        return str(self.num_devices), str(self.batch_size)

    @property
    def console(self) -> Path:
        return self.workspace / CONSOLE

    def words(self, benchmark: Benchmark, passed_on: Sequence[str]) -> List[str]:
        """The options of `runner`: later ones win over earlier ones, and all over a recipe."""
        own = {
            "num-devices": self.num_devices,
            "batch-size": self.batch_size,
            "benchmark-iters": benchmark.benchmark_iters,
            "run-epochs": benchmark.epochs,
            "mode": benchmark.mode,
            "workspace": self.workspace,
        }
        return [*DEFAULTS, *passed_on, *(f"--{name}={value}" for name, value in own.items())]


@dataclasses.dataclass(frozen=True)
class Result:
    """What is known of a cell. Its figures are None where there are none, and `reasons` tell why."""

    state: str  # waiting, completed, incomplete (some figure is missing), failed, interrupted
    metrics: Dict[str, Optional[float]]
    reasons: Dict[str, str]
    """by metric; of a run that failed the same for all"""
    epochs: Dict[str, List[Optional[float]]] = dataclasses.field(default_factory=dict)
    """of each metric, by epoch, the warm-up included"""
    exit_code: Optional[int] = None
    seconds: Optional[float] = None
    report: Dict[str, Any] = dataclasses.field(default_factory=dict)
    """what the run reported"""

    @property
    def reason(self) -> str:
        """Why a figure is missing; empty if all are there."""
        return next(iter(self.reasons.values()), "")


def metric_keys(phases: Sequence[str]) -> List[str]:
    """The measured metrics, in the names of report.json; the published script has the same."""
    return [
        f"{phase}.{name}" for phase in phases for name in ("total_ips", *(f"latency_{p}" for p in LATENCIES))
    ]


def is_rate(metric: str) -> bool:
    """Images/s, whose mean over epochs of as many images is the harmonic one."""
    return metric.endswith("_ips")


def without(state: str, keys: Sequence[str], reason: str, **known: Any) -> Result:
    """The result of a cell that has no figures, and why."""
    return Result(state, dict.fromkeys(keys), dict.fromkeys(keys, reason), **known)


def read(cell: Cell, ended: Ended, benchmark: Benchmark, report_name: str) -> Result:
    """What the run that has just ended found; in its workspace, made for it, is no other run's report."""
    keys = metric_keys(benchmark.phases)
    known: Dict[str, Any] = {"exit_code": ended.code, "seconds": round(ended.seconds, 3)}
    if ended.timed_out:
        return without("failed", keys, f"no end within --timeout {benchmark.timeout}", **known)
    report: Dict[str, Any] = {}
    try:
        report = load(cell.workspace / report_name)
        fault = _another(report, cell, benchmark)
    except SuiteError as error:
        fault = str(error)
    if ended.code != 0:
        fault = f"runner {ending(ended.code)}: {report.get('status_reason') or ended.last_words}"
    if fault:
        return without("failed", keys, fault, **known)
    known["report"] = report
    return _result(report, keys, benchmark.warmup, known)


def _another(report: Dict[str, Any], cell: Cell, benchmark: Benchmark) -> str:
    """In what the report is not that of a whole run of this cell; empty if it is."""
    wanted = {
        "status": ("completed", report.get("status")),
        "devices": (cell.num_devices, report.get("ngpus")),
        "batch size": (cell.batch_size, report.get("config", {}).get("batch-size")),
        "epochs": (benchmark.epochs, len(report.get("epochs", []))),
    }
    return "; ".join(
        f"the report tells of {name} {found}, not {due}"
        for name, (due, found) in wanted.items()
        if due != found
    )


def _result(report: Dict[str, Any], keys: Sequence[str], warmup: int, known: Dict[str, Any]) -> Result:
    metrics: Dict[str, Optional[float]] = {}
    reasons: Dict[str, str] = {}
    epochs = {key: report["metrics"][key] for key in keys if key in report["metrics"]}
    for key in keys:
        values = epochs.get(key, [None])[warmup:]
        metrics[key] = mean(key, values)
        if metrics[key] is None:
            why = report.get("null_reasons", {}).get(key, "the run did not report it")
            reasons[key] = f"{key}: {why}"
    return Result("incomplete" if reasons else "completed", metrics, reasons, epochs, **known)


def mean(metric: str, values: Sequence[Optional[float]]) -> Optional[float]:
    """Over epochs: harmonic for rates, arithmetic for times; None if one is missing."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values) or not numbers:
        return None
    return statistics.harmonic_mean(numbers) if is_rate(metric) else statistics.fmean(numbers)
