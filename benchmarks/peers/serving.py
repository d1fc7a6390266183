"""What every contestant's process does: get ready, tell its versions, measure a round for each line it reads.

Only the standard library, as each peer runs in an environment of its own. `benchmarks/rounds.py` is the
other end.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterable


def cpu_seconds() -> float:
    """Of this process and its children, those that ended and those that go on."""
    ticks = 0
    for task in Path("/proc/self/task").glob("*/children"):
        for child in task.read_text().split():
            fields = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])  # in user and in system mode, as in proc(5)
    return sum(os.times()[:4]) + ticks / os.sysconf("SC_CLK_TCK")


def serve(ready: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> None:
    """Answer every line of standard input with the figures of a round, until it ends.

    Answers go to the file descriptor ANSWERS_FD: what libraries print is not taken for one.
    """
    with os.fdopen(int(os.environ["ANSWERS_FD"]), "w", encoding="utf-8") as answers:
        for figures in itertools.chain([ready], (measure() for _ in sys.stdin)):
            print(json.dumps(figures), file=answers, flush=True)


def steady(batches: Iterable[Any], skip: int) -> dict[str, float]:
    """Images, seconds, and seconds of the processor after the first `skip` batches, which fill the queues.

    A batch is (images, labels); the processor's time includes that of processes which end with the batches.
    """
    images, begin, cpu_begin = 0, time.perf_counter(), cpu_seconds()
    for number, (batch, _) in enumerate(batches, 1):
        if number > skip:
            images += len(batch)
        elif number == skip:
            begin, cpu_begin = time.perf_counter(), cpu_seconds()
    end = time.perf_counter()
    assert images, f"no batch after the first {skip}"
    return {"images": images, "seconds": end - begin, "cpu_seconds": cpu_seconds() - cpu_begin}


def repeated(step: Callable[[], Any], count: int, images: int) -> dict[str, Any]:
    """`count` calls that compute `images` each; with the seconds of each call."""
    ends, cpu_begin = [time.perf_counter()], cpu_seconds()
    for _ in range(count):
        step()
        ends.append(time.perf_counter())
    return {
        "images": images * count,
        "seconds": ends[-1] - ends[0],
        "cpu_seconds": cpu_seconds() - cpu_begin,
        "step_seconds": [after - before for before, after in zip(ends, ends[1:])],
    }
