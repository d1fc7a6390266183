"""Everything a run tells: console, log.log, dllogger lines and report.json, from one call each.

Ranks other than 0 hold a silent journal, so that the training code never asks who it is.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from src.report import wording
from src.report.console import Console
from src.report.dllog import cut, open_log
from src.report.logfile import open_log_file
from src.report.progress import Progress
from src.report.report import Report, write_atomically
from src.report.strict import strict
from src.report.tensorboard import Events

# Metric of the report -> metric of the dllogger lines, where the names differ by contract.
DLLOGGER_NAMES = {
    "train.total_ips": "train.ips",
    "val.total_ips": "val.ips",
    "train.top1": "train.accuracy",
    "train.top5": "train.top_k_accuracy_5",
    "val.top1": "val.accuracy",
    "val.top5": "val.top_k_accuracy_5",
    "val.ema_top1": "val.ema_accuracy",
    "val.ema_top5": "val.ema_top_k_accuracy_5",
}


def null_reason(metric: str) -> str:
    """Why a metric of the report can be null."""
    if metric.endswith("loss"):
        return "it was not a finite number"
    return "no step of so short an epoch is steady"


def remarks(metrics: Mapping[str, Optional[float]]) -> str:
    """What the line of an epoch says only where there is something to say."""
    words = []
    if metrics.get("val.ema_top1") is not None:
        words.append(f"ema top1 {wording.percent(metrics['val.ema_top1']).strip()}")
    skipped = metrics.get("train.skipped_steps")
    if skipped:
        words.append(f"{skipped:.0f} {'update' if skipped == 1 else 'updates'} skipped: gradients not finite")
        if metrics.get("train.loss_scale"):
            words.append(f"loss scale now {metrics['train.loss_scale']:g}")
    return ", ".join(words)


class Journal:
    """What a run writes. `silent()` gives one that writes nothing."""

    def __init__(
        self,
        console: Console,
        dllogger: Any,
        report: Optional[Report],
        dllogger_path: Optional[Path] = None,
        events: Optional[Events] = None,
    ) -> None:
        self.console, self.dllogger, self.report = console, dllogger, report
        self._dllogger_path, self.events = dllogger_path, events
        self.offer_results: Callable[[], None] = lambda: None
        """for what keeps the files elsewhere too; call it when they are worth it"""
        self._progress: Optional[Progress] = None
        self._null_reasons: dict[str, str] = {}

    @classmethod
    def silent(cls) -> Journal:
        return cls(Console(enabled=False), open_log(None, append=False), None)

    @classmethod
    def open(
        cls, *, log: Path, dllogger: Path, report: Report, append: bool, events: Optional[Path] = None
    ) -> Journal:
        """`append`: continue the files of the run that is resumed. Raises SuiteError where one cannot be.

        `events`: a folder for TensorBoard, if it is wanted.
        """
        console = Console(log=open_log_file(log, append))
        return cls(console, open_log(dllogger, append), report, dllogger, Events(events) if events else None)

    def start(self, title: str, facts: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.console.facts(title, facts)
        self.dllogger.log("PARAMETER", options)
        if self.report:
            self.report.write()

    def go_on(self, epoch: int, step: int, num_epochs: int, finished: Optional[Mapping[str, Any]]) -> None:
        """Take up a run at `step` of `epoch`: forget what an earlier attempt did beyond it.

        `finished`: of the epoch before, its number, metrics and seconds, in case that it is not recorded yet.
        """
        if not self.report:
            return
        self.report.drop_epochs_from(epoch)
        if self.events:
            self.events.go_on(epoch, step)
        if self._dllogger_path and (epoch or step):
            self.dllogger.close()
            cut(self._dllogger_path, epoch, step)
            self.dllogger = open_log(self._dllogger_path, append=True, announce=False)
        if finished and finished["epoch"] not in self.report.as_dict()["epochs"]:
            self.end_epoch(finished["epoch"], num_epochs, finished["metrics"], finished["seconds"])
        if step:
            continued = self.report.as_dict().get("continued_within", [])
            self.report.set(continued_within=[*continued, {"epoch": epoch, "step": step}])

    def begin_epoch(self, epoch: int, num_epochs: int, steps: int) -> None:
        self._progress = self.console.epoch(epoch, num_epochs, steps)
        if self.events:
            self.events.begin_epoch(steps)

    def step(self, step: int) -> None:
        """`step` steps of the epoch are done."""
        if self._progress:
            self._progress.step(step)

    def window(self, epoch: int, step: int, metrics: Mapping[str, Optional[float]]) -> None:
        """The last few steps, up to `step` (counted from 1): train.loss, train.ips, train.lr."""
        self.dllogger.log([epoch, step - 1], metrics)
        if self.events:
            self.events.window(epoch, step, metrics)
        if self._progress:
            loss, ips, lr = (metrics[f"train.{name}"] for name in ("loss", "ips", "lr"))
            self._progress.line(step, loss=loss, ips=ips, lr=lr)

    def end_epoch(
        self, epoch: int, num_epochs: int, metrics: Mapping[str, Any], seconds: float, to_come: int = 0
    ) -> None:
        """All numbers of a finished epoch, in the report's names; `to_come` more follow in this run."""
        self._progress = None
        metrics = {**metrics, "epoch_time": seconds}
        left = f"run left {wording.duration(seconds * to_come).strip()}" if to_come else ""
        note = "  ".join(words for words in (remarks(metrics), left) if words)
        self.console.epoch_summary(epoch, num_epochs, metrics, note)
        self.dllogger.log([epoch], {DLLOGGER_NAMES.get(name, name): v for name, v in metrics.items()})
        self.record(epoch, metrics)

    def record(self, epoch: int, metrics: Mapping[str, Optional[float]]) -> None:
        """Put an epoch's numbers into the report, and why any of them is missing."""
        if self.report:
            self._null_reasons.update({name: null_reason(name) for name, v in metrics.items() if v is None})
            self.report.set(null_reasons=self._null_reasons)
            self.report.add_epoch(epoch, metrics)
        if self.events:
            self.events.end_epoch(epoch, metrics)

    def note(self, **fields: Any) -> None:
        """Fields of the report that concern the whole run."""
        if self.report:
            self.report.set(**fields)

    def details(self, found: Mapping[str, Any]) -> None:
        """What validation answered, for the page. A disk that does not take it costs no run."""
        if self.report:
            from src.report.html import details_file

            try:
                write_atomically(details_file(Path(self.report.path)), json.dumps(strict(found)) + "\n")
            except OSError as error:
                self.console.warn(f"the answers of validation are not written: {error}")

    def page(self) -> Optional[Path]:
        """Write report.html of a run that trained or scored; where it is. Its failure is only a warning."""
        if not self.report or not {"train.loss", "val.top1"} & set(self.report.as_dict()["metrics"]):
            return None
        try:
            from src.report import html

            return html.write(Path(self.report.path))
        except Exception as error:  # whatever it is: hours of training must not end as failed for a page
            self.console.warn(f"report.html is not written: {type(error).__name__}: {error}")
        return None

    def finish(self, title: str, facts: Mapping[str, Any], next_steps: Sequence[str] = ()) -> None:
        """The run is complete: last lines of every file, and the summary for the person."""
        self._close_events()
        if self.report:
            self.report.finish("completed")
            metrics = self.report.as_dict()["metrics"]
            last = {DLLOGGER_NAMES.get(k, k): v[-1] for k, v in metrics.items() if v}
            self.dllogger.log([], last)
            facts = {**facts, "report": self.report.path}
            page = self.page()
            if page:
                facts["page"] = page
        self.dllogger.flush()
        self.console.summary(title, facts, next_steps)

    def interrupted(self, signal_number: int, kept: str) -> None:
        reason = f"stopped by {signal.Signals(signal_number).name}"
        self.console.close()
        self.console.warn(f"{reason}; {kept}")
        self._close_events()
        if self.report:
            self.report.finish("interrupted", reason)
            self.page()

    def failed(self, reason: str) -> None:
        self.console.close()
        self._close_events()
        if self.report:
            self.report.finish("failed", reason)
            self.page()

    def _close_events(self) -> None:
        if self.events:
            self.events.close()
