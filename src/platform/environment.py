"""The machine and the process environment: devices, cores, ranks, and the variables MindSpore reads.

The only module that reads or writes os.environ. It does not import MindSpore: most of these variables are
read by its libraries while they load, so they must be set before.
"""

import json
import os
import secrets
import sys
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from src.errors import OptionError
from src.platform import cluster, launchers, nodes, processor
from src.platform.accelerators import ACCELERATORS, has_plugin, loads
from src.platform.cluster import LOCALHOST
from src.platform.launchers import LOCAL_RANK, Place

DEV = Path("/dev")
TOPOLOGY_TIMEOUT_S = 600  # how long ranks wait for each other; imports over a busy network disk are slow
# How long a rank waits for the others in a collective on the CPU; with MindSpore's default, 30 s, a run ends
# when one rank writes a checkpoint to a slow disk, or validates a slower share of the images. A rank that has
# died is noticed long before: by the runner that started it, and on node 0 by the scheduler; on other nodes
# this is the longest wait for a rank that they have lost.
COLLECTIVE_TIMEOUT_S = 600
# Names of our own, from runner to its ranks, besides LOCAL_RANK.
COMMAND, CHOSEN = "SUITE_COMMAND", "SUITE_CHOSEN"
CACHE_SWITCH, CACHE_FOLDER = "MS_COMPILER_CACHE_ENABLE", "MS_COMPILER_CACHE_PATH"
PULSE = "SUITE_PULSE"  # the file descriptor to give signs of life to
LOCK = "SUITE_LOCK"  # the one of the workspace's lock


def detect_device(requested: str) -> str:
    """Ascend, GPU or CPU. Raises OptionError if the requested one cannot be used here."""
    if requested == "auto":
        return next((name for name in ACCELERATORS if obstacle(name) is None), "CPU")
    if requested != "CPU":
        reason = obstacle(requested)
        if reason:
            raise OptionError(f"--device-target {requested}: {reason}; --device-target CPU works everywhere")
    return requested


def obstacle(device: str) -> Optional[str]:
    """Why this accelerator cannot be used on this machine; None if it can."""
    sign = ACCELERATORS[device]
    if not num_devices_present(device):
        return f"there is none on this machine (no {DEV / sign.nodes}, or {sign.visible} hides it)"
    if not has_plugin(sign.plugin):
        return f"the MindSpore installed in {sys.prefix} has no part for it ({sign.plugin})"
    if not loads(sign.runtime):
        return f"{sign.runtime} of {sign.vendor} cannot be loaded; is its set_env.sh or LD_LIBRARY_PATH set?"
    return None


def num_devices_present(device: str) -> int:
    """Devices that this process may use; for the CPU its cores."""
    if device == "CPU":
        return num_cores()
    sign = ACCELERATORS[device]
    visible = os.environ.get(sign.visible)
    present = len(list(DEV.glob(sign.nodes)))
    return present if visible is None else min(present, len([v for v in visible.split(",") if v.strip()]))


def num_cores() -> int:
    """Cores that this process may run on (a batch system or taskset may allow fewer than there are)."""
    return len(cores())


def cores() -> List[int]:
    """Numbers of these cores."""
    return sorted(os.sched_getaffinity(0))


def check_environment() -> None:
    """Raises OptionError for a setting under which MindSpore computes something else than asked for."""
    if os.environ.get(CACHE_SWITCH) == "1":  # nothing else turns it on
        raise OptionError(
            f"{CACHE_SWITCH} is set: MindSpore 2.10's compile cache does not notice a changed constant "
            "(label smoothing, weight decay) and silently trains with the old one; unset it: --compile-cache "
            "FOLDER does notice"
        )


def compile_cache(folder: Optional[Path]) -> None:
    """MindSpore's compile cache on, in a folder, or off. train/graph_cache.py knows when that is safe."""
    for name, value in ((CACHE_SWITCH, "1"), (CACHE_FOLDER, folder)):
        os.environ.pop(name, None)
        if folder is not None:
            os.environ[name] = str(value)


def prepare(device: str, processes: int = 1) -> List[str]:
    """Set what MindSpore should find when it is imported; return sentences on what was chosen and why.

    Values that the user set stay. Raises OptionError as check_environment does.
    """
    check_environment()
    chosen = _choices(device, processes)
    os.environ.update(chosen)
    chosen.update(
        {name: os.environ[name] for name in os.environ.get(CHOSEN, "").split() if name in os.environ}
    )
    return [f"{name}={value}: {_REASONS[name]}" for name, value in chosen.items() if name in _REASONS] + [
        f"{name} is not used: {obstacle(name)}"
        for name in ACCELERATORS
        if device == "CPU" and num_devices_present(name) and obstacle(name)
    ]


_REASONS = {
    "OMP_NUM_THREADS": "the processes of this run share the cores",
    "ONEDNN_MAX_CPU_ISA": "on AVX-512 processors MindSpore's convolutions otherwise run reference code, "
    "many times slower",
}


def _choices(device: str, processes: int, cores: Optional[int] = None) -> Dict[str, str]:
    """Variables worth setting, less those that are set already; `cores` are this process's alone."""
    wanted = {
        "GLOG_v": "3",  # errors only; a start of several ranks logs thousands of warnings otherwise
        # Seconds. By default init() takes 4 to 55 s, so 3 to 5. An upper bound below 1 counts as 0, and then
        # a thread of each process asks without pause: a third of a core, for as long as the run lasts.
        "MS_RETRY_INTERVAL_LOWER": "1",
        "MS_RETRY_INTERVAL_UPPER": "2",
        "MS_TOPO_TIMEOUT": str(TOPOLOGY_TIMEOUT_S),
    }
    if device == "CPU":
        wanted["MS_CPU_COMM_OP_TIMEOUT"] = str(COLLECTIVE_TIMEOUT_S)
        if processes > 1 or cores:
            wanted["OMP_NUM_THREADS"] = str(cores or max(1, num_cores() // processes))
        if (
            processor.has_avx512() and "DNNL_MAX_CPU_ISA" not in os.environ
        ):  # the older name, which oneDNN reads too
            wanted["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    return {name: value for name, value in wanted.items() if name not in os.environ}


def scheduler_environment(size: int, port: int, host: str = LOCALHOST) -> Dict[str, str]:
    """Variables of the process through which the ranks find each other; it computes nothing, on the CPU."""
    return {**_choices("CPU", size), **cluster.scheduler_variables(size, host, port)}


def rank_environment(
    device: str, rank: int, size: int, port: Optional[int] = None, host: str = LOCALHOST
) -> Dict[str, str]:
    """Variables that make a process rank `rank` of `size` on one node; a single process needs no port."""
    return place_environment(device, Place(rank, size, rank, size, rank, "runner"), port, host)


def place_environment(
    device: str, place: Place, port: Optional[int], host: str, num_cores: Optional[int] = None
) -> Dict[str, str]:
    """Variables of a rank that runner starts; `num_cores` if it has that many for itself."""
    chosen = _choices(device, place.local_size, num_cores)
    common = {
        **chosen,
        CHOSEN: " ".join(chosen),
        "PYTHONUNBUFFERED": "1",  # the last lines before a kill are the ones that matter
    }
    if place.size == 1:
        return {**common, LOCAL_RANK: "0", "DEVICE_ID": str(place.device_id)}
    assert port is not None
    return {**common, **cluster.rank_variables(place, host, port)}


def hand_down(command: Sequence[str]) -> Dict[str, str]:
    """Variables that tell every rank the command line typed to runner."""
    return {COMMAND: json.dumps(list(command))}


def this_rank(launcher: str = "auto") -> Place:
    """The place that a launcher gave this process. Raises OptionError for variables that cannot be."""
    return launchers.recognise(os.environ, launcher)


def enter(launcher: str, device: str, device_ids: Sequence[int] = ()) -> Place:
    """The place of a process of train.py; the variables say it in MindSpore's words from now on.

    Raises OptionError if the launcher (--launcher) is not there, or cannot be used with this device.
    """
    place = this_rank(launcher)
    if launcher == "none":
        forget_launchers()
    if not place.is_scheduler:
        os.environ.update(cluster.translate(os.environ, place, device, device_ids))
    return this_rank()


def is_alone() -> bool:
    """Whether this process meets no other; also where that cannot be told, and it has met none."""
    try:
        return this_rank().alone
    except OptionError:
        return True


def meeting_point() -> Tuple[str, int]:
    """Host and port of the scheduler."""
    return cluster.meeting_point(os.environ, this_rank())


def forget_launchers() -> None:
    """Remove what launchers set, so that MindSpore does not see it either (--launcher none)."""
    for name in launchers.LAUNCHER_VARIABLES:
        os.environ.pop(name, None)


def nodes_given() -> nodes.Wish:
    """What a platform says about the nodes, for runner."""
    return nodes.given(os.environ, this_rank())


def typed_command() -> List[str]:
    """The command line that the user typed: runner's, if runner started this process."""
    handed = os.environ.get(COMMAND)
    return json.loads(handed) if handed else list(sys.argv)


def pulse_fd() -> Optional[int]:
    """Where runner wants this process's signs of life; None if it was not runner who started it."""
    return _handed_fd(PULSE, f"/memfd:{PULSE}")


def lock_fd(name: str) -> Optional[int]:
    """The open file, called `name` or `name-...`, by which this process holds runner's lock too."""
    return _handed_fd(LOCK, f"/{name}")


def _handed_fd(variable: str, name: str) -> Optional[int]:
    handed = os.environ.get(variable)
    try:
        # A process further down has the variable too, and under that number perhaps a file of its own.
        ours = bool(handed) and name in os.readlink(f"/proc/self/fd/{handed}")
    except OSError:
        return None
    return int(handed) if handed and ours else None


def started_by_runner() -> bool:
    """Whether a runner watches this process, and does what comes after the last rank."""
    return COMMAND in os.environ


def given() -> Mapping[str, str]:
    """The environment, to be looked at: a platform's own variables."""
    return os.environ


def draw_seed() -> int:
    """A seed for a run without --seed."""
    return secrets.randbelow(2**32)


def for_child(extra: Mapping[str, str]) -> Dict[str, str]:
    """This process's environment with `extra` on top."""
    return {**os.environ, **extra}
