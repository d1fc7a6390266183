"""MindSpore's dynamic cluster: where the ranks of a run meet, and the variables that take them there.

The scheduler listens at one address, each rank connects to it, and the collectives then go from rank to
rank. It is the same for Ascend, GPU and CPU, so whoever started the ranks (rank tables apart), so they meet.
"""

import re
import socket
import time
from typing import Dict, Optional, Sequence, Tuple

from src.errors import OptionError
from src.platform import launchers
from src.platform.launchers import Place, Variables, number

DEFAULT_PORT = 8118  # MindSpore's usual port of the scheduler (msrun's default)
LOCALHOST = "127.0.0.1"
RESOLVE_PAUSE_S = 1.0


def scheduler_variables(size: int, host: str, port: int) -> Dict[str, str]:
    """What makes a process the scheduler of a cluster of `size` ranks."""
    return {
        "MS_ROLE": "MS_SCHED",
        "MS_WORKER_NUM": str(size),
        "MS_SCHED_HOST": host,
        "MS_SCHED_PORT": str(port),
    }


def rank_variables(place: Place, host: str, port: int) -> Dict[str, str]:
    """What makes a process a rank of that cluster, in MindSpore's words and in ours."""
    return {
        **scheduler_variables(place.size, host, port),
        "MS_ROLE": "MS_WORKER",
        "MS_NODE_ID": str(place.rank),
        **place_variables(place),
    }


def place_variables(place: Place) -> Dict[str, str]:
    """A place, for whatever asks for it later."""
    return {
        "RANK_ID": str(place.rank),
        "RANK_SIZE": str(place.size),
        "DEVICE_ID": str(place.device_id),
        launchers.LAUNCHER: place.launcher,
        launchers.LOCAL_RANK: str(place.local_rank),
        launchers.LOCAL_SIZE: str(place.local_size),
    }


def translate(
    variables: Variables, place: Place, device: str, device_ids: Sequence[int] = ()
) -> Dict[str, str]:
    """What a process of train.py must still set, so that MindSpore finds what its launcher meant.

    Raises OptionError if the launcher cannot be used with this device, or these --device-ids.
    """
    if place.launcher == "runner":  # which has set everything
        return {}
    if device_ids and device == "CPU":
        raise OptionError("--device-ids has no effect on the CPU; it numbers accelerators")
    if place.launcher == "none":
        if len(device_ids) > 1:
            raise OptionError(
                f"--device-ids names {len(device_ids)} devices, but this is one process; start "
                f"it with runner -n {len(device_ids)}"
            )
        return {"DEVICE_ID": str(device_ids[0])} if device_ids else {}
    if device_ids:
        raise OptionError(f"--device-ids has no effect under {place.launcher}, which assigns the devices")
    if place.launcher == "rank-table" and device != "Ascend":
        raise OptionError(
            f"RANK_TABLE_FILE and RANK_ID are set, but a rank table lists Ascend devices and this runs on "
            f"{device}; start it with runner, or with --launcher none"
        )
    if place.launcher in ("mpirun", "slurm") and place.size > 1:
        host, port = meeting_point(variables, place)
        return rank_variables(place, address(host, "MS_SCHED_HOST"), port)
    return place_variables(place)


def meeting_point(variables: Variables, place: Place) -> Tuple[str, int]:
    """Host and port of the scheduler for ranks that MPI or Slurm started and that know no such thing.

    Raises OptionError if the ranks are on several nodes and nothing says where rank 0 is.
    """
    port = number(variables, "MS_SCHED_PORT" if "MS_SCHED_PORT" in variables else "MASTER_PORT", DEFAULT_PORT)
    host = variables.get("MS_SCHED_HOST") or variables.get("MASTER_ADDR")
    if not host and place.local_size == place.size:
        host = LOCALHOST
    if not host and place.launcher == "slurm":
        host = first_host(variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_JOB_NODELIST", ""))
    if not host:
        raise OptionError(
            f"{place.launcher} started {place.size} ranks on several nodes, and nothing says where rank 0 "
            "is; set MS_SCHED_HOST to the address of its node on all of them"
        )
    return host, port


def first_host(node_list: str) -> str:
    """The first name in Slurm's short form: `gpu[07-12,30],login` begins with gpu07."""
    match = re.match(r"([^\[,]+)(?:\[(\d+)[^\]]*\]([^,\[]*))?", node_list)
    return "".join(part for part in match.groups() if part) if match else ""


def address(host: str, option: str, patience_s: float = 0.0) -> str:
    """The IPv4 address of a host, waiting for its name to become known where a platform still starts it.

    Raises OptionError, naming `option`, if there is none.
    """
    end = time.monotonic() + patience_s
    while True:
        try:
            return str(socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
        except OSError as error:
            if time.monotonic() >= end:
                raise OptionError(f"{option} {host}: no such host ({error.strerror or error})") from None
        time.sleep(RESOLVE_PAUSE_S)


def reserve_port(host: str = LOCALHOST, port: Optional[int] = None) -> Tuple[int, socket.socket]:
    """A port for the scheduler, kept from others: both sides allow reuse, and this one never listens.

    Without a `port`, a free one. Raises OSError if it is taken, or `host` is not this machine.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reservation.bind((host, port or 0))
    except OSError:
        reservation.close()
        raise
    return reservation.getsockname()[1], reservation
