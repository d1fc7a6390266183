"""Which launcher started this process, and as which rank: read from a mapping of environment variables.

Pure functions, which environment.py calls with the process's own. Every launcher has its own words for the
same four facts: the rank, the number of ranks, and both again within the node.
"""

import dataclasses
from typing import Callable, Dict, Mapping, Optional

from src.errors import OptionError
from src.platform import rank_table

Variables = Mapping[str, str]
# Our own words, from runner to its ranks, and from a rank that knows its place to whatever asks later.
LOCAL_RANK, LOCAL_SIZE, LAUNCHER = "SUITE_LOCAL_RANK", "SUITE_LOCAL_SIZE", "SUITE_LAUNCHER"
# What MindSpore, or this module, would take for a launcher's word.
LAUNCHER_VARIABLES = (
    LOCAL_RANK, LOCAL_SIZE, LAUNCHER, "MS_ROLE", "MS_WORKER_NUM", "MS_NODE_ID", "MS_SCHED_HOST",
    "MS_SCHED_PORT", "RANK_ID", "RANK_SIZE", "RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH", "DEVICE_ID",
    "ASCEND_DEVICE_ID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMMAND", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_NODES",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Place:
    """Which of the processes of a run this is, and who said so."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """rank among the processes of this node"""
    local_size: int = 1
    device_id: int = 0
    """which of the node's accelerators is this rank's; of no meaning on the CPU"""
    launcher: str = "none"
    is_scheduler: bool = False
    """it brings the ranks together and is none of them: msrun starts the script for that, too"""

    @property
    def alone(self) -> bool:
        """Whether there is nobody to meet; one rank of msrun still has a scheduler that waits for it."""
        return self.size == 1 and self.launcher != "msrun"

    @property
    def one_per_node(self) -> bool:
        """Whether MPI or Slurm started it as a node's only one: then it may be what starts the ranks."""
        return self.launcher in ("mpirun", "slurm") and self.size > 1 and self.local_size == 1


def recognise(variables: Variables, requested: str = "auto") -> Place:
    """The place of this process. `requested` is --launcher: auto, none, or one of LAUNCHERS.

    Raises OptionError if the variables contradict themselves or each other, or are not there.
    """
    if requested == "none":
        return Place()
    if requested != "auto":
        place = LAUNCHERS[requested](variables)
        if place is None:
            raise OptionError(
                f"--launcher {requested}, but nothing here is from it ({_SIGNS[requested]}); start this "
                "command with it, or leave --launcher at auto"
            )
        return place
    found = [place for place in (read(variables) for read in LAUNCHERS.values()) if place is not None]
    if not found:
        return _nobody(variables)
    inner = found[0]
    # runner has looked at what was around it; one msrun per node under Slurm is what its manual recommends.
    others = [] if LOCAL_RANK in variables else [p for p in found[1:] if not p.one_per_node]
    for other in others:
        if not inner.is_scheduler and (other.rank, other.size) != (inner.rank, inner.size):
            raise OptionError(
                f"by the variables of {inner.launcher} this is rank {inner.rank} of {inner.size}, by those "
                f"of {other.launcher} rank {other.rank} of {other.size}; unset the wrong ones, or name the "
                f"launcher: --launcher {inner.launcher}"
            )
    return inner


def _nobody(variables: Variables) -> Place:
    """A process that was started alone, and is not to be one of many that do not know of each other."""
    size = number(variables, "RANK_SIZE", 1)
    if size > 1:
        raise OptionError(
            f"this is already rank {variables.get('RANK_ID', '?')} of {size} (RANK_SIZE), but nothing says "
            "how the ranks find each other (MS_ROLE, or RANK_TABLE_FILE); --launcher none ignores it"
        )
    return Place(device_id=_device(variables, 0))


def _runner(variables: Variables) -> Optional[Place]:
    if LOCAL_RANK not in variables:
        return None
    size = number(variables, "RANK_SIZE", 1)
    return _place(
        variables.get(LAUNCHER, "runner"),
        rank=number(variables, "RANK_ID", 0),
        size=size,
        local_rank=number(variables, LOCAL_RANK),
        local_size=number(variables, LOCAL_SIZE, size),
        device_id=_device(variables, 0),
    )


def _msrun(variables: Variables) -> Optional[Place]:
    """msrun, or anybody else who sets up MindSpore's dynamic cluster."""
    role = variables.get("MS_ROLE")
    if role is None or LOCAL_RANK in variables:
        return None
    size = number(variables, "MS_WORKER_NUM")
    if role == "MS_SCHED":
        return Place(size=size, launcher="msrun", is_scheduler=True)
    if role != "MS_WORKER":
        raise OptionError(f"MS_ROLE is {role!r}; it must be MS_WORKER or MS_SCHED")
    if "RANK_ID" not in variables and "MS_NODE_ID" not in variables:
        raise OptionError(
            "MS_ROLE is set, but no rank (RANK_ID or MS_NODE_ID); on several nodes give msrun a --node_rank"
        )
    rank = number(variables, "RANK_ID" if "RANK_ID" in variables else "MS_NODE_ID")
    local = _device(
        variables, 0
    )  # msrun's word for the rank within the node; the node's size it does not say
    return _place("msrun", rank, size, local, local_size=size, device_id=local)


def _rank_table(variables: Variables) -> Optional[Place]:
    """One process per card, and a file that lists all of them: older Ascend scripts, ModelArts' presets."""
    path = variables.get("RANK_TABLE_FILE") or variables.get("MINDSPORE_HCCL_CONFIG_PATH")
    if "MS_ROLE" in variables or not path or "RANK_ID" not in variables:
        return None
    rank, size = number(variables, "RANK_ID"), number(variables, "RANK_SIZE", 0) or None
    if size == 1:
        return _place("rank-table", rank, 1, 0, 1, _device(variables, 0))
    table = rank_table.read(path)
    if size is not None and len(table) != size:
        raise OptionError(f"RANK_TABLE_FILE {path} lists {len(table)} devices, but RANK_SIZE is {size}")
    if rank not in table:
        raise OptionError(f"RANK_TABLE_FILE {path} has no rank {rank} (RANK_ID)")
    entry = table[rank]
    return _place(
        "rank-table",
        rank,
        len(table),
        entry.local_rank,
        entry.local_size,
        _device(variables, entry.device_id),
    )


def _mpirun(variables: Variables) -> Optional[Place]:
    """Open MPI's mpirun, or MPICH's (Hydra)."""
    for rank, size, local, local_size in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
         "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ):  # fmt: skip
        if (
            rank in variables
            and size in variables
            and (local in variables or "SLURM_PROCID" not in variables)
        ):
            total = number(variables, size)
            place = number(variables, local, number(variables, rank))
            return _place(
                "mpirun", number(variables, rank), total, place, number(variables, local_size, total), place
            )
    return None


def _slurm(variables: Variables) -> Optional[Place]:
    """A task of srun; a batch script itself has SLURM_PROCID too, but is no step."""
    if "SLURM_PROCID" not in variables or "SLURM_STEP_NUM_TASKS" not in variables:
        return None
    size, nodes = (number(variables, f"SLURM_STEP_NUM_{what}", 1) for what in ("TASKS", "NODES"))
    local = number(variables, "SLURM_LOCALID")
    return _place("slurm", number(variables, "SLURM_PROCID"), size, local, -(-size // nodes), local)


# The innermost first: each may have been started by one that stands after it.
LAUNCHERS: Dict[str, Callable[[Variables], Optional[Place]]] = {
    "runner": _runner, "msrun": _msrun, "rank-table": _rank_table, "mpirun": _mpirun, "slurm": _slurm,
}  # fmt: skip
_SIGNS = {
    "runner": "it sets SUITE_LOCAL_RANK",
    "msrun": "it sets MS_ROLE",
    "rank-table": "it means RANK_TABLE_FILE and RANK_ID, without MS_ROLE",
    "mpirun": "it sets OMPI_COMM_WORLD_RANK or PMI_RANK",
    "slurm": "srun sets SLURM_PROCID and SLURM_STEP_NUM_TASKS",
}


def _place(launcher: str, rank: int, size: int, local_rank: int, local_size: int, device_id: int) -> Place:
    if size < 1 or not 0 <= rank < size:
        raise OptionError(f"by the variables of {launcher} this would be rank {rank} of {size}")
    return Place(rank, size, local_rank, local_size, device_id, launcher)


def number(variables: Variables, name: str, default: Optional[int] = None) -> int:
    value = variables.get(name)
    if value is None:
        if default is None:
            raise OptionError(f"{name} is not set, although the other variables of its launcher are")
        return default
    if not value.strip().isdigit():
        raise OptionError(f"the variable {name} is {value!r}; a number was expected")
    return int(value)


def _device(variables: Variables, default: int) -> int:
    name = "DEVICE_ID" if "DEVICE_ID" in variables else "ASCEND_DEVICE_ID"
    return number(variables, name, default)
