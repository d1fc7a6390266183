"""Whether this conversion is large enough for the quick check of JPEG files, and whether that can be had.

jpeg_scan needs numba, which takes half a second to load, and several the first time, when it compiles.
"""

from __future__ import annotations

import importlib
import io
import time
from typing import Optional

from images import ImageRules, IsWhole, judge_none
from PIL import Image
from progress import Log

# Measured: it saves a worker 2.5 s for each GB, so that fewer bytes do not repay what loading numba takes.
WORTH_BYTES_PER_WORKER = 300_000_000
WITHOUT = "JPEG files are checked by Pillow alone, which takes about a third longer"


def quick_check(rules: ImageRules, num_bytes: Optional[int], num_workers: int, log: Log) -> IsWhole:
    """For the workers to inherit, so before they are started.  `num_bytes`: of all images, if it is known."""
    if rules.check != "full" or rules.resize is not None:  # to be resized, most are decoded in any case
        return judge_none
    if (num_bytes or 0) < num_workers * WORTH_BYTES_PER_WORKER:
        return judge_none
    begin = time.monotonic()
    try:
        is_whole: IsWhole = importlib.import_module("jpeg_scan").is_whole
        good = sample()
        right = is_whole(good) and not is_whole(good[:-2])  # compiles it, too
    except ImportError as error:
        log.note(f"{WITHOUT}: numba cannot be loaded ({error})")
        return judge_none
    except Exception as error:  # numba and its compiler may fail in any way; Pillow needs neither
        log.note(f"{WITHOUT}: numba failed ({type(error).__name__}: {error})")
        return judge_none
    if not right:
        log.note(f"{WITHOUT}: what numba compiled is wrong")
        return judge_none
    log.add(f"the quick check of JPEG files was loaded in {time.monotonic() - begin:.1f} s")
    return is_whole


def sample() -> bytes:
    """The bytes of a small JPEG file."""
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((40, 24)).convert("RGB").save(buffer, "JPEG")
    return buffer.getvalue()
