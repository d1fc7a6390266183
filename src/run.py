"""The work of one process: train, score, predict, or measure the pipeline. What train.py and eval.py call."""

from __future__ import annotations

import dataclasses
import sys
import traceback
from pathlib import Path
from typing import Callable, Sequence

from src import cli, preflight, recipes, staging
from src.config import Config
from src.errors import OptionError, SuiteError
from src.job import Job
from src.platform import distributed, environment, jpeg, machine, pulse, rendezvous, scheduler, shared
from src.platform.launchers import Place
from src.platform.pulse import Phase
from src.platform.signals import Requests
from src.platform.workspace_lock import WorkspaceLock, of_rank
from src.report.journal import Journal
from src.report.report import Report, remove_unfinished
from src.weights import resume
from src.weights.record import network_options


def main(argv: Sequence[str], prog: str) -> int:
    """Run a command line; returns the exit code. Errors that a user can mend are one sentence on stderr."""
    pulse.answer_for_stacks()
    pulse.give(Phase.STARTING)
    finish: Callable[[int], int] = _as_it_is
    try:
        strangers = staging.strangers()
        config: Config = cli.parse(argv, prog, checkpoint_options=network_options, strangers=strangers)
        device = environment.detect_device(config.platform.device_target)
        preflight.check_device(config, device)
        place = environment.enter(config.platform.launcher, device, config.platform.device_ids)
        notices = environment.prepare(device, place.local_size) + jpeg.choose(config.pipeline.vector_decoder)
        if place.is_scheduler:  # msrun starts this script for that, too
            return distributed.leave(scheduler.serve())
        lock = of_rank(place.rank, config.trains)
        staged = staging.stage(config, place.local_rank == 0, place.rank == 0, lock.take)
        config = staged.config
        if not environment.started_by_runner():  # runner sends what is left itself, whatever ends its ranks
            finish = staged.finish
        prepared = _prepared(config, place, lock)
        if prepared.plan.action == "finished" and place.alone:
            print(prepared.plan.sentence)
            return 0
        rendezvous.open_for(place, config.output.workspace / "ranks")
        requests = Requests().install()
        world = distributed.init(device)  # imports MindSpore
        prepared = _agreed(config, prepared, world)
        if prepared.plan.action == "finished":
            if world.is_main:
                print(prepared.plan.sentence)
            return distributed.leave(0, world)
        job = _start(config, world, requests, prepared)
        job.journal.offer_results = staged.results.offer
        for notice in (*notices, *staging.about_strangers(strangers), *staged.notices, *lock.notices):
            job.journal.console.say(notice)
        return distributed.leave(_finish(job), job.world, finish)
    except SuiteError as error:
        pulse.give(Phase.FAILING)
        print(f"{prog}: {error}", file=sys.stderr)
        return distributed.leave(error.exit_code, finish=finish)
    except Exception:  # a defect: its traceback, and the report says so already
        pulse.give(Phase.FAILING)
        traceback.print_exc()
        return distributed.leave(1, finish=finish)


def _as_it_is(code: int) -> int:
    return code


def _prepared(config: Config, place: Place, lock: WorkspaceLock) -> preflight.Prepared:
    """What will be done; where there is anything, decided with the workspace locked."""
    prepared = preflight.prepare(config, place.size, decides=place.rank == 0)
    done = prepared.plan.action == "finished" and place.alone
    if not done and lock.take(config.output.workspace):
        prepared = preflight.planned_anew(config, place.size, prepared)
    return prepared


