"""Times of the steps of an epoch, and what the report says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

LATENCY_PERCENTILES = (50, 90, 95, 99, 100)
MAX_WARMUP_STEPS = 20
WARMUP_SHARE = 0.1


@dataclass
class StepTimes:
    """Seconds of each step, in order: waiting for data, computing, and all since the step before."""

    waits: list[float] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)

    def add(self, wait: float, duration: float, total: float | None = None) -> None:
        """`total` is more than wait + duration where something else was done between the steps."""
        self.waits.append(wait)
        self.durations.append(duration)
        self.totals.append(wait + duration if total is None else total)

    @property
    def num_warmup(self) -> int:
        """Steps at the start that are not steady: min(20, steps / 10 rounded up)."""
        return min(MAX_WARMUP_STEPS, math.ceil(len(self.durations) * WARMUP_SHARE))

    @property
    def compile_s(self) -> Optional[float]:
        """What the first step took beyond a steady one: compiling the graph, where that step compiled one.

        None when no steady step is left.
        """
        steady = self.durations[self.num_warmup :]
        return max(0.0, self.durations[0] - float(np.median(steady))) if steady else None

    def parts(self, prefix: str) -> dict[str, float]:
        """Where the steady steps' time went, and that of the steps before them, in seconds."""
        first = self.num_warmup
        waits, durations = sum(self.waits[first:]), sum(self.durations[first:])
        return {
            f"{prefix}.data_time": waits,
            f"{prefix}.compute_time": durations,
            f"{prefix}.other_time": max(0.0, sum(self.totals[first:]) - waits - durations),
            f"{prefix}.warmup_time": sum(self.totals[:first]),
        }

    def metrics(self, prefix: str, images_per_step: int) -> dict[str, Optional[float]]:
        """Images per second of all devices, and latencies in seconds, over the steady steps.

        All null when no steady step is left. `images_per_step` counts all devices.
        """
        steady = np.array(self.totals[self.num_warmup :])
        names = [f"{prefix}.latency_{p}" for p in LATENCY_PERCENTILES]
        if steady.size == 0:
            return dict.fromkeys([f"{prefix}.total_ips", f"{prefix}.latency_avg", *names])
        return {
            f"{prefix}.total_ips": images_per_step * steady.size / float(steady.sum()),
            f"{prefix}.latency_avg": float(steady.mean()),
            **{n: float(v) for n, v in zip(names, np.percentile(steady, LATENCY_PERCENTILES))},
        }
