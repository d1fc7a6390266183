"""What every mode of a process is handed: options, world, data, journal, and the wish to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from src.config import Config
from src.data.splits import Splits
from src.platform.distributed import World
from src.platform.signals import Requests
from src.report.journal import Journal
from src.weights.resume import Plan


@dataclass(frozen=True)
class Job:
    """One process's part of one command."""

    config: Config
    world: World
    splits: Splits | None
    plan: Plan
    seed: int
    journal: Journal
    requests: Requests

    def options(self) -> dict[str, Any]:
        """All options with the seed that is used, as they go into report and log."""
        return {**self.config.plain(), "seed": self.seed}

    def note_top5(self, num_classes: int) -> None:
        """Say in the report what "top5" means where there are fewer classes."""
        self.journal.note(top5_k=min(5, num_classes))

    @property
    def data(self) -> Splits:
        assert self.splits is not None, "this mode reads a data set"
        return self.splits
