"""Where the report of a sweep, its tables and the workspaces of its runs are."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Optional

from src.benchmark import tables
from src.benchmark.sweep import Sweep
from src.errors import OptionError, SuiteError
from src.report.report import write_atomically


@dataclasses.dataclass(frozen=True)
class Files:
    """FILE.json, FILE.md, FILE.csv, and FILE_runs/N/ for the N-th sweep."""

    report: Path

    @property
    def _stem(self) -> str:
        return self.report.name[: -len(".json")] if self.report.suffix == ".json" else self.report.name

    @property
    def markdown(self) -> Path:
        return self.report.with_name(f"{self._stem}.md")

    @property
    def csv(self) -> Path:
        return self.report.with_name(f"{self._stem}.csv")

    def runs(self, number: int) -> Path:
        return self.report.with_name(f"{self._stem}_runs") / str(number)

    def next_number(self) -> int:
        """Of the sweep that would be made now, from 1."""
        names = [path.name for path in self.runs(0).parent.glob("*")]
        return 1 + max((int(name) for name in names if name.isdecimal()), default=0)

    def check(self) -> None:
        """Raises OptionError if there is something that no earlier sweep has written."""
        present = [path for path in (self.report, self.markdown, self.csv) if path.exists()]
        if present and not self._holds_sweep():
            raise OptionError(
                f"-o/--output {self.report}: {present[0]} is there, and not benchmark.py's; choose another"
            )

    def _holds_sweep(self) -> bool:
        try:
            return "metric_keys" in json.loads(self.report.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):  # absent, no JSON, or a number
            return False

    def make_room(self, number: int) -> Optional[Path]:
        """A new folder for the runs; an earlier report goes, with its tables, to its own: that is returned.

        Raises OptionError if that cannot be written.
        """
        try:
            self.runs(number).mkdir(parents=True)
            earlier = [path for path in (self.report, self.markdown, self.csv) if path.exists()]
            aside = self.runs(number - 1)
            for path in earlier:
                aside.mkdir(exist_ok=True)
                os.replace(path, aside / path.name)
        except OSError as error:
            raise self._unwritable(error) from None
        return aside if earlier else None

    def write(self, sweep: Sweep) -> None:
        """Replace all three, each in one step. Raises OptionError."""
        try:
            write_atomically(self.markdown, tables.as_markdown(sweep))
            write_atomically(self.csv, tables.as_csv(sweep))
            write_atomically(self.report, json.dumps(sweep.as_dict(), indent=1) + "\n")
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> SuiteError:
        return OptionError(f"-o/--output {self.report} cannot be written: {error.strerror or error}")
