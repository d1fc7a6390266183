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
from typing import TYPE_CHECKING, Callable, List, Mapping, Optional, Sequence, Tuple

import yaml

from src import cli, preflight
from src.config import RunnerConfig
from src.errors import INTERRUPTED_SIGINT, OptionError, SuiteError
from src.platform import environment, machine
from src.platform.supervisor import Outcome, Process, supervise
from src.weights import resume

if TYPE_CHECKING:
    from src.report.report import Report

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
    config = cli.parse(argv, prog="runner", config_type=RunnerConfig)
    device = _check_devices(config)
    preflight.check_precision(config, device)
    environment.check_environment()
    prepared = preflight.prepare(config.for_rank(), config.launch.num_devices)
    port, reservation = reserve_port()
    with reservation:
        plan = make_plan(config, device, port, environment.hand_down(["runner", *argv]))
        if config.launch.dry_run:
            print(describe(config, device, plan))
            return 0
        if prepared.plan.action == "finished":
            print(prepared.plan.sentence)
            return 0
        _prepare_workspace(config, plan, argv, move_aside=prepared.plan.move_aside)
        ending = Ending.expected(config, device, prepared, argv)
        try:
            outcome = supervise(plan, stop_grace_s=config.launch.grace)
        except SuiteError as error:  # a process could not be started
            outcome = Outcome(error.exit_code, str(error), unfinished=True)
    return _conclude(ending, outcome)


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


@dataclasses.dataclass(frozen=True)
class Ending:
    """The report as it was before the ranks were started, to see whether rank 0 got as far as its own."""

    path: Path
    before: Optional[Tuple[int, int]]
    continues: bool  # the run that `path` tells of
    start: Callable[[], "Report"]  # a report of a run of which nothing is known yet

    @classmethod
    def expected(
        cls, config: RunnerConfig, device: str, prepared: preflight.Prepared, argv: List[str]
    ) -> "Ending":
        path = resume.output_file(config.for_rank(), config.output.report)

        def start() -> "Report":
            from src.report.report import Report

            return Report(
                path,
                model=config.model.arch,
                num_devices=config.launch.num_devices,
                cmd=["runner", *argv],
                config=config.for_rank().plain(),
                environment=machine.describe(device),
                dataset=prepared.splits.identity() if prepared.splits else {},
            )

        return cls(path, _version(path), prepared.plan.action == "continue" and path.exists(), start)

    def completed(self) -> bool:
        """Whether rank 0 wrote that all was done."""
        from src.report.report import load

        return _version(self.path) != self.before and load(self.path)["status"] == "completed"

    def write(self, status: str, reason: str) -> None:
        """Record the end unless a rank has done so."""
        from src.report.report import STATUSES, mark_ended

        if _version(self.path) != self.before:
            mark_ended(self.path, status, reason)
        elif self.continues:
            mark_ended(self.path, status, reason, left_as=STATUSES)
        else:
            self.start().finish(status, reason)


def _version(path: Path) -> Optional[Tuple[int, int]]:
    """What changes whenever the file is replaced; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _conclude(ending: Ending, outcome: Outcome) -> int:
    """Say how the run ended, on the console and in a report whose writer did not get to say so."""
    if outcome.interrupted and outcome.all_well and ending.completed():
        return 0  # the signal came when all was done
    if outcome.message:
        print(f"runner: {outcome.message}", file=sys.stderr)
    if outcome.code != 0:
        status = "interrupted" if outcome.interrupted else "failed"
        try:
            ending.write(status, outcome.message.splitlines()[0])
        except SuiteError as error:  # a full disk must not hide how the run ended
            print(f"runner: {error}", file=sys.stderr)
    return outcome.code
