#!/usr/bin/env python3
"""Training preprocessing in the suite beside DALI, MXNet, PyTorch, and JPEG decoding alone.

    python -m benchmarks.input_pipeline [--archive FILE.tar] [--images 2000] [--batch 64] [--rounds 5]
        [--cores 1,2] [--only NAME] [--scratch DIR]

The archive's photographs, once as they are and once with a shorter side of at most 256 (as the converter's
--resize stores them); the same bytes for all. Each contestant is a process that may use so many cores and is
told to use as many threads; it makes batches of random resized crops of 224 px, mirrored or not, normalised,
float32 (N, 3, H, W), while nothing consumes them. In every round each makes one epoch, beginning with another
one each time; the first batches, which fill queues, do not count. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Sequence

from benchmarks import environments
from benchmarks.conversion import lay_out
from benchmarks.measuring import ROOT, WRITER, machine, ratio, table
from benchmarks.peers import recordio
from benchmarks.rounds import Contestant, photographs, spread, take_turns
from src.config import Config

PEERS = ROOT / "benchmarks" / "peers"
SKIPPED_BATCHES = 5  # more than any peer makes ready by default
RESIZED = 256
ORIGINAL, SMALL = "as they are", f"resized to {RESIZED}"
SUITE_RECORDS, SUITE_FOLDER, DALI = "suite, records", "suite, folder", "DALI"
SUITE_BYTES = "suite, records, normalised on the device"


def class_files(folder: Path) -> list[tuple[Path, int]]:
    """Files by class and name, and the index of their class."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    return [(file, label) for label, each in enumerate(classes) for file in sorted(each.iterdir())]


def shrink(images: Path, target: Path) -> None:
    """The same tree, each file as the converter stores it with --resize."""
    from scripts.convert_to_mindrecord.images import ImageRules, stored_image

    for file, _ in class_files(images):
        small = target / file.relative_to(images)
        small.parent.mkdir(parents=True, exist_ok=True)
        small.write_bytes(stored_image(file.read_bytes(), ImageRules(resize=RESIZED)).data)


def prepare(archive: Path, scratch: Path, rows: int) -> dict[str, Path]:
    """Form of the photographs -> folder with train/ (class folders), records/train/, peers.rec and .idx."""
    forms = {ORIGINAL: scratch / "original", SMALL: scratch / "small"}
    lay_out(archive, forms[ORIGINAL] / "train", rows)
    shrink(forms[ORIGINAL] / "train", forms[SMALL] / "train")
    for folder in forms.values():
        words = [sys.executable, WRITER, "--mindrecord_script", "imagenet", "--dir", folder / "train"]
        words += ["--mindrecord_file", folder / "records/train/train.mindrecord", "--check", "header"]
        subprocess.run([str(w) for w in words], check=True, stdout=subprocess.DEVNULL)
        files = class_files(folder / "train")
        recordio.write(folder / "peers", ((file.read_bytes(), label) for file, label in files))
    return forms


def suite(folder: Path, backend: str, threads: int, batch_size: int, *more: str) -> list[object]:
    """The command of the suite's contestant."""
    root = folder / "records" if backend == "mindrecord" else folder
    words = [sys.executable, "-m", "benchmarks.suite_input", SKIPPED_BATCHES, "--data-root", root]
    return [*words, "--data-backend", backend, "--data-threads", threads, "-b", batch_size, *more]


def peer(name: str, script: str, data: Path, threads: int, batch_size: int, *more: str) -> list[object]:
    """The command of a peer. Raises Unavailable if it cannot be installed."""
    options = json.dumps(Config().plain())
    words = [environments.interpreter(name), PEERS / script, "--data", data, "--threads", threads]
    return [*words, "--batch-size", batch_size, "--skip", SKIPPED_BATCHES, "--options", options, *more]


