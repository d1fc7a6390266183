"""What `runner` does: checks all that can be checked, then starts one train.py per device and supervises.

No MindSpore here: a mistake is answered at once, and the supervisor stays small.
"""

import dataclasses
import datetime
import os
import shlex
import sys
from pathlib import Path
from typing import List, Mapping, Optional, Sequence

import yaml

from src import cli, preflight, staging
from src.config import RunnerConfig
from src.ending import Ending
from src.errors import INTERRUPTED_SIGINT, OptionError, SuiteError
from src.platform import binding, environment, modelarts
from src.platform import nodes as several_nodes
from src.platform.cluster import reserve_port
from src.platform.hanging import START_HANG_S
from src.platform.nodes import Nodes
from src.platform.object_storage import is_url
from src.platform.signals import ignore_save_requests
from src.platform.supervisor import Outcome, Process, supervise
from src.platform.workspace_lock import WorkspaceLock
from src.weights import resume

SUITE = Path(__file__).resolve().parent.parent
PROCESSES_PER_CORE = 4  # beyond it, ranks on a CPU only wait for each other
__all__ = ["describe", "main", "make_plan", "reserve_port"]


def main(argv: Sequence[str]) -> int:
    """Run `runner` with these arguments; returns its exit code."""
    ignore_save_requests()  # until there are ranks to pass them on to
    try:
        return _run(list(argv))
    except SuiteError as error:
        print(f"runner: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:  # before any process was started; later the supervisor has the signals
        return INTERRUPTED_SIGINT
    except BrokenPipeError:  # `runner --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(argv: List[str]) -> int:
    strangers = staging.strangers()
    config = cli.parse(argv, prog="runner", config_type=RunnerConfig, strangers=strangers)
    nodes = _nodes(config)
    device = _check_devices(config, nodes)
    preflight.check_device(config, device)
    environment.check_environment()
    handed_down = {**environment.hand_down(["runner", *argv]), **modelarts.hand_down()}
    if config.launch.dry_run and is_url(config.platform.data_url):  # nothing is copied, so nothing is seen
        print(describe(config, device, nodes, make_plan(config, device, nodes, 0, handed_down)))
        return 0
    lock = WorkspaceLock(nodes.node_rank, wanted=config.trains)
    staged = staging.stage(config, copies=True, writes=nodes.is_first, claim=lock.take)
    config = dataclasses.replace(config, **vars(staged.config))
    for notice in (*staging.about_strangers(strangers), *staged.notices):
        print(f"runner: {notice}", flush=True)
    return staged.finish(_run_here(config, nodes, device, handed_down, argv, lock))


def _run_here(
    config: RunnerConfig,
    nodes: Nodes,
    device: str,
    handed_down: Mapping[str, str],
    argv: List[str],
    lock: WorkspaceLock,
) -> int:
    """Start and supervise this node's processes, with data and workspace on its disk."""
    prepared = preflight.prepare(config.for_rank(), nodes.size, decides=nodes.is_first)
    port, reservation = several_nodes.reserve(nodes)
    with reservation:
        plan = make_plan(config, device, nodes, port, handed_down)
        if config.launch.dry_run:
            print(describe(config, device, nodes, plan))
            return 0
        if prepared.plan.action == "finished" and nodes.num_nodes == 1:  # several must agree on that first
            print(prepared.plan.sentence)
            return 0
        if lock.take(config.output.workspace) and nodes.is_first:
            prepared = preflight.planned_anew(config.for_rank(), nodes.size, prepared)
        for notice in lock.notices:
            print(f"runner: {notice}", flush=True)
        _prepare_workspace(config, plan, argv, move_aside=prepared.plan.move_aside)
        if nodes.num_nodes > 1:
            print(f"runner: {nodes.sentence(port, config.output.workspace / 'ranks')}", flush=True)
        # The report is written where rank 0 is.
        ending = Ending.expected(config, device, nodes.size, prepared, argv) if nodes.is_first else None
        try:
            hang_s = config.launch.hang_timeout
            outcome = supervise(
                lock.handed_to(plan),
                stop_grace_s=config.launch.grace,
                start_hang_s=START_HANG_S if hang_s else 0.0,
                hang_s=hang_s,
            )
        except SuiteError as error:  # a process could not be started
            outcome = Outcome(error.exit_code, str(error))
    return _conclude(ending, outcome)


def make_plan(
    config: RunnerConfig, device: str, nodes: Nodes, port: int, handed_down: Mapping[str, str]
) -> List[Process]:
    """The processes of this node: the scheduler, if it is here and brings ranks together, and the ranks."""
    command = [sys.executable, str(SUITE / "train.py"), *cli.to_argv(config.for_rank())]
    logs = config.output.workspace / "ranks"
    cores = _cores(config, nodes.num_devices)
    plan = []
    if nodes.size > 1 and nodes.is_first:
        plan.append(
            Process(
                name="scheduler",
                command=[sys.executable, "-m", "src.platform.scheduler"],
                environment=environment.scheduler_environment(nodes.size, port, nodes.host),
                log=logs / "scheduler.log",
                cwd=SUITE,
                service=True,
            )
        )
    for place in nodes.places():
        own = cores[place.local_rank] if cores else []
        variables = environment.place_environment(device, place, port, nodes.host, len(own) or None)
        plan.append(
            Process(
                name=f"rank {place.rank}",
                command=binding.bound(command, own) if own else command,
                environment={**variables, **handed_down},
                log=logs / f"rank_{place.rank}.log" if place.rank else None,
            )
        )
    return plan


def _cores(config: RunnerConfig, num_ranks: int) -> Optional[List[List[int]]]:
    """The cores of each rank, or None if they are not bound. Raises OptionError if there are too few."""
    bind, cores = config.launch.bind, environment.cores()
    if bind == "none":
        return None
    numa = binding.numa_nodes() if bind == "numa" else []
    if num_ranks == 1 and len(numa) < 2:
        raise OptionError(f"--bind {bind} has no effect with -n 1: there is nobody to share the cores with")
    try:
        return binding.shares(num_ranks, cores, numa)
    except ValueError as error:
        raise OptionError(f"--bind {bind} -n {num_ranks}: {error}") from None


def describe(config: RunnerConfig, device: str, nodes: Nodes, plan: List[Process]) -> str:
    """The resolved options as a recipe, and as comments below it what would be started."""
    where = f"node {nodes.node_rank} of {nodes.num_nodes}, each with " if nodes.num_nodes > 1 else ""
    lines = [f"# {where}{nodes.num_devices} x {device}; save as FILE.yaml and use with --config FILE.yaml"]
    for name, value in config.for_rank().plain().items():
        if name != "config" and value not in (None, []):
            # As a list of one in YAML's inline form, because a bare scalar is dumped with a document end.
            lines.append(
                f"{name}: {yaml.safe_dump([value], default_flow_style=True, width=10**6).strip()[1:-1]}"
            )
    for process in plan:
        where = f"output to {process.log}" if process.log else "on the console"
        words = [f"{name}={shlex.quote(value)}" for name, value in process.environment.items()]
        lines.append(f"# {process.name}, {where}:")
        lines.append(
            f"#   {'cd ' + shlex.quote(str(process.cwd)) + ' && ' if process.cwd else ''}"
            f"{' '.join(words)} {shlex.join(process.command)}"
        )
    return "\n".join(lines)


def _nodes(config: RunnerConfig) -> Nodes:
    """The nodes of this run. Raises OptionError if they cannot be, or if runner was started as a rank."""
    launch, alone = config.launch, config.platform.launcher == "none"
    if alone:
        environment.forget_launchers()
    typed = several_nodes.Wish(
        launch.num_devices, launch.nodes, launch.node_rank, launch.master_addr, launch.master_port
    )
    nodes = several_nodes.resolve(typed, several_nodes.Wish() if alone else environment.nodes_given())
    outer = environment.this_rank()
    several_nodes.check_place(outer, nodes)
    environment.forget_launchers()  # the ranks' launcher is runner
    only = (outer.device_id,) if nodes.num_devices == 1 else ()
    return dataclasses.replace(nodes, device_ids=config.platform.device_ids or only)


def _check_devices(config: RunnerConfig, nodes: Nodes) -> str:
    """The device to run on. Raises OptionError if there are not as many as asked for."""
    n = nodes.num_devices
    if nodes.size > 1 and config.training.mode == "pred":
        raise OptionError(
            f"there are to be {nodes.size} ranks (-n/--num-devices), but --mode pred runs on one device"
        )
    device = environment.detect_device(config.platform.device_target)
    present = environment.num_devices_present(device)
    if device == "CPU" and n > PROCESSES_PER_CORE * present:
        raise OptionError(
            f"-n/--num-devices is {n}, but {present} {'core' if present == 1 else 'cores'} can take "
            f"{PROCESSES_PER_CORE * present} processes at most"
        )
    if device != "CPU" and n > present:
        raise OptionError(f"-n/--num-devices is {n}, but this machine has {present} {device}")
    several_nodes.check_device_ids(config.platform.device_ids, device, present, n)
    return device


def _prepare_workspace(config: RunnerConfig, plan: List[Process], argv: List[str], move_aside: bool) -> None:
    """Make room for the run, and head each log with the time and the command, as a resumed run appends.

    Rank 0 would move an earlier run's files aside too, but the logs of this one would be open by then.
    """
    workspace = config.output.workspace
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        if not os.access(workspace, os.W_OK | os.X_OK):
            raise OptionError(f"--workspace {workspace} cannot be written: it is read-only")
        if move_aside:
            print(f"runner: the files of the earlier run are now in {resume.move_aside(config)}")
        for log in (process.log for process in plan if process.log is not None):
            log.parent.mkdir(exist_ok=True)
            with log.open("a", encoding="utf-8") as file:
                file.write(f"--- {now} runner {shlex.join(argv)}\n")
    except OSError as error:
        raise OptionError(f"--workspace {workspace} cannot be written: {error.strerror or error}") from None


def _conclude(ending: Optional[Ending], outcome: Outcome) -> int:
    """Say how the run ended, on the console and in a report whose writer did not get to say so."""
    if ending and outcome.interrupted and outcome.all_well and ending.completed():
        return 0  # the signal came when all was done
    if outcome.message:
        print(f"runner: {outcome.message}", file=sys.stderr)
    if ending and outcome.code != 0:
        status = "interrupted" if outcome.interrupted else "failed"
        try:
            ending.write(status, outcome.message.splitlines()[0])
        except SuiteError as error:  # a full disk must not hide how the run ended
            print(f"runner: {error}", file=sys.stderr)
    return outcome.code
