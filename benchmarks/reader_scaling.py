#!/usr/bin/env python3
"""How conversion and the reader's start grow with the number of rows: 1,000 to 1,000,000 tiny images.

    python -m benchmarks.reader_scaling [--most 1000000] [--rounds 3] [--scratch DIR]

The rows are one PNG of 8 x 8 pixels each, in 8 shards, one task for each row as the imagenet plug-in has it.
The reader is the suite's training pipeline on one process: reading the manifest, and the time to the first
batch of an epoch over all rows in a drawn order, in a process that has imported MindSpore already. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import ROOT, WRITER, Measured, fresh, machine, table
from src.platform import environment

SHARDS, BATCH = 8, 32
PLUGIN = '''
import io
from PIL import Image

ROWS = {rows}
mindrecord_schema = {{"image": {{"type": "bytes"}}, "label": {{"type": "int32"}}, "file_name": {{"type": "string"}}}}
mindrecord_index_fields = ["label"]
buffer = io.BytesIO()
Image.new("RGB", (8, 8), (200, 30, 30)).save(buffer, "PNG")
IMAGE = buffer.getvalue()

def mindrecord_task_number():
    return ROWS

def mindrecord_dict_data(task_id):
    yield {{"image": IMAGE, "label": task_id % 10, "file_name": f"{{task_id:07d}}.png"}}

def mindrecord_classes():
    return [(str(k), str(k)) for k in range(10)]

def mindrecord_sizes():
    return ROWS * len(IMAGE), len(IMAGE)
'''  # fmt: skip  # noqa: E501


def convert(rows: int, scratch: Path, measured: Measured) -> Path:
    """The folder of the set."""
    plugin = scratch / f"tiny{rows}"
    plugin.mkdir(exist_ok=True)
    (plugin / "mr_api.py").write_text(PLUGIN.format(rows=rows))
    target = fresh(scratch / f"records{rows}" / "train")
    words = [sys.executable, WRITER, "--mindrecord_script", plugin, "--mindrecord_partitions", SHARDS]
    words += ["--mindrecord_file", target / "train.mindrecord"]
    measured.add([*words, "--check", "none"], target.parent)
    return target


def start_reader(folder: str) -> None:
    """In a process of its own: print what the start of an epoch costs, as JSON."""
    import mindspore.dataset  # noqa: F401

    from src.config import Config, Data, Training
    from src.data.manifest import read_manifest
    from src.data.pipeline import TrainPipeline
    from src.data.sources import MindRecordSource
    from src.platform.distributed import World

    before, begin = peak_mb(), time.perf_counter()
    source = MindRecordSource(read_manifest(folder))
    manifest_s = time.perf_counter() - begin
    config = Config(training=Training(batch_size=BATCH), data=Data(image_shape=(3, 32, 32)))
    begin = time.perf_counter()
    pipeline = TrainPipeline(config, source, World(), seed=0)
    batches = pipeline.epoch(0).create_tuple_iterator(num_epochs=1, output_numpy=True)
    next(iter(batches))
    first_s = time.perf_counter() - begin
    print(json.dumps({"manifest_s": manifest_s, "first_s": first_s, "mb": peak_mb() - before}))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def read(folder: Path) -> dict[str, float]:
    words = [sys.executable, "-m", "benchmarks.reader_scaling", "--read", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="a folder on the disk to measure (a temporary one)")
    parser.add_argument("--read", metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    environment.prepare("CPU")
    if args.read:
        start_reader(args.read)
        return
    sizes = [rows for rows in (1_000, 10_000, 100_000, 1_000_000) if rows <= args.most]
    written = {rows: Measured() for rows in sizes}
    started: dict[int, list[dict[str, float]]] = {rows: [] for rows in sizes}
    with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
        for number in range(args.rounds):
            for rows in sizes:
                target = convert(rows, Path(folder), written[rows])
                started[rows].append(read(target))
                print(f"round {number + 1}: {rows} rows: {written[rows].seconds[-1]:.1f} s", file=sys.stderr)
    lines, fewer = [], 0
    for rows in sizes:
        m, reader = written[rows], started[rows]
        manifest, first, mb = (
            statistics.median(r[key] for r in reader) for key in ("manifest_s", "first_s", "mb")
        )
        further = (m.median - (written[fewer].median if fewer else 0)) / (rows - fewer) * 1e6
        lines.append(
            [f"{rows:,}", f"{m.median:.1f}", f"{further:,.0f}" if fewer else "", f"{max(m.peak_mb):,.0f}",
             f"{manifest * 1e3:.0f}", f"{first:.2f}", f"{mb:,.0f}"]
        )  # fmt: skip
        fewer = rows
    print(f"{SHARDS} shards, medians of {args.rounds} rounds; {machine()}.\n")
    head = ["rows", "conversion, s", "each further row, us", "peak MB of a process"]
    print(table([*head, "manifest read, ms", "first batch of an epoch, s", "MB that the start adds"], lines))


if __name__ == "__main__":
    main()
