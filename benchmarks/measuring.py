"""For the benchmarks of commands: wall time, the largest process's memory, the machine, and Markdown."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Sequence

ROOT = Path(__file__).resolve().parent.parent
WRITER = ROOT / "scripts" / "convert_to_mindrecord" / "writer.py"


@dataclass
class Measured:
    """All runs of one command, in order."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)  # of all its processes; other load matters less
    peak_mb: list[float] = field(default_factory=list)  # of its largest process

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def add(self, words: Sequence[object], wrote: Path | None = None) -> None:
        """Run a command and wait until what it `wrote` is on the disk. Raises RuntimeError if it fails."""
        os.sync()  # what others left to be written is not this command's
        begin = time.perf_counter()
        with subprocess.Popen(
            list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT
        ) as process:
            assert process.stderr is not None
            told = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)  # counts the processes that it waited for, too
            process.returncode = os.waitstatus_to_exitcode(status)
        if wrote is not None:
            subprocess.run(["sync", "-f", str(wrote)], check=True)
        if process.returncode:
            raise RuntimeError(f"{words[0]} ended with {process.returncode}: {told.decode()[-500:]}")
        self.seconds.append(time.perf_counter() - begin)
        self.cpu_seconds.append(usage.ru_utime + usage.ru_stime)
        self.peak_mb.append(usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3))


def ratio(one: Sequence[float], other: Sequence[float]) -> str:
    """one / other, round by round: median (lowest to highest)."""
    ratios = [a / b for a, b in zip(one, other)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def machine() -> str:
    """What the numbers depend on, in one sentence."""
    import mindspore
    import numpy
    import PIL

    model = "unknown processor"
    if Path("/proc/cpuinfo").exists():
        text = Path("/proc/cpuinfo").read_text()
        model = next(
            (x.split(":")[1].strip() for x in text.splitlines() if x.startswith("model name")), model
        )
    return (
        f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}; "
        f"Python {platform.python_version()}, MindSpore {mindspore.__version__}, NumPy {numpy.__version__}, "
        f"Pillow {PIL.__version__}"
    )


def fresh(folder: Path) -> Path:
    """The path, with nothing there and nothing of it left to be written."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder
