"""The machines of a run: how many, which of them this one is, and where rank 0's is. For runner."""

import dataclasses
import errno
import socket
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from src.errors import OptionError
from src.platform import cluster
from src.platform.launchers import Place, Variables, number

NAMES_APPEAR_S = 120.0  # how long the name of another container may take to become known on a platform


@dataclasses.dataclass(frozen=True)
class Wish:
    """What options, or a platform, say; None where they do not."""

    num_devices: Optional[int] = None
    num_nodes: Optional[int] = None
    node_rank: Optional[int] = None
    master_addr: Optional[str] = None
    master_port: Optional[int] = None
    source: str = ""
    """the platform, where it is one"""


@dataclasses.dataclass(frozen=True)
class Nodes:
    """The nodes of a run, each with the same number of devices."""

    num_devices: int = 1
    """on each node"""
    num_nodes: int = 1
    node_rank: int = 0
    host: str = cluster.LOCALHOST
    """address of node 0, by which the others reach it"""
    port: Optional[int] = None
    """of the scheduler; None: any free one"""
    device_ids: Tuple[int, ...] = ()
    """devices of this node's ranks; none: 0, 1, 2, ..."""

    @property
    def size(self) -> int:
        """Ranks on all nodes."""
        return self.num_nodes * self.num_devices

    @property
    def is_first(self) -> bool:
        return self.node_rank == 0

    def places(self) -> List[Place]:
        """The ranks of this node."""
        n, ids = self.num_devices, self.device_ids or range(self.num_devices)
        return [
            Place(self.node_rank * n + local, self.size, local, n, ids[local], "runner") for local in range(n)
        ]

    def sentence(self, port: int, logs: Path) -> str:
        """What happens now on this node, for the person."""
        first = self.node_rank * self.num_devices
        ranks = (
            f"ranks {first} to {first + self.num_devices - 1}" if self.num_devices > 1 else f"rank {first}"
        )
        told = f"node {self.node_rank} of {self.num_nodes}: {ranks} of {self.size}"
        if self.is_first:
            return f"{told}; waiting for the ranks of the other nodes at {self.host}:{port}"
        return f"{told}, output in {logs}; waiting for node 0 at {self.host}:{port}"


def given(variables: Variables, place: Place) -> Wish:
    """What ModelArts, or Slurm or MPI with one runner on each node, say about the nodes.

    Raises OptionError for variables that cannot be.
    """
    if place.one_per_node:
        host = variables.get("MS_SCHED_HOST") or variables.get("MASTER_ADDR")
        if host is None and place.launcher == "slurm":
            host = cluster.meeting_point(variables, place)[0]
        return Wish(None, place.size, place.rank, host, None, place.launcher)
    if "MA_NUM_HOSTS" not in variables:
        return Wish()
    num_nodes, devices = number(variables, "MA_NUM_HOSTS"), number(variables, "MA_NUM_GPUS", 0) or None
    if num_nodes == 1:
        return Wish(devices, source="ModelArts")
    names = [name.strip() for name in variables.get("VC_WORKER_HOSTS", "").split(",") if name.strip()]
    if len(names) != num_nodes:
        raise OptionError(f"MA_NUM_HOSTS is {num_nodes}, but VC_WORKER_HOSTS names {len(names)} hosts")
    return Wish(devices, num_nodes, number(variables, "VC_TASK_INDEX"), names[0], None, "ModelArts")


def resolve(typed: Wish, platform: Wish) -> Nodes:
    """The nodes, from options and, where those say nothing, a platform. Raises OptionError (one sentence)."""
    n = _first(typed.num_devices, platform.num_devices, 1)
    if n < 1:
        raise OptionError(f"-n/--num-devices is {n}; it must be at least 1")
    num_nodes = _first(typed.num_nodes, platform.num_nodes, 1)
    if num_nodes == 1:
        return _one_node(typed, n)
    rank = typed.node_rank if typed.node_rank is not None else platform.node_rank
    if rank is None:
        raise OptionError(f"--nodes {num_nodes} needs --node-rank, from 0 to {num_nodes - 1}, on each node")
    if not 0 <= rank < num_nodes:
        raise OptionError(f"--node-rank is {rank}; of --nodes {num_nodes} it can be 0 to {num_nodes - 1}")
    host = typed.master_addr or platform.master_addr
    if host is None:
        raise OptionError(f"--nodes {num_nodes} needs --master-addr, the address of node 0, on every node")
    patience_s = NAMES_APPEAR_S if typed.master_addr is None else 0.0
    address = cluster.address(host, "--master-addr", patience_s)
    if address.startswith("127.") and host not in (address, "localhost"):  # Debian's /etc/hosts, for one
        raise OptionError(
            f"--master-addr {host} is {address} by this machine's files, and no other node reaches that; "
            "give the address of node 0's network card"
        )
    return Nodes(n, num_nodes, rank, address, _first(typed.master_port, None, cluster.DEFAULT_PORT))


def _one_node(typed: Wish, n: int) -> Nodes:
    for option, value in (("--node-rank", typed.node_rank), ("--master-addr", typed.master_addr)):
        if value is not None:
            raise OptionError(f"{option} has no effect without --nodes of 2 or more")
    if typed.master_port is not None and n == 1:
        raise OptionError("--master-port has no effect with -n 1: a single process meets nobody")
    return Nodes(n, port=typed.master_port)


def _first(typed: Optional[int], platform: Optional[int], default: int) -> int:
    return next((value for value in (typed, platform) if value is not None), default)


def check_place(place: Place, nodes: Nodes) -> None:
    """Raises OptionError if runner was started as a rank, and would start n times n processes."""
    if place.size == 1 and not place.is_scheduler:
        return
    if place.is_scheduler or not place.one_per_node:
        raise OptionError(
            f"this is already rank {place.rank} of {place.size}, started by {place.launcher}: start train.py "
            "in each of its processes, not runner"
        )
    if (place.rank, place.size) != (nodes.node_rank, nodes.num_nodes):
        raise OptionError(
            f"{place.launcher} started this runner as process {place.rank} of {place.size}, which does not "
            f"fit node {nodes.node_rank} of {nodes.num_nodes}; leave out --nodes and --node-rank"
        )


def reserve(nodes: Nodes) -> Tuple[int, socket.socket]:
    """The scheduler's port: kept from others where it will listen. Raises OptionError if it cannot be had."""
    if not nodes.is_first:
        assert nodes.port is not None
        return nodes.port, socket.socket()
    try:
        return cluster.reserve_port(nodes.host, nodes.port)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            told = f"--master-addr {nodes.host} is not an address of this machine, but this is --node-rank 0"
        else:
            told = f"--master-port {nodes.port} cannot be used here ({error.strerror}); give another one"
        raise OptionError(told) from None


def check_device_ids(ids: Sequence[int], device: str, present: int, num_devices: int) -> None:
    """Raises OptionError unless --device-ids names as many devices as there are ranks, and such as exist."""
    if not ids:
        return
    told = f"--device-ids {','.join(map(str, ids))}"
    if device == "CPU":
        raise OptionError(f"{told} has no effect on the CPU; --bind gives ranks cores of their own")
    if len(ids) != num_devices:
        raise OptionError(f"{told} names {len(ids)}, but -n/--num-devices is {num_devices}")
    if max(ids) >= present:
        raise OptionError(f"{told}: this machine shows {present} {device}, numbered from 0")
