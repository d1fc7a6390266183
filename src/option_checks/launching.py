"""Processes and machines."""

import math

from src.config import Config, RunnerConfig
from src.option_checks.refusing import listed, refuse


def processes(config: Config) -> None:
    """What can be said of them without looking at the machine."""
    ids = config.platform.device_ids
    refuse(any(i < 0 for i in ids), f"--device-ids {listed(ids)}: numbers of devices start at 0")
    refuse(len(set(ids)) < len(ids), f"--device-ids {listed(ids)} names a device twice")
    if not isinstance(config, RunnerConfig):
        return
    launch, launcher = config.launch, config.platform.launcher
    refuse(
        launcher not in ("auto", "runner", "none"),
        f"--launcher {launcher} is for train.py, started by it; runner starts the processes itself",
    )
    refuse(launch.nodes is not None and launch.nodes < 1, f"--nodes is {launch.nodes}; it must be at least 1")
    refuse(
        launcher == "none" and ((launch.num_devices or 1) > 1 or (launch.nodes or 1) > 1),
        "--launcher none is for a single process; leave it out to start several",
    )
    port = launch.master_port
    refuse(port is not None and not 0 < port < 2**16, f"--master-port is {port}; it must be in 1..65535")
    hang = launch.hang_timeout
    refuse(not 0 <= hang < math.inf, f"--hang-timeout is {hang}; it must be >= 0 (seconds; 0: never)")
    grace = launch.grace
    refuse(not 0 < grace < math.inf, f"--grace is {grace}; it must be > 0 (seconds)")
