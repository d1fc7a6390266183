"""What the report says of a run that ended before rank 0 could say so itself."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Callable, List, Optional, Tuple

from src import preflight
from src.config import RunnerConfig
from src.errors import SuiteError
from src.platform import machine
from src.weights import resume

if TYPE_CHECKING:
    from src.report.report import Report


@dataclasses.dataclass(frozen=True)
class Ending:
    """The report as it was before the ranks were started, to see whether rank 0 got as far as its own."""

    path: Path
    before: Optional[Tuple[int, int]]
    continues: bool  # the run that `path` tells of
    start: Callable[[], "Report"]  # a report of a run of which nothing is known yet

    @classmethod
    def expected(
        cls, config: RunnerConfig, device: str, size: int, prepared: preflight.Prepared, argv: List[str]
    ) -> "Ending":
        path = resume.output_file(config.for_rank(), config.output.report)

        def start() -> "Report":
            from src.report.report import Report

            return Report(
                path,
                model=config.model.arch,
                num_devices=size,
                cmd=["runner", *argv],
                config=config.for_rank().plain(),
                environment=machine.describe(device),
                dataset=prepared.splits.identity() if prepared.splits else {},
            )

        return cls(path, _version(path), prepared.plan.action == "continue" and path.exists(), start)

    def completed(self) -> bool:
        """Whether rank 0 wrote that all was done."""
        from src.report.report import load

        return _version(self.path) != self.before and load(self.path)["status"] == "completed"

    def write(self, status: str, reason: str) -> None:
        """Record the end unless a rank has done so. Raises SuiteError if the disk does not take it."""
        from src.report.report import STATUSES, load, mark_ended

        if _version(self.path) != self.before:
            # Ranks are sent SIGTERM whatever runner was sent, so what they wrote of it is not all.
            left_as = ("running", "interrupted") if status == "interrupted" else ("running",)
            written = mark_ended(self.path, status, reason, left_as) or load(self.path)["status"] != "running"
        elif self.continues:
            written = mark_ended(self.path, status, reason, left_as=STATUSES)
        else:
            self.start().finish(status, reason)
            written = True
        if not written:
            raise SuiteError(f"the report {self.path} could not be given this end, and still tells of a run")


def _version(path: Path) -> Optional[Tuple[int, int]]:
    """What changes whenever the file is replaced; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns
