"""The JPEG decoder of the input pipeline: Pillow's build of libjpeg-turbo in place of MindSpore's.

MindSpore 2.10's wheel holds libjpeg-turbo as portable C, without the processor's vector instructions, and
calls its functions by name, as any library's. The dynamic linker takes the first of a name that is open to
all: Pillow's wheel has the same library with vector instructions, and is opened to all here. The pixels are
the same, bit for bit (libjpeg-turbo promises that of its vector code, and tests/platform/test_jpeg.py looks).
Speeds are in docs/results-performance.md.
"""

import ctypes
import re
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import List, Optional

# The interface that MindSpore was built with is part of the name; libjpeg refuses structures of another one.
LIBRARY = re.compile(r"libjpeg[-.\w]*\.so\.62(\.\d+)*")
DATA_ENGINE = "mindspore._c_dataengine"


def use_pillows_decoder() -> Optional[str]:
    """To be called before MindSpore is imported. None if it is done, or why it cannot be."""
    if DATA_ENGINE in sys.modules:
        return "MindSpore was imported before"
    library = pillows_library()
    if library is None:
        return "this Pillow brings no libjpeg-turbo of its own"
    try:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        return str(error)
    return None


def pillows_library() -> Optional[Path]:
    """The libjpeg in Pillow's wheel; None where Pillow was built for the system's library, or is absent."""
    try:
        listed = files("pillow") or []
    except PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in listed if LIBRARY.fullmatch(file.name)]
    return next((path for path in found if path.exists()), None)


def choose(vector_decoder: bool) -> List[str]:
    """Do as --vector-decoder says; a sentence if the faster decoder was asked for and cannot be had."""
    reason = use_pillows_decoder() if vector_decoder else None
    return [f"JPEG files are decoded without vector instructions, slower: {reason}"] if reason else []
