"""report.html out of what a run left in its workspace: `python -m src.report.html WORKSPACE`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Optional

from src.errors import SuiteError
from src.report import dllog_reader, wording
from src.report.breakdown import bound_by, breakdown
from src.report.report import load, write_atomically
from src.report.validation_page import sections
from src.report.webpage import Curve, bar, cards, chart, page, table

MAX_POINTS = 1500  # of a curve over steps: more than a screen shows, and 30 kB a curve
# Title -> the metrics whose curves share a chart, and the factor to what people call them by.
EPOCH_CHARTS = {
    "loss": (("train.loss", "val.loss", "val.ema_loss"), 1.0),
    "accuracy, %": (
        ("train.top1", "val.top1", "val.ema_top1", "train.top5", "val.top5", "val.ema_top5"),
        100.0,
    ),
    "learning rate": (("train.lr",), 1.0),
    "images per second": (("train.total_ips", "val.total_ips"), 1.0),
}
STEP_CHARTS = {"loss": "train.loss", "learning rate": "train.lr", "images per second": "train.ips"}
Document = Mapping[str, Any]


def details_file(report: Path) -> Path:
    """Where the answers of validation stand, beside a report."""
    return report.with_suffix(".validation.json")


def write(report: Path) -> Path:
    """Write the page of a report beside it. Raises SuiteError or OSError."""
    target = report.with_suffix(".html")
    write_atomically(target, render(report))
    return target


def render(report: Path) -> str:
    """The page of a report, its dllogger lines, and the answers of its validation, where they are there."""
    document = load(report)
    body = [*_head(document), *_time(document)]
    charts = {"by-epoch": epoch_charts(document["metrics"], document["epochs"])}
    if charts["by-epoch"]:
        body += ["<h2>Epochs</h2>", '<div class="grid" id="by-epoch"></div>']
    log = report.with_name(str(document["config"].get("dllogger-log", "dllogger_log.log")))
    charts["by-step"] = _step_charts(dllog_reader.read(log)) if log.is_file() and document["epochs"] else []
    if charts["by-step"]:
        body += ["<h2>Steps</h2>", '<div class="grid" id="by-step"></div>']
    details = details_file(report)
    if details.is_file():
        body += sections(json.loads(details.read_text(encoding="utf-8")))
    body += _settings(document)
    return page(f"{document['model']}: {document['status']}", body, charts)


def _head(document: Document) -> list[str]:
    status, reason = document["status"], document.get("status_reason")
    config, best = document["config"], document.get("best")
    metrics = document["metrics"]
    depth = (
        f" {config['num-layers']}" if document["model"].startswith("resne") and "num-layers" in config else ""
    )
    told = f"{status}: {reason}" if reason else status
    figures = {}
    if best:
        weights = ", averaged weights" if best.get("weights") == "ema" else ""
        figures[f"best top-1{weights}"] = f"{best['top1']:.2%}"
        figures["best epoch"] = str(best["epoch"] + 1)
    elif _last(metrics, "val.top1") is not None:
        figures["top-1"] = f"{_last(metrics, 'val.top1'):.2%}"
    if _last(metrics, "train.loss") is not None:
        figures["epochs done"] = str(len(document["epochs"]))
        figures["last training loss"] = wording.loss(_last(metrics, "train.loss")).strip()
    speed = _last(metrics, "train.total_ips") or _last(metrics, "val.total_ips")
    if speed:
        figures["images/s, last epoch"] = wording.speed(speed).strip().removesuffix(" img/s")
    figures["total time"] = wording.duration(document["total_duration"]).strip()
    host = str(document["environment"].get("host", ""))
    devices = f"{document['ngpus']} x {document['environment'].get('device', '?')}"
    return [
        f"<h1>{escape(document['model'] + depth)}</h1>",
        f'<p><span class="status {escape(status)}">{escape(told)}</span> '
        f'<span class="soft">on {escape(devices)}, {escape(host)}</span></p>',
        f"<p><code>{escape(' '.join(map(str, document['cmd'])))}</code></p>",
        cards(figures),
    ]


def _last(metrics: Mapping[str, list], name: str) -> Optional[float]:
    return next((value for value in reversed(metrics.get(name, [])) if value is not None), None)


def _time(document: Document) -> list[str]:
    parts, bound = breakdown(document["metrics"]), bound_by(document["metrics"])
    if not parts:
        return []
    told = [f"<p>Training is bound by {escape(bound)}.</p>"] if bound else []
    return ["<h2>Where the time went</h2>", *told, bar(parts)]


def epoch_charts(metrics: Mapping[str, list], epochs: list[int]) -> list[dict[str, Any]]:
    """The charts of one run over its epochs, which are counted from 1 for people."""
    charts = []
    for title, (names, factor) in EPOCH_CHARTS.items():
        curves = [
            Curve(name, [None if v is None else factor * v for v in metrics[name]])
            for name in names
            if name in metrics
        ]
        charts.append(chart(title, "epoch", [epoch + 1 for epoch in epochs], curves))
    return [found for found in charts if found]


def _step_charts(lines: dllog_reader.Lines) -> list[dict[str, Any]]:
    steps_per_epoch = 1 + max((line.step[1] for line in lines.steps), default=0)
    charts = []
    for title, metric in STEP_CHARTS.items():
        points = lines.series(metric)
        points = points[:: max(1, -(-len(points) // MAX_POINTS))]
        xs = [epoch * steps_per_epoch + step + 1 for epoch, step, _ in points]
        charts.append(chart(title, "step", xs, [Curve(metric, [value for *_, value in points])]))
    return [found for found in charts if found]


def _settings(document: Document) -> list[str]:
    found = []
    recipe = document.get("recipe")
    if recipe:
        base = recipe["file"] or "the defaults, which are the published recipe"
        found += ["<h2>Differences from the recipe</h2>", f'<p class="soft">against {escape(base)}</p>']
        rows = [(f"--{n}", _text(d["recipe"]), _text(d["run"])) for n, d in recipe["differences"].items()]
        found.append(table(["option", "recipe", "this run"], rows) if rows else "<p>none</p>")
    for title, part in (("Environment", "environment"), ("Data", "dataset")):
        if document[part]:
            facts = [(name, _text(value)) for name, value in document[part].items()]
            found += [f"<h2>{title}</h2>", table([part, ""], facts)]
    options = [(f"--{name}", _text(value)) for name, value in document["config"].items()]
    return [*found, "<h2>All options</h2>", table(["option", "value"], options)]


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else wording.as_text(value)


def report_in(place: Path, name: str = "report.json") -> Path:
    """The report that a workspace, or the path of a report itself, stands for. Raises SuiteError."""
    path = place / name if place.is_dir() else place
    if not path.is_file():
        raise SuiteError(f"no report at {path}: name the workspace of a run, or its report.json")
    return path


def main(argv: Optional[list[str]] = None) -> int:
    """Write the page, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m src.report.html", description=__doc__)
    parser.add_argument("workspace", type=Path, help="folder of a run, or a report.json")
    place = parser.parse_args(argv).workspace
    try:
        print(write(report_in(place)))
    except (SuiteError, OSError) as error:
        print(f"report.html: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