def _agreed(config: Config, prepared: preflight.Prepared, world: distributed.World) -> preflight.Prepared:
    """Rank 0's plan on every rank, each with its own workspace.

    Raises CheckpointError on all ranks if one of them cannot read what is continued.
    """
    workspace = config.output.workspace
    plain = dataclasses.asdict(prepared.plan)
    plain["checkpoints"] = [_relative(path, workspace) for path in prepared.plan.checkpoints]
    told = shared.told_by_main(world, plain)
    told["checkpoints"] = tuple(
        (workspace if inside else Path()) / name for name, inside in told["checkpoints"]
    )
    if world.size > 1:
        for path in told["checkpoints"]:  # all: ranks must pass over the same damaged ones
            shared.require_everywhere(world, path)
    return dataclasses.replace(prepared, plan=resume.Plan(**told))


def _relative(path: Path, workspace: Path) -> tuple[str, bool]:
    """A path as all ranks can find it, and whether that is within each one's workspace."""
    inside = path.is_relative_to(workspace)
    return str(path.relative_to(workspace) if inside else path), inside


def _start(config: Config, world: distributed.World, requests: Requests, prepared: preflight.Prepared) -> Job:
    seed = config.training.seed
    if seed is None:
        seed = environment.draw_seed() if prepared.plan.seed is None else prepared.plan.seed
    seed = int(world.sum([seed if world.is_main else 0])[0])  # rank 0's, whatever the others drew
    journal = Journal.silent()
    if world.is_main:
        journal = _open_journal(config, world, prepared, seed)
    return Job(config, world, prepared.splits, prepared.plan, seed, journal, requests)


def _finish(job: Job) -> int:
    try:
        code = _work(job.config)(job)
        pulse.give(Phase.LEAVING)
        return code
    except BaseException as error:
        row_fault = job.splits.row_fault() if job.splits else None  # MindSpore wraps what a source raised
        error = row_fault or error
        told = str(error) if isinstance(error, SuiteError) else f"{type(error).__name__}: {error}"
        job.journal.failed(told)
        raise error


def _work(config: Config) -> Callable[[Job], int]:
    """The function of the mode; imported only now, as it brings MindSpore."""
    from src.evaluate import command as evaluation
    from src.train import command as training

    if config.training.test_io:
        return evaluation.measure_input
    modes = {"val": evaluation.score, "pred": evaluation.classify}
    return modes.get(config.training.mode, training.train)


def _open_journal(
    config: Config, world: distributed.World, prepared: preflight.Prepared, seed: int
) -> Journal:
    """The files of the run, new or continued, and whatever an earlier run left moved aside if asked for."""
    workspace, plan = config.output.workspace, prepared.plan
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        aside = resume.move_aside(config) if plan.move_aside else None
        report_file = resume.output_file(config, config.output.report)
        lines_file = resume.output_file(config, config.output.dllogger_log)
        for path in (report_file, lines_file) if config.trains else ():  # the workspace is this run's alone
            remove_unfinished(path)
        going_on = plan.action == "continue" and report_file.exists()
        if going_on:
            report = Report.read(report_file)
            report.set(cmd=environment.typed_command(), config={**config.plain(), "seed": seed})
            report.set(ngpus=world.size, environment=machine.describe(world.device))
        else:
            report = _new_report(config, world, prepared, seed, report_file)
        report.set(recipe=recipes.differences(config))
        journal = Journal.open(
            log=resume.output_file(config, config.output.log),
            dllogger=lines_file,
            report=report,
            append=going_on,
            events=workspace / "tensorboard" if config.output.tensorboard else None,
        )
        report.write()
    except OSError as error:
        raise OptionError(f"--workspace {workspace} cannot be written: {error.strerror or error}") from None
    if plan.sentence:
        journal.console.say(plan.sentence)
    if aside:
        journal.console.say(f"the files of the earlier run are now in {aside}")
    return journal


def _new_report(
    config: Config, world: distributed.World, prepared: preflight.Prepared, seed: int, path: Path
) -> Report:
    return Report(
        path,
        model=config.model.arch,
        num_devices=world.size,
        cmd=environment.typed_command(),
        config={**config.plain(), "seed": seed},
        environment=machine.describe(world.device),
        dataset=prepared.splits.identity() if prepared.splits else {},
    )
