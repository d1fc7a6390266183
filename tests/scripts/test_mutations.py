"""Cut and flipped JPEG files: each is refused by the converter, or read in training. None ends a process."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from converting import converted
from PIL import Image, ImageFilter

from tests.support import ROOT

ENCODINGS = [
    {"quality": 90},
    {"quality": 75, "subsampling": 0},
    {"quality": 80, "progressive": True},
    {"quality": 60, "optimize": True, "comment": b"a comment"},
    {"quality": 85, "restart_marker_rows": 1},
    {"quality": 90, "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0", "icc_profile": b"x" * 500},
]


def originals():
    """JPEG files of several encodings, RGB and grey, smooth and noisy, 60 to 300 pixels a side."""
    draw, files = np.random.RandomState(0), []
    for options in ENCODINGS:
        for mode in ("RGB", "L"):
            height, width = draw.randint(60, 300, 2)
            pixels = draw.randint(0, 256, (height, width, 3), np.uint8)
            image = Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(draw.randint(0, 4))).convert(mode)
            buffer = io.BytesIO()
            image.save(buffer, "JPEG", **options)
            files.append(buffer.getvalue())
    return files


def mutated(data, draw):
    """(changed bytes, what was done); half of the changes are in the first 700 bytes, where the header is."""
    reach = min(len(data), draw.choice([700, len(data)]))
    if draw.random() < 0.4:
        at = draw.randrange(1, reach)
        return data[:at], f"cut{at}"
    changed, places = bytearray(data), []
    for _ in range(draw.choice([1, 1, 2, 8])):
        at = draw.randrange(reach)
        changed[at] ^= draw.choice([1 << draw.randrange(8), draw.randrange(1, 256)])
        places.append(f"{at}to{changed[at]:02x}")
    return bytes(changed), "flip" + "_".join(places[:3])


def read(folder, *first):
    words = [sys.executable, "-m", "tests.scripts.read_rows", folder, *first]
    environment = {**os.environ, "GLOG_v": "3"}
    return subprocess.run(
        list(map(str, words)), cwd=ROOT, capture_output=True, text=True, timeout=600, env=environment
    )


def culprits(folder, num_rows):
    """The rows that MindSpore refuses or that end its process, found row by row."""
    found, first = [], 0
    while first < num_rows:
        done = read(folder, first)
        lines = done.stdout.splitlines()
        found += [line for line in lines if ": ERROR " in line]
        if done.returncode == 0:
            break
        names = [line for line in lines if ": ERROR " not in line]
        if not names:  # it did not come as far as a row
            return [*found, done.stderr[-500:]]
        found.append(f"{names[-1]}: ENDED THE PROCESS, code {done.returncode}")
        first += len(names)
    return found


def check(count, folder):
    draw, files = random.Random(count), originals()
    (folder / "images/a").mkdir(parents=True)
    for number in range(count):
        kind = number % len(files)
        data, change = mutated(files[kind], draw)
        (folder / f"images/a/{number:04d}-{kind}-{change}.JPEG").write_bytes(data)
    for kind, data in enumerate(files):
        (folder / f"images/a/whole-{kind}.JPEG").write_bytes(data)
    manifest = converted(
        "imagenet", folder / "train/t.mindrecord", "--dir", folder / "images", "--on-bad-image", "skip"
    )
    refused = {os.path.basename(item["file"]) for item in manifest["refused"]}
    assert not any(name.startswith("whole") for name in refused)
    assert manifest["num_images"] + len(refused) == count + len(files)
    assert count / 5 < len(refused) < count, "mutations that all pass, or all fail, test nothing"
    done = read(folder / "train")
    if done.returncode:
        guilty = "\n".join(culprits(folder / "train", manifest["num_images"]))
        pytest.fail(f"code {done.returncode}, {done.stderr[-500:]}\n{guilty}")
    assert f"read {manifest['num_images']}" in done.stdout


@pytest.mark.slow
def test_a_hundred_mutations_are_refused_or_decoded(tmp_path):
    check(100, tmp_path)


@pytest.mark.slow
def test_a_thousand_mutations_are_refused_or_decoded(tmp_path):
    check(1000, tmp_path)
