"""What is learned about an epoch while it runs: callbacks add to it, the report is made from it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from src.report.strict import strict
from src.report.timing import StepTimes

# Of an epoch under way, what was learned in the steps made so far.
SUMMED = (
    "loss", "steps", "top1", "top5", "counted", "skipped", "updates", "summed_steps", "window_loss",
    "window_steps",
)  # fmt: skip


@dataclass
class EpochRecord:
    """The epoch under way. `metrics` carries the report's names; sums are over all devices.

    A step is one batch per device; `accumulation` of them make an update of the weights.
    """

    num_steps: int
    accumulation: int = 1
    epoch: int = 0
    first_step: int = 0  # of this epoch in this process; the steps before it were made before a resume
    times: StepTimes = field(default_factory=StepTimes)
    loss: float = 0.0  # summed over the steps whose loss was a number
    steps: float = 0.0
    top1: float = 0.0
    top5: float = 0.0
    counted: float = 0.0  # images whose right answers are in top1 and top5
    skipped: float = 0.0  # updates without a finite gradient
    updates: float = 0.0  # those that were made
    summed_steps: int = 0  # of `steps_done`, those that are in the sums
    window_loss: float | None = 0.0  # mean over the last few steps; None if it was a number in none of them
    window_steps: int = 0
    begun: float = 0.0  # perf_counter, s
    idle_since: float = 0.0  # when the last step's work was over, callbacks included (perf_counter, s)
    metrics: dict[str, float | None] = field(default_factory=dict)
    compiles: bool = False  # the epoch's first step compiles a graph
    ranks: dict[str, Any] | None = None  # what each rank measured, for the report
    validated: bool = True  # False: all steps were made, and a stop came before the score

    def restart(self, epoch: int, compiles: bool = False) -> None:
        """Forget the last epoch."""
        self.compiles, self.ranks = compiles, None
        self.epoch, self.first_step, self.times, self.metrics = epoch, 0, StepTimes(), {}
        self.loss = self.steps = self.top1 = self.top5 = self.counted = self.skipped = self.updates = 0.0
        self.window_loss, self.window_steps, self.summed_steps = 0.0, 0, 0
        self.begun, self.validated = time.perf_counter(), True

    def progress(self) -> dict[str, Any]:
        """What a checkpoint in the middle of the epoch keeps of it; JSON gives the same numbers back.

        Once all steps are made, also the figures that they gave.
        """
        seconds = time.perf_counter() - self.begun
        figures = {"metrics": strict(self.metrics), "ranks": strict(self.ranks), "seconds": seconds}
        return {
            "epoch": self.epoch,
            "step": self.steps_done,
            **{name: getattr(self, name) for name in SUMMED},
            **(figures if self.complete else {}),
        }

    def go_on_from(self, progress: Mapping[str, Any]) -> None:
        """Take up the epoch that was restarted, where `progress` was noted."""
        self.first_step = progress["step"]
        for name in SUMMED:
            setattr(self, name, progress[name])
        self.metrics, self.ranks = dict(progress.get("metrics", {})), progress.get("ranks")
        self.begun -= progress.get("seconds", 0.0)

    def add(self, sums: Sequence[float], num_devices: int) -> None:
        """Take in the step's sums over all devices since the last call, in the order of `step.SUMS`."""
        loss, steps, top1, top5, counted, skipped = sums
        self.window_loss = loss / steps if steps else None
        skipped /= num_devices  # all devices skip together
        due = self.steps_done // self.accumulation - self.summed_steps // self.accumulation
        self.skipped, self.updates = self.skipped + skipped, self.updates + due - skipped
        self.window_steps, self.summed_steps = self.steps_done - self.summed_steps, self.steps_done
        self.loss, self.steps = self.loss + loss, self.steps + steps
        self.top1, self.top5, self.counted = self.top1 + top1, self.top5 + top5, self.counted + counted

    @property
    def steps_done(self) -> int:
        return self.first_step + len(self.times.durations)

    @property
    def position(self) -> float:
        """The last step's position in the schedule, in epochs: all batches of an update share one."""
        updates = self.num_steps // self.accumulation
        return self.epoch + (self.steps_done - 1) // self.accumulation / updates

    @property
    def complete(self) -> bool:
        """All steps were made: a run that is stopped in the middle neither validates nor saves."""
        return self.steps_done == self.num_steps

    @property
    def finished(self) -> bool:
        """Nothing is left to do for it but to save and tell it."""
        return self.complete and self.validated

    @property
    def updated(self) -> bool:
        """No gradients are waiting to be complete: only here a checkpoint holds everything."""
        return self.steps_done % self.accumulation == 0

    def at_display(self, every: int) -> bool:
        """Whether progress is due: every so many steps, and at the last one."""
        return self.steps_done % every == 0 or self.complete