def contestants(form: str, folder: Path, cores: int, batch_size: int) -> dict[str, Any]:
    """Name -> a function that gives the command, for photographs in one form."""
    images, record, b = folder / "train", folder / "peers", batch_size
    return {
        SUITE_RECORDS: lambda: suite(folder, "mindrecord", cores, b),
        "suite, MindSpore's decoder": lambda: suite(folder, "mindrecord", cores, b, "--no-vector-decoder"),
        SUITE_BYTES: lambda: suite(folder, "mindrecord", cores, b, "--normalize-on-device"),
        SUITE_FOLDER: lambda: suite(folder, "imagefolder", cores, b),
        DALI: lambda: peer("dali", "dali_input.py", record, cores, b),
        "DALI, antialiased (its default)": lambda: peer(
            "dali", "dali_input.py", record, cores, b, "--antialias"
        ),
        "DALI, folder": lambda: peer("dali", "dali_input.py", images, cores, b),
        "MXNet": lambda: peer("mxnet", "mxnet_input.py", record, cores, b),
        "PyTorch, folder": lambda: peer("torch", "torch_input.py", images, cores, b),
        "libjpeg-turbo, decoding alone": lambda: peer("jpeg", "jpeg_input.py", images, cores, b),
    }


def start(
    forms: dict[str, Path], cores: int, batch_size: int, only: Sequence[str]
) -> tuple[dict[tuple[str, str], Contestant], list[str]]:
    """(form, name) -> a contestant that is ready; and why others are left out."""
    found, missing = {}, {}
    for form, folder in forms.items():
        for name, command in contestants(form, folder, cores, batch_size).items():
            if only and name not in only:
                continue
            try:
                contestant = Contestant(f"{name}, {form}, {cores} cores", command(), cores=cores)
                contestant.start()
            except (environments.Unavailable, RuntimeError) as error:
                missing[name] = f"{name} was left out: {error}"
                continue
            found[form, name] = contestant
    return found, list(missing.values())


def report(measured: dict[tuple[str, str], Contestant]) -> str:
    """A row for each contestant; ratios round by round, to DALI in the same form and from the original."""
    base = measured.get((ORIGINAL, DALI))
    lines = []
    for (form, name), contestant in measured.items():
        same, rates = measured.get((form, DALI)), contestant.rates()
        ratios = [ratio(rates, other.rates()) if other else "" for other in (same, base)]
        row = [name, form, spread(rates), *ratios]
        lines.append([*row, f"{contestant.cpu_ms():.2f}"])
    head = ["", "photographs", "images/s: median (min to max)", "over DALI, the same bytes"]
    return table([*head, "over DALI, photographs as they are", "ms of a core for an image"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--archive", type=Path, help="a tar of class folders ($SUITE_DATA_DIR)")
    parser.add_argument("--images", type=int, default=2000, help="in an epoch; the archive's, repeated")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--only", action="append", default=[], help="a name from the table; again for more")
    parser.add_argument("--scratch", type=Path, help="folder of everything made here (a temporary one)")
    parser.add_argument(
        "--limit", type=float, default=float("inf"), help="seconds after which no round begins"
    )
    args = parser.parse_args()
    archive = photographs(args.archive)
    if archive is None:
        print("left out: no photographs; name a tar with --archive, or its folder in SUITE_DATA_DIR")
        return
    if args.images // args.batch <= SKIPPED_BATCHES:
        parser.error(f"--images {args.images} is not more than {SKIPPED_BATCHES} batches of {args.batch}")
    with tempfile.TemporaryDirectory(dir=args.scratch) as name:
        forms = prepare(archive, Path(name), args.images)
        print(f"{args.images:,} photographs an epoch, batches of {args.batch}, at most {args.rounds} rounds;")
        print(f"{machine()}; load average before it {os.getloadavg()[0]:.1f}.")
        for cores in map(int, args.cores.split(",")):
            measured, missing = start(forms, cores, args.batch, args.only)
            take_turns(list(measured.values()), args.rounds, args.limit)
            for contestant in measured.values():
                contestant.stop()
            versions = dict.fromkeys(contestant.versions for contestant in measured.values())
            print(f"\n{cores} core{'s' * (cores > 1)}; {'; '.join(versions)}\n\n{report(measured)}")
            print(*missing, sep="\n")


if __name__ == "__main__":
    main()
