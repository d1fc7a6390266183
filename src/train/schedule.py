"""Learning rate as a pure function of the epoch position x = epoch + step / steps_per_epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from src.config import Training

DEFAULT_FACTOR = {"cosine": 0.256, "multistep": 0.1}


@dataclass(frozen=True)
class Segment:
    """One stretch of the schedule, for begin <= x < end (epochs); `peak` is its highest rate."""

    kind: str  # "linear": peak x / warmup;  "cosine": from peak at begin to 0 at end;  "constant": peak
    begin: float
    end: float
    peak: float
    warmup: float = 0.0

    def rate(self, x: float) -> float:
        if self.kind == "linear":
            return self.peak * x / self.warmup
        if self.kind == "cosine":
            progress = min(1.0, (x - self.begin) / (self.end - self.begin))
            return self.peak / 2 * (1 + math.cos(math.pi * progress))
        return self.peak


@dataclass(frozen=True)
class Schedule:
    """Consecutive segments from epoch 0; past the last end the last segment's final rate holds."""

    segments: tuple[Segment, ...]

    def rate(self, x: float) -> float:
        """Learning rate at epoch position x (0 at the very first step when there is a warm-up)."""
        for segment in self.segments:
            if x < segment.end:
                return segment.rate(x)
        return self.segments[-1].rate(x)


def schedule(training: Training, peak: float) -> Schedule:
    """The schedule that the options ask for, reaching `peak` after the warm-up."""
    if training.lr_factor is None:
        factor = DEFAULT_FACTOR[training.lr_schedule]
    else:
        factor = training.lr_factor
    warmup, end, steps = training.warmup_epochs, float(training.num_epochs), training.lr_steps
    if training.lr_schedule == "multistep":
        return Schedule(tuple(_multistep(peak, warmup, end, steps, factor)))
    segments = [Segment("linear", 0.0, warmup, peak, warmup)] if warmup else []
    edges = [warmup, *steps, end]
    for k, (a, b) in enumerate(zip(edges, edges[1:])):
        segments.append(Segment("cosine", a, b, peak * factor**k))
    return Schedule(tuple(segments))


def _multistep(
    peak: float, warmup: float, end: float, steps: tuple[float, ...], factor: float
) -> list[Segment]:
    """peak x factor^(steps passed) x min(1, x / warmup), cut where either changes."""
    edges = sorted({0.0, *steps, end, *([warmup] if warmup else [])})
    segments = []
    for a, b in zip(edges, edges[1:]):
        rate = peak * factor ** sum(step <= a for step in steps)
        kind = "linear" if a < warmup else "constant"
        segments.append(Segment(kind, a, b, rate, warmup))
    return segments
