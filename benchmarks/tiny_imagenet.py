#!/usr/bin/env python3
"""The same recipe in the suite and in plain PyTorch, on ten classes of Tiny-ImageNet: accuracy and speed.

    python -m benchmarks.tiny_imagenet [--archive FILE.tar] [--seeds 1,2,3] [--run-epochs K] [--torch-env DIR]

For each seed the suite trains, then the peer (`benchmarks/peers/tiny_imagenet.py`), so that the machine's
drift hits both. The recipe is `configs/tiny-imagenet-10.yaml` for both; --run-epochs ends both early, on the
same schedule. PyTorch is installed into an environment of its own. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT, machine, table
from src import cli

RECIPE = ROOT / "configs" / "tiny-imagenet-10.yaml"
PEER = ROOT / "benchmarks" / "peers" / "tiny_imagenet.py"
TORCH = ["torch==2.13.0", "torchvision==0.28.0", "numpy"]


def torch_python(folder: Path) -> Path:
    """The interpreter of an environment with PyTorch, made if need be."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TORCH]
    subprocess.run(list(map(str, words)), check=True)
    return python


def called(words: list[object], log: Path) -> float:
    """Seconds of a whole command. Raises RuntimeError with the end of its log if it fails."""
    begin = time.perf_counter()
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(list(map(str, words)), cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(f"{words[1]} ended with {done.returncode}:\n{log.read_text()[-1000:]}")
    return time.perf_counter() - begin


def suite(records: Path, scratch: Path, seed: int, epochs: int | None) -> dict[str, Any]:
    """Train in the suite; figures by epoch."""
    workspace = scratch / f"suite-{seed}"
    words: list[object] = [sys.executable, "train.py", "--config", RECIPE, "--data-root", records]
    words += ["--workspace", workspace, "--seed", seed, *(["--run-epochs", epochs] if epochs else [])]
    seconds = called(words, scratch / f"suite-{seed}.txt")
    metrics = json.loads((workspace / "report.json").read_text(encoding="utf-8"))["metrics"]
    return {
        "loss": metrics["train.loss"],
        "top1": metrics["val.top1"],
        "median_ips": statistics.median(metrics["train.total_ips"]),
        "seconds": seconds,
    }


def peer(python: Path, images: Path, scratch: Path, seed: int, epochs: int | None) -> dict[str, Any]:
    """Train in PyTorch; the same figures."""
    options, out = scratch / "options.json", scratch / f"peer-{seed}.json"
    config = cli.parse(["--config", str(RECIPE)], "benchmark")
    options.write_text(json.dumps({**config.plain(), "data-val-resize": config.val_resize}), encoding="utf-8")
    words: list[object] = [python, PEER, "--data", images, "--options", options, "--seed", seed]
    words += ["--out", out, *(["--run-epochs", epochs] if epochs else [])]
    seconds = called(words, scratch / f"peer-{seed}.txt")
    return {**json.loads(out.read_text(encoding="utf-8")), "seconds": seconds}


def spread(values: list[float], form: str) -> str:
    """Mean, and lowest to highest."""
    return f"{statistics.mean(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def report(runs: dict[str, list[dict[str, Any]]]) -> str:
    lines = []
    for name, of_seeds in runs.items():
        last, best = [r["top1"][-1] for r in of_seeds], [max(r["top1"]) for r in of_seeds]
        first, end = [r["loss"][0] for r in of_seeds], [r["loss"][-1] for r in of_seeds]
        speed, minutes = [r["median_ips"] for r in of_seeds], [r["seconds"] / 60 for r in of_seeds]
        deviation = statistics.stdev(last) if len(last) > 1 else 0.0
        accuracy = [spread(last, ".2%"), f"{deviation:.2%}", spread(best, ".2%")]
        losses = [spread(first, ".3f"), spread(end, ".3f")]
        lines.append([name, *accuracy, *losses, spread(speed, ".1f"), spread(minutes, ".1f")])
    head = ["", "top-1 after the last epoch: mean (min to max)", "standard deviation", "best top-1"]
    head += ["train loss, first epoch", "last epoch", "images/s (median epoch)", "minutes, whole command"]
    return table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    folder = os.environ.get("SUITE_DATA_DIR")
    archive = Path(folder, "tiny-imagenet-10.tar") if folder else None
    parser.add_argument(
        "--archive", type=Path, default=archive, help="a tar with class folders in train/ and val/"
    )
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--run-epochs", type=int, help="only so many epochs of the recipe's schedule")
    parser.add_argument("--scratch", type=Path, help="folder of everything made here (a temporary one)")
    parser.add_argument("--torch-env", type=Path, help="where PyTorch's environment is or is to be made")
    args = parser.parse_args()
    if args.archive is None:
        parser.error("--archive is needed, or SUITE_DATA_DIR in the environment")
    seeds = [int(seed) for seed in args.seeds.split(",")]
    runs: dict[str, list[dict[str, Any]]] = {"suite": [], "PyTorch": []}
    with tempfile.TemporaryDirectory(dir=args.scratch) as name:
        scratch = Path(name)
        python = torch_python((args.torch_env or scratch / "torch").absolute())
        with tarfile.open(args.archive) as tar:
            tar.extractall(scratch / "images", filter="data")
        (images,) = (path.parent for path in (scratch / "images").glob("**/train"))
        records = scratch / "records"
        called([sys.executable, "scripts/prepare_dataset.py", images, records], scratch / "prepare.txt")
        load = os.getloadavg()[0]
        for seed in seeds:
            runs["suite"].append(suite(records, scratch, seed, args.run_epochs))
            runs["PyTorch"].append(peer(python, images, scratch, seed, args.run_epochs))
            for who, done in runs.items():
                told = f"top-1 {done[-1]['top1'][-1]:.2%}, losses {[round(x, 3) for x in done[-1]['loss']]}"
                print(f"seed {seed}: {who}: {told}", file=sys.stderr, flush=True)
    epochs = len(runs["suite"][0]["top1"])
    print(f"`configs/{RECIPE.name}`, {epochs} epochs, seeds {args.seeds}; {machine()};")
    print(f"{runs['PyTorch'][0]['versions']}; load average before it {load:.1f}.\n")
    print(report(runs))


if __name__ == "__main__":
    main()
