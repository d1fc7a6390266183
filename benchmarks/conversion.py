#!/usr/bin/env python3
"""How fast the converter is beside copying, decoding, and MXNet's record writer, on the same photographs.

    python -m benchmarks.conversion [--archive FILE.tar] [--rows 10000] [--rounds 5] [--scratch DIR]

The archive's JPEG files are copied to --rows files in class folders. In every round each command runs once,
beginning with another one each time, so that the machine's drift hits all: `cp -r`; the converter with each
of its checks; decoding every file with Pillow, and MXNet's indexed record writer, on the same number of
processes. Times are those of whole commands, imports and the end by `sync` included. Prints Markdown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

from benchmarks.measuring import WRITER, Measured, fresh, machine, ratio, table

MXNET = ["mxnet==1.9.1", "numpy==1.23.5"]  # the last release, and the last NumPy that it works with

START, FEW = "the converter's start", 10
CHECKS = "none", "header", "full"

# Runs in MXNet's own environment; argv: images, target prefix, share K of N.
MXNET_SHARE = """
import mxnet as mx, os, sys
folder, target, share, shares = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
files = sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
record = mx.recordio.MXIndexedRecordIO(f"{target}{share}.idx", f"{target}{share}.rec", "w")
for number in range(share, len(files), shares):
    with open(files[number], "rb") as file:
        header = mx.recordio.IRHeader(0, number % 1000, number, 0)
        record.write_idx(number, mx.recordio.pack(header, file.read()))
record.close()
"""
MXNET_ALL = """
import subprocess, sys
shares = [subprocess.Popen([sys.executable, "-c", sys.argv[1], *sys.argv[2:4], str(k), sys.argv[4]])
          for k in range(int(sys.argv[4]))]
sys.exit(max(share.wait() for share in shares))
"""


def decode(path: str) -> int:
    from PIL import Image

    with Image.open(path) as image:
        image.load()
        return image.width


def decode_all(folder: str, workers: int) -> None:
    files = sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    with multiprocessing.Pool(workers) as pool:
        for _ in pool.imap_unordered(decode, files, chunksize=16):
            pass


def lay_out(archive: Path, folder: Path, rows: int) -> tuple[int, int]:
    """Class folders with `rows` files in all, each a copy of its own; (files, bytes)."""
    with tarfile.open(archive) as tar:
        members = [m for m in tar.getmembers() if m.isfile() and m.name.lower().endswith((".jpeg", ".jpg"))]
        count = total = 0
        while count < rows:
            for member in members[: rows - count]:
                data = tar.extractfile(member)
                assert data is not None
                name = Path(member.name)
                target = folder / name.parent.name / f"{name.stem}_{count}.JPEG"
                target.parent.mkdir(parents=True, exist_ok=True)
                total += target.write_bytes(data.read())
                count += 1
    return count, total


def mxnet_python(folder: Path) -> tuple[Path | None, str]:
    """The interpreter of an environment with MXNet, made if need be; or None and why there is none."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *MXNET]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode == 0:
        done = subprocess.run([str(python), "-c", "import mxnet"], capture_output=True, text=True)
    told = (done.stderr.strip().splitlines() or ["?"])[-1]
    return (python, "") if done.returncode == 0 else (None, told)


def commands(scratch: Path, workers: int, mxnet: Path | None) -> dict[str, tuple[list[object], Path | None]]:
    """Name -> (command, the folder that it writes)."""
    images = scratch / "images"
    found: dict[str, tuple[list[object], Path | None]] = {
        "`cp -r`": (["cp", "-r", images, scratch / "copy"], scratch / "copy")
    }
    writer = [sys.executable, WRITER, "--mindrecord_script", "imagenet", "--mindrecord_workers", workers]
    writer += ["--mindrecord_file", scratch / "records/train/train.mindrecord"]
    for check in CHECKS:
        words = [*writer, "--dir", images, "--check", check]
        found[f"converter, `--check {check}`"] = (words, scratch / "records")
    found[START] = (
        [*writer, "--dir", scratch / "few", "--mindrecord_partitions", workers],
        scratch / "records",
    )
    own = [sys.executable, "-m", "benchmarks.conversion", "--decode", images, "--workers", workers]
    found["Pillow, decode in full, store nothing"] = (own, None)
    if mxnet is not None:
        words = [mxnet, "-c", MXNET_ALL, MXNET_SHARE, images, scratch / "rec" / "r", workers]
        found["MXNet's record writer, no check"] = (words, scratch / "rec")
    return found


