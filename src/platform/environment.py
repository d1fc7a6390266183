"""The machine and the process environment: devices, cores, ranks, and the variables MindSpore reads.

The only module that reads or writes os.environ. It does not import MindSpore: most of these variables are
read by its libraries while they load, so they must be set before.
"""

import ctypes
import importlib.util
import json
import os
import secrets
import sys
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from src.errors import OptionError

DEV, CPU_INFO = Path("/dev"), Path("/proc/cpuinfo")
TOPOLOGY_TIMEOUT_S = 600  # how long ranks wait for each other; imports over a busy network disk are slow
# Names of our own, from runner to its ranks.
LOCAL_RANK, COMMAND, CHOSEN = "SUITE_LOCAL_RANK", "SUITE_COMMAND", "SUITE_CHOSEN"


class Accelerator(NamedTuple):
    """How a device shows: its nodes under /dev, MindSpore's part for it, and the vendor's run time.

    The wheel ships the parts for Ascend and GPU on every machine, and a driver may be there without the run
    time that the part links to, so all three are asked.
    """

    nodes: str
    plugin: str
    runtime: str
    vendor: str
    visible: str


ACCELERATORS = {
    "Ascend": Accelerator(
        "davinci[0-9]*", "libmindspore_ascend.so*", "libascendcl.so", "CANN", "ASCEND_RT_VISIBLE_DEVICES"
    ),
    "GPU": Accelerator(
        "nvidia[0-9]*", "libmindspore_gpu.so*", "libcudart.so.11.0", "CUDA 11", "CUDA_VISIBLE_DEVICES"
    ),
}
CUDA_LIBRARIES = Path("/usr/local/cuda/lib64")  # where MindSpore's GPU part looks besides the loader's path


class Place(NamedTuple):
    """Which of the processes of a run this is."""

    rank: int
    size: int
    local_rank: int


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
    if not _has_plugin(sign.plugin):
        return f"the MindSpore installed in {sys.prefix} has no part for it ({sign.plugin})"
    if not _loads(sign.runtime):
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
    return len(os.sched_getaffinity(0))


def _has_plugin(pattern: str) -> bool:
    spec = importlib.util.find_spec("mindspore")
    return (
        spec is not None
        and spec.origin is not None
        and any((Path(spec.origin).parent / "lib" / "plugin").glob(pattern))
    )


def _loads(library: str) -> bool:
    for name in (library, str(CUDA_LIBRARIES / library)):
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            continue
    return False


def check_environment() -> None:
    """Raises OptionError for a setting under which MindSpore computes something else than asked for."""
    if os.environ.get("MS_COMPILER_CACHE_ENABLE") == "1":
        raise OptionError(
            "MS_COMPILER_CACHE_ENABLE=1 is set: MindSpore 2.10's compile cache does not notice a "
            "changed constant (label smoothing, weight decay) and silently trains with the old one; unset it"
        )


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


def _choices(device: str, processes: int) -> Dict[str, str]:
    """Variables worth setting, less those that are set already."""
    wanted = {
        "GLOG_v": "3",  # errors only; a start of several ranks logs thousands of warnings otherwise
        # The default interval (0.5 s and growing) makes init() take 4 to 55 s, this one 3.5 to 4.1 s.
        "MS_RETRY_INTERVAL_LOWER": "0.1",
        "MS_RETRY_INTERVAL_UPPER": "0.2",
        "MS_TOPO_TIMEOUT": str(TOPOLOGY_TIMEOUT_S),
    }
    if device == "CPU":
        if processes > 1:
            wanted["OMP_NUM_THREADS"] = str(max(1, num_cores() // processes))
        if _has_avx512() and "DNNL_MAX_CPU_ISA" not in os.environ:  # the older name, which oneDNN reads too
            wanted["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    return {name: value for name, value in wanted.items() if name not in os.environ}


def _has_avx512() -> bool:
    try:
        lines = CPU_INFO.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "")
    return "avx512f" in flags.split()


def scheduler_environment(size: int, port: int, host: str = "127.0.0.1") -> Dict[str, str]:
    """Variables of the process through which the ranks find each other; it computes nothing, on the CPU."""
    return {
        **_choices("CPU", size),
        "MS_ROLE": "MS_SCHED",
        "MS_WORKER_NUM": str(size),
        "MS_SCHED_HOST": host,
        "MS_SCHED_PORT": str(port),
    }


def rank_environment(
    device: str, rank: int, size: int, port: Optional[int] = None, host: str = "127.0.0.1"
) -> Dict[str, str]:
    """Variables that make a process rank `rank` of `size`; a single process needs no port."""
    chosen = _choices(device, size)
    common = {
        **chosen,
        CHOSEN: " ".join(chosen),
        "PYTHONUNBUFFERED": "1",  # the last lines before a kill are the ones that matter
    }
    if size == 1:
        return common
    assert port is not None
    return {
        **common,
        "MS_ROLE": "MS_WORKER",
        "MS_WORKER_NUM": str(size),
        "MS_SCHED_HOST": host,
        "MS_SCHED_PORT": str(port),
        "MS_NODE_ID": str(rank),
        "RANK_ID": str(rank),
        "RANK_SIZE": str(size),
        "DEVICE_ID": str(rank),
        LOCAL_RANK: str(rank),
    }


def hand_down(command: Sequence[str]) -> Dict[str, str]:
    """Variables that tell every rank the command line typed to runner."""
    return {COMMAND: json.dumps(list(command))}


def this_rank() -> Place:
    """The place that a launcher (runner, msrun, a platform with rank tables) gave this process."""
    size = int(os.environ.get("RANK_SIZE", "1"))
    local = os.environ.get(LOCAL_RANK, os.environ.get("DEVICE_ID", "0"))
    return Place(int(os.environ.get("RANK_ID", "0")) if size > 1 else 0, size, int(local))


def typed_command() -> List[str]:
    """The command line that the user typed: runner's, if runner started this process."""
    handed = os.environ.get(COMMAND)
    return json.loads(handed) if handed else list(sys.argv)


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
