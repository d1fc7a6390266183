"""What is learned about an epoch while it runs: callbacks add to it, the report is made from it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from src.report.strict import strict
from src.report.timing import StepTimes

# Of an epoch under way, what was learned in the steps made so far.
SUMMED = (
    "loss", "steps", "top1", "top5", "counted", "skipped", "summed_steps", "window_loss", "window_steps",
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
    summed_steps: int = 0  # of `steps_done`, those that are in the sums
    window_loss: float | None = 0.0  # mean over the last few steps; None if it was a number in none of them
    window_steps: int = 0
    begun: float = 0.0  # perf_counter, s
    idle_since: float = 0.0  # when the last step's work was over, callbacks included (perf_counter, s)
    metrics: dict[str, float | None] = field(default_factory=dict)
    validated: bool = True  # False: all steps were made, and a stop came before the score

    def restart(self, epoch: int) -> None:
        """Forget the last epoch."""
        self.epoch, self.first_step, self.times, self.metrics = epoch, 0, StepTimes(), {}
        self.loss = self.steps = self.top1 = self.top5 = self.counted = self.skipped = 0.0
        self.window_loss, self.window_steps, self.summed_steps = 0.0, 0, 0
        self.begun, self.validated = time.perf_counter(), True

    def progress(self) -> dict[str, Any]:
        """What a checkpoint in the middle of the epoch keeps of it; JSON gives the same numbers back.

        Once all steps are made, also the figures that they gave.
        """
        figures = {"metrics": strict(self.metrics), "seconds": time.perf_counter() - self.begun}
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
        self.metrics = dict(progress.get("metrics", {}))
        self.begun -= progress.get("seconds", 0.0)

    def add(self, sums: Sequence[float], num_devices: int) -> None:
        """Take in the step's sums over all devices since the last call, in the order of `step.SUMS`."""
        loss, steps, top1, top5, counted, skipped = sums
        self.window_loss = loss / steps if steps else None
        self.window_steps, self.summed_steps = self.steps_done - self.summed_steps, self.steps_done
        self.loss, self.steps = self.loss + loss, self.steps + steps
        self.top1, self.top5, self.counted = self.top1 + top1, self.top5 + top5, self.counted + counted
        self.skipped += skipped / num_devices  # all devices skip together

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