def report(measured: dict[str, Measured], rows: int, num_bytes: int) -> str:
    names = list(measured)
    copy, pillow = measured[names[0]], next(m for name, m in measured.items() if name.startswith("Pillow"))
    mxnet = next((m for name, m in measured.items() if name.startswith("MXNet")), None)
    lines = []
    for name, m in measured.items():
        if name == START:
            continue
        rate, mb = f"{rows / m.median:,.0f}", f"{num_bytes / 1e6 / m.median:,.0f}"
        others = [ratio(peer.seconds, m.seconds) if peer else "" for peer in (copy, pillow, mxnet)]
        spread = f"{m.median:.2f} ({min(m.seconds):.2f} to {max(m.seconds):.2f})"
        cpu = f"{statistics.median(m.cpu_seconds):.1f}"
        lines.append([name, spread, cpu, rate, mb, *others, f"{max(m.peak_mb):,.0f}"])
    head = ["command", "seconds: median (min to max)", "CPU seconds", "images/s", "MB/s"]
    head += ["speed over `cp -r`", "over Pillow", "over MXNet", "peak MB of a process"]
    start = measured[START]
    return (
        f"{table(head, lines)}\n\nOf the converter's time, its start (measured with {FEW} photographs) takes "
        f"{start.median:.1f} s, and "
        f"{statistics.median(start.cpu_seconds):.1f} CPU seconds."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    folder = os.environ.get("SUITE_DATA_DIR")
    archive = Path(folder, "imagenet-samples.tar") if folder else None
    parser.add_argument(
        "--archive", type=Path, default=archive, help="a tar of photographs ($SUITE_DATA_DIR)"
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--scratch", type=Path, help="a folder on the disk to measure (a temporary one)")
    parser.add_argument("--mxnet-env", type=Path, help="where MXNet's environment is or is to be made")
    parser.add_argument("--decode", metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.decode:
        decode_all(args.decode, args.workers)
        return
    if args.archive is None:
        parser.error("--archive is needed, or SUITE_DATA_DIR in the environment")
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch_name:
        scratch = Path(scratch_name)
        mxnet, reason = mxnet_python(args.mxnet_env or scratch / "mxnet")
        rows, num_bytes = lay_out(args.archive, scratch / "images", args.rows)
        lay_out(args.archive, scratch / "few", FEW)
        todo = commands(scratch, args.workers, mxnet)
        load = os.getloadavg()[0]
        measured = {name: Measured() for name in todo}
        for number in range(args.rounds):
            turn = number % len(todo)  # what a command leaves to the disk hits another one in each round
            for name, (words, wrote) in [*todo.items()][turn:] + [*todo.items()][:turn]:
                if wrote is not None and name.startswith("MXNet"):
                    wrote.mkdir()
                measured[name].add(words, wrote)
                if wrote is not None:
                    fresh(wrote)
                print(f"round {number + 1}: {name}: {measured[name].seconds[-1]:.2f} s", file=sys.stderr)
    free = shutil.disk_usage(args.scratch or tempfile.gettempdir()).free
    print(
        f"{rows:,} photographs, {num_bytes / 1e6:,.0f} MB, {args.workers} processes, {args.rounds} rounds; "
    )
    print(f"{machine()}; {free / 1e9:,.0f} GB free on the disk; load average before it {load:.1f}.\n")
    print(report(measured, rows, num_bytes))
    if reason:
        print(f"\nMXNet was left out: {reason}")


if __name__ == "__main__":
    main()
