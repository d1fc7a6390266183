#!/usr/bin/env python3
"""How long a run of several processes takes from the command to the end of its first step; prints each start.

    python -m benchmarks.start_time [-n 2] [--starts 20] [--limit 15]

`./runner -n 2` with ResNet-18, 32 px, 4 generated images per device: the time of the dllogger line of the
first step, less the time at which the command was started. In it: Python and the checks of runner, the
scheduler, the import of MindSpore, the ranks finding each other, building and compiling, and one step.
Measure on a machine that does nothing else. Ends with 1 if a start takes longer than the limit, or fails.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import ROOT, machine
from src.report import dllog

OPTIONS = (
    "--data-backend synthetic --num-classes 10 --num-layers 18 --image-shape 3,32,32 -b 4 -e 1 "
    "--warmup-epochs 0 --mode train --disp-batches 1 --save-frequency 0 --data-threads 1 --seed 1"
)
STEPS = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--num-processes", type=int, default=2)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--limit", type=float, default=15.0, help="s")
    args = parser.parse_args()
    seconds: list[float] = []
    for number in range(1, args.starts + 1):
        with tempfile.TemporaryDirectory() as folder:
            seconds.append(start(args.num_processes, Path(folder)))
        print(f"start {number}: {seconds[-1]:.1f} s", flush=True)
    within = sum(s < args.limit for s in seconds)
    print(
        f"{machine()}; -n {args.num_processes}: median {statistics.median(seconds):.1f} s, longest "
        f"{max(seconds):.1f} s, {within} of {args.starts} under {args.limit:g} s"
    )
    return 0 if within == args.starts else 1


def start(num_processes: int, folder: Path) -> float:
    """Seconds from the command to the end of the first step. Raises RuntimeError if the run fails."""
    words = [*OPTIONS.split(), "-n", str(num_processes), "--workspace", str(folder / "run")]
    words += ["--num-examples", str(4 * num_processes * STEPS)]
    begin = time.time()  # the lines' clock
    done = subprocess.run([sys.executable, str(ROOT / "runner"), *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"runner ended with {done.returncode}: {done.stderr[-1000:]}")
    for record in dllog.read_lines(folder / "run" / "dllogger_log.log"):
        if record["type"] == "LOG" and record["step"] == [0, 0]:
            return float(record["timestamp"]) - begin
    raise RuntimeError("the run left no line of its first step")


if __name__ == "__main__":
    sys.exit(main())
