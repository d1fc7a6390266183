"""What benchmark.py does: checks every run of the sweep, makes them one after the other, and reports.

No MindSpore here: each run is a `runner` of its own, in a new workspace, which nothing else has written to.
"""

import itertools
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import List, Sequence

from src import cli
from src.benchmark import cell as cells
from src.benchmark import running, tables
from src.benchmark.cell import Cell, Result
from src.benchmark.files import Files
from src.benchmark.sweep import Sweep
from src.config import RunnerConfig
from src.config.benchmark import Benchmark, BenchmarkConfig
from src.errors import INTERRUPTED_SIGINT, SuiteError
from src.option_checks import benchmark as checks
from src.platform.orphans import Orphanage
from src.platform.signals import Requests, ignore_save_requests
from src.report.terminal import SafeStream

PROG = "benchmark.py"
RUNNER = [sys.executable, str(Path(__file__).resolve().parents[2] / "runner")]
INCOMPLETE = 1  # exit code: some figure could not be measured


def main(argv: Sequence[str]) -> int:
    """Run `benchmark.py` with these arguments; returns its exit code."""
    ignore_save_requests()
    try:
        return _run(list(argv))
    except SuiteError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:  # before the first run was started
        return INTERRUPTED_SIGINT
    except BrokenPipeError:  # `benchmark.py --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(argv: List[str]) -> int:
    config, passed_on = cli.parse_own(argv, PROG, BenchmarkConfig)
    benchmark = config.benchmark
    checks.sweep(benchmark)
    checks.passed_on(passed_on)
    files = Files(benchmark.output)
    files.check()
    number = files.next_number()
    sweep_cells = _cells(benchmark, files.runs(number))
    # The first stands for all that the sweep needs to know; the others differ in what runner checks below.
    first = cli.parse(sweep_cells[0].words(benchmark, passed_on), PROG, RunnerConfig)
    checks.runs(first, benchmark)
    _check_all(sweep_cells, benchmark, passed_on)
    if benchmark.dry_run:
        for cell in sweep_cells:
            print(shlex.join(_command(cell, benchmark, passed_on)))
        return 0
    sweep = Sweep(benchmark, first.model.arch, [PROG, *argv], sweep_cells, passed_on)
    aside = files.make_room(number)
    files.write(sweep)
    if aside:
        _say(f"the earlier {benchmark.output.name} and its tables are now in {aside}")
    return _measure(sweep, files, first.output.report)


def _cells(benchmark: Benchmark, folder: Path) -> List[Cell]:
    pairs = itertools.product(benchmark.num_devices, benchmark.batch_size)
    return [Cell(n, b, folder / f"n{n}_b{b}") for n, b in pairs]


def _command(cell: Cell, benchmark: Benchmark, passed_on: Sequence[str]) -> List[str]:
    return [*RUNNER, *cell.words(benchmark, passed_on)]


def _check_all(sweep_cells: Sequence[Cell], benchmark: Benchmark, passed_on: Sequence[str]) -> None:
    """Let runner say what is wrong with any of the runs, before the first one; with its exit code."""
    for cell in sweep_cells:
        command = [*_command(cell, benchmark, passed_on), "--dry-run"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            told = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
            error = SuiteError(f"{cell}: {told.removeprefix('runner: ')}")
            error.exit_code = done.returncode if done.returncode > 0 else 1
            raise error


def _measure(sweep: Sweep, files: Files, report_name: str) -> int:
    """Make the runs, and write the report after each; returns the exit code."""
    requests, orphanage = Requests().install(), Orphanage()
    for number, cell in enumerate(sweep.cells, 1):
        if requests.stop_asked:
            break
        place = f"[{number}/{len(sweep.cells)}] {cell}"
        _say(f"{place}: running, see {cell.console}")
        result = sweep.results[cell.key] = _one(cell, sweep, report_name, requests, orphanage)
        _keep(files, sweep)
        seconds = "" if result.seconds is None else f", in {result.seconds:.0f} s"
        _say(f"{place}: {result.reason or tables.speed(sweep, cell)}{seconds}")
    states = {sweep.result(cell).state for cell in sweep.cells}
    sweep.status = "interrupted" if states & {"interrupted", "waiting"} else "completed"
    kept = _keep(files, sweep)
    _say(f"\n{tables.as_text(sweep)}\nreport  {files.report}\ntables  {files.markdown}, {files.csv}")
    if sweep.status == "interrupted" and requests.stop_signal is not None:
        return 128 + requests.stop_signal
    return INCOMPLETE if sweep.missing() or not kept else 0


def _one(cell: Cell, sweep: Sweep, report_name: str, requests: Requests, orphanage: Orphanage) -> Result:
    """Run one cell and read what it found, or why it found nothing."""
    benchmark = sweep.benchmark
    command = _command(cell, benchmark, sweep.passed_on)
    try:
        cell.workspace.mkdir()  # made here and now: what is in it afterwards is this run's
        ended = running.run(command, cell.console, benchmark.timeout_s, requests, orphanage)
    except OSError as error:
        return cells.without("failed", sweep.keys, f"runner cannot be started: {error}")
    if requests.stop_asked and ended.code != 0:
        known = {"exit_code": ended.code, "seconds": round(ended.seconds, 3)}
        return cells.without("interrupted", sweep.keys, "the benchmark was stopped", **known)
    return cells.read(cell, ended, benchmark, report_name)


def _keep(files: Files, sweep: Sweep) -> bool:
    """Write the report. A disk that has become full ends nothing: the tables are printed all the same."""
    try:
        files.write(sweep)
    except SuiteError as error:
        _say(f"{PROG}: {error}")
        return False
    return True


def _say(text: str) -> None:
    """To stderr, as the tables: stdout is left to others, and a reader who has gone is no error."""
    stream = SafeStream(sys.stderr)
    stream.write(f"{text}\n")
    stream.flush()
