"""The scheduler for ranks that MPI or Slurm started: they know nothing of it, so rank 0 brings it."""

import sys
from pathlib import Path
from typing import Optional

from src.errors import SuiteError
from src.platform import cluster, environment
from src.platform.child import Child, Process
from src.platform.launchers import Place

SUITE = Path(__file__).resolve().parents[2]
WITHOUT_SCHEDULER = ("mpirun", "slurm")


def open_for(place: Place, logs: Path) -> Optional[Child]:
    """Start the scheduler where it is rank 0's task; it ends with this process.

    Raises SuiteError if its port is taken or its address another machine's.
    """
    if place.launcher not in WITHOUT_SCHEDULER or place.rank != 0 or place.alone:
        return None
    host, port = environment.meeting_point()
    try:
        cluster.reserve_port(host, port)[1].close()
        return Child(
            Process(
                name="scheduler",
                command=[sys.executable, "-m", "src.platform.scheduler"],
                environment=environment.scheduler_environment(place.size, port, host),
                log=logs / "scheduler.log",
                cwd=SUITE,
                service=True,
            )
        )
    except OSError as error:
        raise SuiteError(
            f"rank 0 cannot start the scheduler at {host}:{port} ({error.strerror or error}); MS_SCHED_HOST "
            "must be an address of its machine, and MS_SCHED_PORT a free port, the same for all ranks"
        ) from None
