"""The report of a sweep: the keys of the published script, and beside them how each figure came about."""

import dataclasses
import time
from typing import Any, Dict, List, Optional, Tuple

from src.benchmark.cell import Cell, Result, is_rate, metric_keys, without
from src.config.benchmark import Benchmark
from src.report.report import THROUGHPUT_DEFINITION
from src.report.strict import strict

SCHEMA_VERSION = 1
AGGREGATION = (
    "each figure is the mean over the epochs of its run, the first `warmup` ones left out: the harmonic mean "
    "for *_ips (images/s of all devices), the arithmetic one for latencies (s per step)"
)


@dataclasses.dataclass
class Sweep:
    """All cells, in the order in which they are measured, and what is known of them so far."""

    benchmark: Benchmark
    model: str
    cmd: List[str]
    cells: List[Cell]
    passed_on: List[str]
    results: Dict[Tuple[str, str], Result] = dataclasses.field(default_factory=dict)
    status: str = "running"  # completed, interrupted
    begun: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def keys(self) -> List[str]:
        return metric_keys(self.benchmark.phases)

    def result(self, cell: Cell) -> Result:
        return self.results.get(cell.key) or without("waiting", self.keys, "not measured yet")

    def figure(self, num_devices: int, batch_size: int, metric: str) -> Optional[float]:
        found = self.results.get((str(num_devices), str(batch_size)))
        return found.metrics[metric] if found else None

    def scaling(self, cell: Cell, metric: str) -> Dict[str, Optional[float]]:
        """Against the smallest number of devices at the same batch size per device (weak scaling).

        Speed-up: how many times as many images/s. Efficiency: that over how many times as many devices.
        """
        base = min(self.benchmark.num_devices)
        slow = self.figure(base, cell.batch_size, metric)
        fast = self.figure(cell.num_devices, cell.batch_size, metric)
        if slow is None or fast is None:
            return {"speedup": None, "efficiency": None}
        return {"speedup": fast / slow, "efficiency": fast / slow * base / cell.num_devices}

    def spread(self, cell: Cell, metric: str) -> Optional[float]:
        """How far the measured epochs of a run lie apart: (highest - lowest) / figure; None for one epoch."""
        result = self.result(cell)
        values = result.epochs.get(metric, [])[self.benchmark.warmup :]
        numbers, middle = [value for value in values if value is not None], result.metrics[metric]
        return (max(numbers) - min(numbers)) / middle if middle and len(numbers) > 1 else None

    def reported(self, name: str) -> Any:
        """An entry of the first run's report that has it."""
        return next((r.report[name] for r in self.results.values() if name in r.report), None)

    def missing(self) -> List[Cell]:
        """Cells without all figures."""
        return [cell for cell in self.cells if self.result(cell).state != "completed"]

    def as_dict(self) -> Dict[str, Any]:
        """The document, strict JSON."""
        b = self.benchmark
        rates = [key for key in self.keys if is_rate(key)]
        document = {
            "model": self.reported("model") or self.model,
            "ngpus": b.num_devices,
            "bs": b.batch_size,
            "metric_keys": self.keys,
            "metrics": self._nested({cell: self.result(cell).metrics for cell in self.cells}),
            "schema_version": SCHEMA_VERSION,
            "status": self.status,
            "mode": b.mode,
            "benchmark_iters": b.benchmark_iters,
            "epochs": b.epochs,
            "warmup": b.warmup,
            "aggregation": AGGREGATION,
            "throughput_definition": THROUGHPUT_DEFINITION,
            "scaling_base": min(b.num_devices),
            "scaling": {
                rate: self._nested({cell: self.scaling(cell, rate) for cell in self.cells}) for rate in rates
            },
            "cells": self._nested({cell: self._about(cell) for cell in self.cells}),
            "cmd": self.cmd,
            "environment": self.reported("environment"),
            "dataset": self.reported("dataset"),
            "total_duration": round(time.monotonic() - self.begun, 3),
        }
        plain: Dict[str, Any] = strict(document)
        return plain

    def _about(self, cell: Cell) -> Dict[str, Any]:
        result = self.result(cell)
        return {
            "state": result.state,
            "reasons": result.reasons,
            "exit_code": result.exit_code,
            "seconds": result.seconds,
            "workspace": cell.workspace,
            "options": cell.words(self.benchmark, self.passed_on),
            "epochs": result.epochs,
        }

    def _nested(self, values: Dict[Cell, Any]) -> Dict[str, Dict[str, Any]]:
        table: Dict[str, Dict[str, Any]] = {}
        for cell, value in values.items():
            devices, batch = cell.key
            table.setdefault(devices, {})[batch] = value
        return table
