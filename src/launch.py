"""What `runner` does: checks all that can be checked, then starts one train.py per device and supervises.

No MindSpore here: a mistake is answered at once, and the supervisor stays small.
"""

import dataclasses
import datetime
import os
import shlex
import socket
import sys
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple

import yaml

from src import cli, preflight, staging
from src.config import RunnerConfig
from src.errors import INTERRUPTED_SIGINT, OptionError, SuiteError
from src.platform import environment, modelarts
from src.platform.object_storage import is_url
from src.platform.supervisor import Outcome, Process, supervise
from src.weights import resume

SUITE = Path(__file__).resolve().parent.parent
PROCESSES_PER_CORE = 4  # beyond it, ranks on a CPU only wait for each other
HOST = "127.0.0.1"


def main(argv: Sequence[str]) -> int:
    """Run `runner` with these arguments; returns its exit code."""
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
    device = _check_devices(config)
    preflight.check_precision(config, device)
    environment.check_environment()
    if config.launch.dry_run and is_url(config.platform.data_url):  # nothing is copied, so nothing is seen
        print(describe(config, device, make_plan(config, device, 0, _hand_down(argv))))
        return 0
    staged = staging.stage(config, copies=True, writes=True)
    config = dataclasses.replace(config, **vars(staged.config))
    for notice in (*staging.about_strangers(strangers), *staged.notices):
        print(f"runner: {notice}", flush=True)
    prepared = preflight.prepare(config.for_rank(), config.launch.num_devices)
    port, reservation = reserve_port()
    with reservation:
        plan = make_plan(config, device, port, _hand_down(argv))
        if config.launch.dry_run:
            print(describe(config, device, plan))
            return 0
        if prepared.plan.action == "finished":
            print(prepared.plan.sentence)
            return 0
        _prepare_workspace(config, plan, argv, move_aside=prepared.plan.move_aside)
        outcome = supervise(plan)
    return staged.finish(_conclude(config, outcome))


def make_plan(config: RunnerConfig, device: str, port: int, handed_down: Mapping[str, str]) -> List[Process]:
    """The processes of this run: the scheduler, if there are ranks to bring together, and the ranks."""
    n = config.launch.num_devices
    command = [sys.executable, str(SUITE / "train.py"), *cli.to_argv(config.for_rank())]
    logs = config.output.workspace / "ranks"
    plan = []
    if n > 1:
        plan.append(
            Process(
                name="scheduler",
                command=[sys.executable, "-m", "src.platform.scheduler"],
                environment=environment.scheduler_environment(n, port, HOST),
                log=logs / "scheduler.log",
                cwd=SUITE,
                service=True,
            )
        )
    for rank in range(n):
        plan.append(
            Process(
                name=f"rank {rank}",
                command=command,
                environment={**environment.rank_environment(device, rank, n, port, HOST), **handed_down},
                log=logs / f"rank_{rank}.log" if rank else None,
            )
        )
    return plan


def _hand_down(argv: List[str]) -> Dict[str, str]:
    return {**environment.hand_down(["runner", *argv]), **modelarts.hand_down()}


def describe(config: RunnerConfig, device: str, plan: List[Process]) -> str:
    """The resolved options as a recipe, and as comments below it what would be started."""
    lines = [f"# {config.launch.num_devices} x {device}; save as FILE.yaml and use with --config FILE.yaml"]
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


def _check_devices(config: RunnerConfig) -> str:
    """The device to run on. Raises OptionError if there are not as many as asked for."""
    n, place = config.launch.num_devices, environment.this_rank()
    if n < 1:
        raise OptionError(f"-n/--num-devices is {n}; it must be at least 1")
    if n > 1 and config.training.mode == "pred":
        raise OptionError(f"-n/--num-devices is {n}, but --mode pred runs on one device")
    if place.size > 1:
        raise OptionError(
            f"this is already rank {place.rank} of {place.size} (RANK_SIZE): a launcher has started "
            "the processes, so start train.py in each of them, not runner"
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
    return device


def reserve_port() -> Tuple[int, socket.socket]:
    """A port for the scheduler, kept from others: both sides allow reuse, and this one never listens."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind((HOST, 0))
    return reservation.getsockname()[1], reservation


def _prepare_workspace(config: RunnerConfig, plan: List[Process], argv: List[str], move_aside: bool) -> None:
    """Make room for the run, and head each log with the time and the command, as a resumed run appends.

    Rank 0 would move an earlier run's files aside too, but the logs of this one would be open by then.
    """
    workspace = config.output.workspace
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        if move_aside:
            print(f"runner: the files of the earlier run are now in {resume.move_aside(config)}")
        for log in (process.log for process in plan if process.log is not None):
            log.parent.mkdir(exist_ok=True)
            with log.open("a", encoding="utf-8") as file:
                file.write(f"--- {now} runner {shlex.join(argv)}\n")
    except OSError as error:
        raise OptionError(f"--workspace {workspace} cannot be written: {error.strerror or error}") from None


def _conclude(config: RunnerConfig, outcome: Outcome) -> int:
    """Say how the run ended, on the console and in a report that still claims to be running."""
    if outcome.message:
        print(f"runner: {outcome.message}", file=sys.stderr)
    if outcome.unfinished:
        from src.report.report import mark_failed

        report = resume.output_file(config.for_rank(), config.output.report)
        mark_failed(report, outcome.message.splitlines()[0])
    return outcome.code
