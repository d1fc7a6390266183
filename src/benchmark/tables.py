"""The report of a sweep for people and spreadsheets: text for the terminal, Markdown, CSV."""

import csv
import io
import shlex
from typing import Any, Dict, List, Optional, Sequence

from src.benchmark.cell import LATENCIES, Cell, is_rate
from src.benchmark.sweep import Sweep

NONE = "-"
LATENCY_HEADS = ("mean", "p50", "p90", "p95", "p99", "max")
HEAD = [
    "devices",
    "batch",
    "images/s",
    "spread",
    "speed-up",
    "efficiency",
    *(f"{h} ms" for h in LATENCY_HEADS),
]
TITLES = {"train": "training", "val": "validation"}


def as_text(sweep: Sweep) -> str:
    """Aligned columns, a table for each phase, and below them what is missing and why."""
    parts = []
    for phase in sweep.benchmark.phases:
        rows = [HEAD, *_rows(sweep, phase)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
        lines = ["  ".join(word.rjust(width) for word, width in zip(row, widths)) for row in rows]
        parts.append("\n".join([f"{TITLES[phase]}, {_title(sweep)}", *lines]))
    parts += [f"no figures of {line}" for line in _missing(sweep)]
    return "\n\n".join(parts) + "\n"


def as_markdown(sweep: Sweep) -> str:
    """The same as Markdown, with machine and command."""
    parts = [f"# {_title(sweep)}"]
    if _machine(sweep):
        parts.append(_machine(sweep))
    parts.append(f"    {shlex.join(sweep.cmd)}")  # indented: as it is, whatever stands in it
    for phase in sweep.benchmark.phases:
        rows = [HEAD, ["---:"] * len(HEAD), *_rows(sweep, phase)]
        table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
        parts.append(f"## {TITLES[phase].capitalize()}\n\n{table}")
    parts.append(_notes(sweep))
    if sweep.missing():
        missing = "\n".join(f"* {_escaped(line)}" for line in _missing(sweep))
        parts.append(f"## Missing\n\n{missing}")
    return "\n\n".join(parts) + "\n"


def as_csv(sweep: Sweep) -> str:
    """One line for each cell, with all figures in full, in the report's names and units (images/s, s)."""
    rates = [key for key in sweep.keys if is_rate(key)]
    derived = [f"{rate}.{name}" for rate in rates for name in ("spread", "speedup", "efficiency")]
    head = ["ngpus", "bs", "state", *sweep.keys, *derived, "exit_code", "seconds", "reason"]
    file = io.StringIO()
    writer = csv.DictWriter(file, head, lineterminator="\n")
    writer.writeheader()
    for cell in sweep.cells:
        result = sweep.result(cell)
        row: Dict[str, Any] = {"ngpus": cell.num_devices, "bs": cell.batch_size, "state": result.state}
        row.update(result.metrics)
        for rate in rates:
            row[f"{rate}.spread"] = sweep.spread(cell, rate)
            row.update({f"{rate}.{name}": value for name, value in sweep.scaling(cell, rate).items()})
        row.update(exit_code=result.exit_code, seconds=result.seconds, reason=result.reason)
        writer.writerow(row)
    return file.getvalue()


def speed(sweep: Sweep, cell: Cell) -> str:
    """The rates of a cell in words."""
    metrics = sweep.result(cell).metrics
    words = []
    for phase in sweep.benchmark.phases:
        ips = metrics[f"{phase}.total_ips"]
        words.append(f"{TITLES[phase]} {NONE if ips is None else f'{_digits(ips)} images/s'}")
    return ", ".join(words)


def _rows(sweep: Sweep, phase: str) -> List[List[str]]:
    rows = []
    for cell in sweep.cells:
        metrics, rate = sweep.result(cell).metrics, f"{phase}.total_ips"
        spread, scaling = sweep.spread(cell, rate), sweep.scaling(cell, rate)
        latencies = [metrics[f"{phase}.latency_{which}"] for which in LATENCIES]
        rows.append(
            [
                str(cell.num_devices),
                str(cell.batch_size),
                _digits(metrics[rate]),
                _percent(spread, 1),
                NONE if scaling["speedup"] is None else f"{scaling['speedup']:.2f}",
                _percent(scaling["efficiency"], 0),
                *(_digits(None if s is None else 1e3 * s) for s in latencies),
            ]
        )
    return rows


def _digits(number: Optional[float]) -> str:
    """Four significant digits or all before the point; without exponent, and without grouping for scripts."""
    if number is None:
        return NONE
    return f"{number:.0f}" if number >= 1000 else f"{number:#.4g}".rstrip(".")


def _percent(fraction: Optional[float], digits: int) -> str:
    return NONE if fraction is None else f"{100 * fraction:.{digits}f} %"


def _title(sweep: Sweep) -> str:
    b = sweep.benchmark
    measured = b.epochs - b.warmup
    epochs = "1 epoch" if measured == 1 else f"{measured} epochs"
    after = f" after {b.warmup} of warm-up" if b.warmup else ""
    return f"{sweep.reported('model') or sweep.model}: {epochs} of {b.benchmark_iters} steps at most{after}"


def _machine(sweep: Sweep) -> str:
    about = sweep.reported("environment") or {}
    if not about:
        return ""
    commit = f", suite at {about['git_commit'][:12]}" if about.get("git_commit") else ""
    return (
        f"{about.get('device')} on {about.get('host')}, {about.get('cores')} cores of "
        f"{about.get('processor')}; Python {about.get('python')}, MindSpore {about.get('mindspore')}, "
        f"NumPy {about.get('numpy')}{commit}"
    )


def _notes(sweep: Sweep) -> str:
    base = min(sweep.benchmark.num_devices)
    return (
        "Images/s of all devices, over the steady steps of the measured epochs (harmonic mean); spread: the "
        "highest less the lowest of these epochs, in parts of it. Speed-up and efficiency: against "
        f"{'1 device' if base == 1 else f'{base} devices'} at the same batch size per device. Latencies: of "
        "the steady steps, by rank 0's clock."
    )


def _missing(sweep: Sweep) -> Sequence[str]:
    return [f"{cell}: {sweep.result(cell).reason}" for cell in sweep.missing()]


def _escaped(text: str) -> str:
    """As Markdown shows it as it is."""
    return "".join(f"\\{c}" if c in "\\`*_<|" else c for c in text)
