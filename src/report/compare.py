"""Runs side by side: `python -m src.report.compare RUN1 RUN2 ...` prints a table and writes a page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Callable, Optional

from src.errors import SuiteError
from src.report import wording
from src.report.breakdown import bound_by
from src.report.html import EPOCH_CHARTS, report_in
from src.report.report import load, write_atomically
from src.report.webpage import Curve, chart, page, table

# Options of where a run is, not of what it computes: no two runs have the same.
PLACES = {"workspace", "config", "overwrite", "resume"}


@dataclass(frozen=True)
class Run:
    """A report, under the name by which it is told from the others."""

    name: str
    document: Mapping[str, Any]

    def values(self, metric: str) -> list[float]:
        """The metric's values in all epochs that have one."""
        return [value for value in self.document["metrics"].get(metric, []) if value is not None]


def read_runs(places: Sequence[Path]) -> list[Run]:
    """The runs, named by the shortest part of their paths that tells them apart. Raises SuiteError."""
    reports = [report_in(place) for place in places]
    paths = [(r.parent if r.name == "report.json" else r).absolute() for r in reports]
    shared = os.path.commonpath([path.parent for path in paths])
    return [Run(os.path.relpath(path, shared), load(report)) for path, report in zip(paths, reports)]


def _last(run: Run, metric: str, written: Callable[[float], str]) -> str:
    values = run.values(metric)
    return written(values[-1]).strip() if values else "-"


def _best(run: Run) -> str:
    best = run.document.get("best")
    if best:
        weights = ", averaged weights" if best.get("weights") == "ema" else ""
        return f"{best['top1']:.2%} (epoch {best['epoch'] + 1}{weights})"
    top1 = run.values("val.top1")
    return f"{max(top1):.2%}" if top1 else "-"


def _final(run: Run) -> str:
    """Of the weights that the best one is of, too."""
    if run.values("val.ema_top1"):
        return _last(run, "val.ema_top1", wording.percent) + " (averaged weights)"
    return _last(run, "val.top1", wording.percent)


def _speed(run: Run) -> str:
    speeds = run.values("train.total_ips")
    return wording.speed(median(speeds)).strip() if speeds else "-"


ROWS: dict[str, Callable[[Run], str]] = {
    "status": lambda run: run.document["status"],
    "epochs": lambda run: str(len(run.document["epochs"])),
    "best top-1": _best,
    "final top-1": _final,
    "final validation loss": lambda run: _last(run, "val.loss", wording.loss),
    "final training loss": lambda run: _last(run, "train.loss", wording.loss),
    "time": lambda run: wording.duration(run.document["total_duration"]).strip(),
    "training, median epoch": _speed,
    "devices": lambda run: f"{run.document['ngpus']} x {run.document['environment'].get('device', '?')}",
    "bound by": lambda run: (bound_by(run.document["metrics"]) or "-").split(":")[0].split(",")[0],
}


def rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """What came out of the runs, a column for each, and below it the options in which they differ."""
    found = [(title, *(written(run) for run in runs)) for title, written in ROWS.items()]
    options = [run.document["config"] for run in runs]
    for name in dict.fromkeys(name for config in options for name in config):
        told = [wording.as_text(config[name]) if name in config else "(unknown)" for config in options]
        if name not in PLACES and len(set(told)) > 1:
            found.append((f"--{name}", *told))
    return found


def as_text(runs: Sequence[Run]) -> str:
    """The rows as a table of plain text."""
    lines = [("", *(run.name for run in runs)), *rows(runs)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in lines)


def as_page(runs: Sequence[Run]) -> str:
    """The rows, and the curves of all runs one over the other."""
    xs = sorted({epoch for run in runs for epoch in run.document["epochs"]})
    charts = []
    for title, (metrics, factor) in EPOCH_CHARTS.items():
        for metric in metrics:
            curves = [Curve(run.name, _over(xs, run.document, metric, factor)) for run in runs]
            charts.append(chart(f"{title}: {metric}", "epoch", [x + 1 for x in xs], curves))
    body = [
        "<h1>Runs side by side</h1>",
        table(["", *(run.name for run in runs)], rows(runs)),
        '<h2>Epochs</h2>\n<div class="grid" id="by-epoch"></div>',
    ]
    return page("Runs side by side", body, {"by-epoch": [found for found in charts if found]})


def _over(
    epochs: Sequence[int], document: Mapping[str, Any], metric: str, factor: float
) -> list[Optional[float]]:
    """A run's metric at each of `epochs`, None where the run has none."""
    found = dict(zip(document["epochs"], document["metrics"].get(metric, [])))
    return [None if found.get(epoch) is None else factor * found[epoch] for epoch in epochs]


def main(argv: Optional[list[str]] = None) -> int:
    """Print the table, write the page, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m src.report.compare", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of a run, or a report.json")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("comparison.html"), help="the page to write"
    )
    arguments = parser.parse_args(argv)
    try:
        if len(arguments.runs) < 2:
            raise SuiteError(f"there is nothing to compare {arguments.runs[0]} with: name two runs or more")
        runs = read_runs(arguments.runs)
        print(as_text(runs))
        write_atomically(arguments.output, as_page(runs))
    except (SuiteError, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    print(f"\npage: {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
