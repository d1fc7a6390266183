"""Starting several ranks of a test program, each a process, as runner would."""

from __future__ import annotations

import sys
from pathlib import Path

from src import launch
from src.platform import environment
from src.platform.supervisor import Outcome, Process, supervise
from tests.support import ROOT


def start(module: str, folder: Path, size: int, *words: object) -> Outcome:
    """Run `python -m module folder *words` as `size` ranks, with their output in `folder`, to the end."""
    port, reservation = launch.reserve_port()
    command = [sys.executable, "-m", module, str(folder), *map(str, words)]
    ranks = [
        Process(
            f"rank {rank}",
            command,
            environment.rank_environment("CPU", rank, size, port),
            folder / f"rank_{rank}_of_{size}.log",
            ROOT,
        )
        for rank in range(size)
    ]
    scheduler = [sys.executable, "-m", "src.platform.scheduler"]
    variables = environment.scheduler_environment(size, port)
    service = Process("scheduler", scheduler, variables, folder / "scheduler.log", ROOT, service=True)
    with reservation:
        return supervise([service, *ranks] if size > 1 else ranks)
