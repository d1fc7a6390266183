"""What is learned about an epoch while it runs: callbacks add to it, the report is made from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from src.report.timing import StepTimes


@dataclass
class EpochRecord:
    """The epoch under way. `metrics` carries the report's names; sums are over all devices."""

    num_steps: int
    epoch: int = 0
    times: StepTimes = field(default_factory=StepTimes)
    loss: float = 0.0
    steps: float = 0.0
    top1: float = 0.0
    top5: float = 0.0
    window_loss: float = 0.0  # mean over the last few steps
    idle_since: float = 0.0  # when the last step's work was over, callbacks included (perf_counter, s)
    metrics: dict[str, float | None] = field(default_factory=dict)

    def restart(self, epoch: int) -> None:
        """Forget the last epoch."""
        self.epoch, self.times, self.metrics = epoch, StepTimes(), {}
        self.loss = self.steps = self.top1 = self.top5 = self.window_loss = 0.0

    @property
    def steps_done(self) -> int:
        return len(self.times.durations)

    @property
    def complete(self) -> bool:
        """All steps were made: a run that is stopped in the middle neither validates nor saves."""
        return self.steps_done == self.num_steps

    def at_display(self, every: int) -> bool:
        """Whether progress is due: every so many steps, and at the last one."""
        return self.steps_done % every == 0 or self.complete
