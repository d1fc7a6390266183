"""A world in which the commands of the docs run as they stand there, in seconds.

It is a folder that looks like the suite, with everything that the docs have names for:

* PHOTOGRAPHS (class folders), IMAGENET (its form, and 3 classes), TFRECORDS, DATA and arrays.py (of
  docs/own-data.md), IMAGES and IMAGE; `/data/` stands for its `data/`;
* RECORDS; RUN, OTHER_RUN, SLOW, FAST, ONE and FOUR (runs), CHECKPOINT.

What a command writes is not there before. `runner`, `train.py` and `eval.py` add `TINY` to their options, and
the network has 2,000 weights.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.shown import Shown, programs
from tests.support import ROOT

# Behind the options of every command, so that these win; 6 steps an epoch.
TINY = {"batch-size": 32, "num-layers": 18, "image-shape": "3,32,32", "data-val-resize": 32}
TINY_TRAINING = {"num-epochs": 2, "run-epochs": 1, "warmup-epochs": 0}
MOST_DEVICES = 2  # a command for more is given 1
CLASSES = ("cat", "dog", "owl")
WNIDS = ("n01440764", "n01443537", "n01484850")
RUNS = ("OTHER_RUN", "SLOW", "FAST", "ONE", "FOUR")  # copies of RUN
LINKED = ("src", "configs", "examples", "docs", "benchmarks", "Makefile")
SHIM = """#!/usr/bin/env python3
import os, sys
sys.path.insert(0, {root!r})
from tests.shown_world import with_tiny
os.execv(sys.executable, [sys.executable, {program!r}, *with_tiny(sys.argv[1:], {trains})])
"""


def with_tiny(words: list[str], trains: bool) -> list[str]:
    """The options of a command, and those that make it small."""
    if "--help" in words:
        return words
    devices = int(words[words.index("-n") + 1]) if "-n" in words else 1
    few = ["-n", "1"] if devices > MOST_DEVICES else []
    trains = trains and not {"val", "pred", "--test-io"} & set(words)
    tiny = {**TINY, **TINY_TRAINING} if trains else TINY
    return [*words, *few, *(f"--{name}={value}" for name, value in tiny.items())]


def build(folder: Path) -> None:
    """Everything that docs have a name for, below `folder`."""
    _suite(folder)
    photographs(folder / "PHOTOGRAPHS", CLASSES, "png", 64)  # a batch of 192, for show_batch
    photographs(folder / "IMAGENET", WNIDS, "JPEG")
    photographs(folder / "data" / "imagenet", WNIDS, "JPEG")
    (folder / "IMAGES").mkdir()
    for i, image in enumerate(sorted((folder / "PHOTOGRAPHS" / "val").rglob("*.png"))[:2]):
        shutil.copy(image, folder / "IMAGES" / f"{i}.png")
    shutil.copy(folder / "IMAGES" / "0.png", folder / "IMAGE")
    _own_source(folder)
    _tfrecords(folder / "TFRECORDS")
    ready = (
        "python scripts/prepare_dataset.py PHOTOGRAPHS RECORDS\n./runner --data-root RECORDS --workspace RUN"
    )
    done = bash(ready, folder)
    assert done.returncode == 0, done.stderr
    for name in RUNS:
        shutil.copytree(folder / "RUN", folder / name)
    shutil.copy(folder / "RUN" / "model_best.safetensors", folder / "CHECKPOINT")


def _suite(folder: Path) -> None:
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    whole = folder / "scripts" / "prepare_imagenet.sh"  # wants all classes and images unless told otherwise
    whole.write_text(f'#!/bin/sh\nexec "{ROOT}/scripts/prepare_imagenet.sh" "$@" --subset\n')
    for name in ("runner", "train.py", "eval.py"):
        shim = folder / name
        shim.write_text(SHIM.format(root=str(ROOT), program=str(ROOT / name), trains=name != "eval.py"))
        shim.chmod(0o755)
    (folder / "bin").mkdir()
    for name in ("python", "python3"):  # not links, through which an environment would not be found
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        program.chmod(0o755)


def photographs(folder: Path, classes: tuple[str, ...], suffix: str, num_train: int = 4) -> None:
    """So many training images of each class, and 4 for validation."""
    from PIL import Image

    random = np.random.default_rng(1)
    for split, number in (("train", num_train), ("val", 4)):
        for label, name in enumerate(classes):
            (folder / split / name).mkdir(parents=True)
            for i in range(number):
                pixels = random.integers(80 * label, 80 * label + 80, (40, 48, 3), np.uint8)
                Image.fromarray(pixels).save(folder / split / name / f"{split}_{name}_{i}.{suffix}")


def _own_source(folder: Path) -> None:
    """The source of docs/own-data.md as it stands there, and its arrays."""
    (source,) = programs("docs/own-data.md")
    (folder / "arrays.py").write_text(source, encoding="utf-8")
    for split in ("train", "val"):
        (folder / "DATA" / split).mkdir(parents=True)
        np.save(folder / "DATA" / split / "images.npy", np.zeros((64, 40, 40, 3), np.uint8))
        np.save(folder / "DATA" / split / "labels.npy", np.arange(64) % 2)


def _tfrecords(folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "scripts"))
    try:
        import test_tfrecord as made_by_hand
    finally:
        sys.path.pop(0)
    folder.mkdir()
    for name in ("train-00000-of-01024", "validation-00000-of-00128"):
        made_by_hand.write(folder / name, [made_by_hand.imagenet_like(i) for i in range(6)])


def bash(script: str, folder: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run it as a person would, in `folder`; the first command that fails ends it."""
    world = next(path for path in (folder, *folder.parents) if (path / "bin" / "python3").exists())
    variables = {
        "PATH": f"{world / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "tests" / "faults" / "injected"),
        "SMALL_NETWORK": "everywhere",
        "EDITOR": "true",
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script.replace("/data/", f"{world}/data/")],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


WRITTEN = r"(?:--workspace|--output|-o) {0}(?![\w/])|--mindrecord_file {0}/|prepare_\w+\.(?:py|sh) \w+ {0}\b"


def written_first(commands: list[str], name: str) -> bool:
    """Whether the first command that mentions a name only writes there."""
    first = next((command for command in commands if re.search(rf"\b{name}\b", command)), "")
    mentions = len(re.findall(rf"\b{name}\b", first))
    return mentions > 0 and len(re.findall(WRITTEN.format(name), first)) == mentions


def prepare(template: Path, folder: Path, commands: list[str]) -> None:
    """A copy of the world, without what the commands will write."""
    shutil.copytree(template, folder, symlinks=True)
    for name in ("RECORDS", "RUN", *RUNS):
        if written_first(commands, name):
            shutil.rmtree(folder / name)


def what_is_missing(shown: Shown, commands: list[str], folder: Path) -> list[str]:
    """Of what training and scoring commands should have left in their workspaces."""
    missing = []
    for command in commands:
        workspace = re.search(r"--workspace (\w+)", command)
        if not workspace or "--dry-run" in command:
            continue
        report = folder / workspace[1] / "report.json"
        status = json.loads(report.read_text())["status"] if report.exists() else "not there"
        if status != "completed":
            missing.append(f"{shown}: {command}: {report} is {status}")
    return missing
