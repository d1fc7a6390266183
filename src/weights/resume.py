"""What the workspace holds, and what a new command does with it: start, continue, or refuse. No MindSpore."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from src.config import Config
from src.errors import CheckpointError, OptionError
from src.weights.record import read_record

# Options that may differ between the parts of one run: where and how it runs, not what it computes.
FREE_OPTIONS = {
    "mode", "run-epochs", "disp-batches", "benchmark-iters", "metrics", "test-io", "test-io-mode",
    "data-root", "data-train", "data-val", "data-pred", "data-validation-threads", "prefetch-queue",
    "separ-val", "config", "workspace", "overwrite", "model-prefix", "save-frequency", "load", "use-ema",
    "resume", "log", "dllogger-log", "report", "device-target", "seed", "max-nonfinite-steps", "data-url",
    "train-url", "scratch",
}  # fmt: skip
RUN_FILES = ("report.json", "log.log", "dllogger_log.log")


@dataclass(frozen=True)
class Plan:
    """What a training command will do in its workspace."""

    action: str  # "start", "continue" or "finished"
    checkpoint: Path | None = None  # to continue from
    seed: int | None = None  # of the run that is continued
    sentence: str = ""  # for the person
    move_aside: bool = False  # the old run's files go to previous-N/ first


def checkpoint_path(config: Config, which: str) -> Path:
    """`which`: "best", "last" or a number of epochs, as four digits."""
    return config.output.workspace / f"{config.output.model_prefix}_{which}.safetensors"


def plan(config: Config, world_size: int) -> Plan:
    """Decide. Raises OptionError where another run would be lost, CheckpointError where none can be found."""
    out = config.output
    held = _held_report(out.workspace / out.report)
    last = checkpoint_path(config, "last")
    if out.overwrite:
        return Plan("start", move_aside=bool(held) or last.exists(), sentence="")
    if out.resume not in ("auto", "off"):
        return _plan_named(config, held, world_size)
    if not held and not last.exists():
        return Plan("start")
    difference = _difference(held, config, world_size)
    if out.resume == "off" or difference:
        what = f" ({difference})" if difference else ""
        raise OptionError(
            f"--workspace {out.workspace} holds {'another' if difference else 'this'} run{what}; "
            "choose another folder, or --overwrite to move its files aside"
        )
    return _plan_same_run(config, held, last)


def _plan_same_run(config: Config, held: dict[str, Any], last: Path) -> Plan:
    done, total = len(held.get("epochs", [])), config.training.num_epochs
    seed = held.get("config", {}).get("seed")
    if held.get("status") == "completed" and done >= total:
        return Plan("finished", None, seed, f"all {total} epochs are done: nothing to do")
    if not last.exists():
        return Plan("start", None, seed, "an earlier attempt saved no checkpoint yet: starting again", True)
    return Plan("continue", last, seed, f"continuing the run in {config.output.workspace} from {last.name}")


def _plan_named(config: Config, held: dict[str, Any], world_size: int) -> Plan:
    path = Path(config.output.resume)
    if not path.is_file():
        raise CheckpointError(f"--resume {path}: no such checkpoint")
    difference = _difference(held, config, world_size) if held else ""
    if difference:
        raise OptionError(
            f"--workspace {config.output.workspace} holds another run ({difference}); "
            "choose another folder, or --overwrite to move its files aside"
        )
    record = read_record(path)
    difference = _difference({**record, "ngpus": record.get("world_size")}, config, world_size)
    if difference:
        raise OptionError(
            f"--resume {path} belongs to another run ({difference}); --load starts anew from it"
        )
    return Plan("continue", path, record["seed"], f"continuing from {path}")


def _held_report(path: Path) -> dict[str, Any]:
    """The report of the run that the workspace holds, or nothing."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise OptionError(
            f"{path} is there but cannot be read ({error}); choose another --workspace, or --overwrite"
        ) from None
    return report if isinstance(report, dict) else {}


def _difference(held: dict[str, Any], config: Config, world_size: int) -> str:
    """The first option in which the held run is another one, or ""."""
    then, now = held.get("config", {}), config.plain()
    if not then:
        return "which does not say with which options it was made"
    if _kind(then) != "training":
        return "--test-io there" if _kind(then) == "io" else f"--mode {_kind(then)} there"
    for name, value in now.items():
        if name not in FREE_OPTIONS and then.get(name) != value:
            return f"--{name} {_shown(then.get(name))} there, {_shown(value)} here"
    if held.get("ngpus") != world_size:
        return f"{held.get('ngpus')} devices there, {world_size} here"
    if config.training.seed is not None and then.get("seed") != config.training.seed:
        return f"--seed {then.get('seed')} there, {config.training.seed} here"
    return ""


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def move_aside(config: Config) -> Path:
    """Move what a run left in the workspace into `previous-N/`; returns that folder."""
    workspace, out = config.output.workspace, config.output
    n = 1
    while (workspace / f"previous-{n}").exists():
        n += 1
    target = workspace / f"previous-{n}"
    target.mkdir()
    names = {*RUN_FILES, out.report, out.log, out.dllogger_log, "ranks"}
    found = [workspace / name for name in names]
    found += workspace.glob(f"{out.model_prefix}_*.safetensors")
    for path in found:
        if path.exists():
            os.replace(path, target / path.name)
    return target


def output_file(config: Config, name: str) -> Path:
    """Where a file of this run goes: scoring never replaces the files of a training run beside it."""
    path = config.output.workspace / name
    kind = _kind(config.plain())
    try:
        held = _held_report(config.output.workspace / config.output.report)
    except OptionError:
        held = {"config": {}}  # damaged: it may be a training run's, and is not ours to replace
    if kind == "training" or not held or _kind(held.get("config", {})) == kind:
        return path
    return path.with_name(f"{path.stem}-{kind}{path.suffix}")


def _kind(options: dict[str, Any]) -> str:
    """What sort of command options belong to: "training", "val", "pred" or "io"."""
    if options.get("test-io"):
        return "io"
    return {"val": "val", "pred": "pred"}.get(options.get("mode", ""), "training")
