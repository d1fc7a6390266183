"""What the workspace holds, and what a new command does with it: start, continue, or refuse. No MindSpore."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from src.config import Config
from src.errors import CheckpointError, OptionError
from src.weights import keeping
from src.weights.record import read_record

# Options that may differ between the parts of one run: where and how it runs, not what it computes.
FREE_OPTIONS = {
    "mode", "run-epochs", "disp-batches", "benchmark-iters", "metrics", "test-io", "test-io-mode",
    "data-root", "data-train", "data-val", "data-pred", "data-validation-threads", "prefetch-queue",
    "vector-decoder", "separ-val", "config", "workspace", "overwrite", "model-prefix", "save-frequency",
    "load", "resume", "log", "dllogger-log", "report", "device-target", "device-ids", "launcher", "seed",
    "max-nonfinite-steps", "data-url", "train-url", "scratch", "save-every-steps",
    "save-every-minutes", "keep", "tensorboard", "profile", "compile-cache",
}  # fmt: skip
# Options that a run may change when it is continued from a checkpoint that is named: the learning rate is
# computed anew, as a function of the epochs that are done.
SCHEDULE_OPTIONS = {
    "batch-size", "accumulation", "num-epochs", "lr", "lr-schedule", "lr-steps", "lr-factor", "warmup-epochs",
}  # fmt: skip
RUN_FILES = ("report.json", "log.log", "dllogger_log.log")


@dataclass(frozen=True)
class Plan:
    """What a training command will do in its workspace."""

    action: str  # "start", "continue" or "finished"
    checkpoints: tuple[Path, ...] = ()  # to continue from: the first that is whole
    seed: int | None = None  # of the run that is continued
    sentence: str = ""  # for the person
    move_aside: bool = False  # the old run's files go to previous-N/ first


def plan(config: Config, world_size: int) -> Plan:
    """Decide. Raises OptionError where another run would be lost, CheckpointError where none can be found."""
    out = config.output
    held = _held_report(out.workspace / out.report)
    checkpoints = keeping.existing(config)
    if out.overwrite:
        return Plan("start", move_aside=bool(held or checkpoints))
    if out.resume not in ("auto", "off"):
        return _plan_named(config, held, world_size)
    if not held and not checkpoints:
        return Plan("start")
    differences = _differences(held, config, world_size)
    if out.resume == "off" or differences:
        what = f" ({differences[0].sentence})" if differences else ""
        raise OptionError(
            f"--workspace {out.workspace} holds {'another' if differences else 'this'} run{what}; "
            f"choose another folder, or --overwrite to move its files aside{_hint(differences, checkpoints)}"
        )
    return _plan_same_run(config, held, checkpoints)


def _hint(differences: list[Difference], checkpoints: list[Path]) -> str:
    """How to go on with the run all the same, where that can be right."""
    if not checkpoints or not differences or not all(d.of_schedule for d in differences):
        return ""
    return f"; --resume {checkpoints[0]} continues it so"


def _plan_same_run(config: Config, held: dict[str, Any], checkpoints: list[Path]) -> Plan:
    done, total = len(held.get("epochs", [])), config.training.num_epochs
    seed = held.get("config", {}).get("seed")
    if held.get("status") == "completed" and done >= total:
        return Plan("finished", (), seed, f"all {total} epochs are done: nothing to do")
    if not checkpoints:
        return Plan("start", (), seed, "an earlier attempt saved no checkpoint yet: starting again", True)
    whole, damaged = keeping.newest_first(checkpoints)
    if not whole:
        raise CheckpointError(
            f"no checkpoint in --workspace {config.output.workspace} is whole: {'; '.join(damaged)}; "
            "--overwrite moves the files aside and starts again"
        )
    told = f"continuing the run in {config.output.workspace} from {_where(whole[0])}"
    return Plan("continue", tuple(whole), seed, "; ".join([told, *damaged]))


def _plan_named(config: Config, held: dict[str, Any], world_size: int) -> Plan:
    path = Path(config.output.resume)
    if not path.is_file():
        raise CheckpointError(f"--resume {path}: no such checkpoint")
    # Another run's checkpoint must not be continued in a workspace that holds a run.
    for difference in _differences(held, config, world_size) if held else []:
        if not difference.of_schedule:
            raise OptionError(
                f"--workspace {config.output.workspace} holds another run ({difference.sentence}); "
                "choose another folder, or --overwrite to move its files aside"
            )
    record = read_record(path)
    differences = _differences({**record, "ngpus": record.get("world_size")}, config, world_size)
    for difference in differences:
        if not difference.of_schedule:
            raise OptionError(
                f"--resume {path} belongs to another run ({difference.sentence}); --load starts anew from it"
            )
    told = [f"continuing from {_where(path)}", *(d.sentence for d in differences)]
    return Plan("continue", (path,), record["seed"], "; ".join(told))


def _where(path: Path) -> str:
    """A checkpoint and how far training had come, as a person says it."""
    record = read_record(path)
    done, step = int(record.get("epochs_done", 0)), keeping.steps_into_epoch(record)
    of = f" of {record['steps_per_epoch']}" if "steps_per_epoch" in record else ""
    if step and step == record.get("steps_per_epoch"):
        return f"{path.name}, the end of epoch {done + 1}, which is still to be validated"
    return f"{path.name}, {f'step {step}{of} of epoch {done + 1}' if step else f'after epoch {done}'}"


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


@dataclass(frozen=True)
class Difference:
    """In what a command asks for another run than the one that is held."""

    sentence: str
    of_schedule: bool = False  # a run can be continued so, if that is asked for


def _differences(held: dict[str, Any], config: Config, world_size: int) -> list[Difference]:
    """Those that no schedule can follow come first."""
    then, now = held.get("config", {}), config.plain()
    if not then:
        return [Difference("which does not say with which options it was made")]
    if _kind(then) != "training":
        return [Difference("--test-io there" if _kind(then) == "io" else f"--mode {_kind(then)} there")]
    found = [
        Difference(f"--{name} {_shown(then.get(name))} there, {_shown(value)} here", name in SCHEDULE_OPTIONS)
        for name, value in now.items()
        if name not in FREE_OPTIONS and then.get(name) != value
    ]
    if held.get("ngpus") != world_size:
        found.append(Difference(f"{held.get('ngpus')} devices there, {world_size} here", True))
    if config.training.seed is not None and then.get("seed") != config.training.seed:
        found.append(Difference(f"--seed {then.get('seed')} there, {config.training.seed} here"))
    return sorted(found, key=lambda difference: difference.of_schedule)


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
    names = {*RUN_FILES, out.report, out.log, out.dllogger_log, "ranks", "tensorboard", "profile"}
    names |= {str(Path(out.report).with_suffix(suffix)) for suffix in (".html", ".validation.json")}
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
