"""How an accelerator shows on a machine, and whether the installed MindSpore can use it."""

import ctypes
import importlib.util
from pathlib import Path
from typing import NamedTuple


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


def has_plugin(pattern: str) -> bool:
    """Whether the installed MindSpore has a part of this name."""
    spec = importlib.util.find_spec("mindspore")
    return (
        spec is not None
        and spec.origin is not None
        and any((Path(spec.origin).parent / "lib" / "plugin").glob(pattern))
    )


def loads(library: str) -> bool:
    """Whether the loader finds a library."""
    for name in (library, str(CUDA_LIBRARIES / library)):
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            continue
    return False
