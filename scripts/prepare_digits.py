"""Write scikit-learn's 1,797 handwritten digits as a small image folder, real data for demo and tests.

    python scripts/prepare_digits.py DST [--seed 0]

DST/train/<digit>/*.png (1,437), DST/val/<digit>/*.png (360, the same share of every digit) and DST/labels.txt
(class folder, label, name).  The 8x8 originals are enlarged to 32x32.  Exit codes: 0 done, 2 wrong options,
1 anything else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

import numpy as np
from PIL import Image

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NUM_VAL = 360  # a fifth of 1,797
SIDE = 32  # pixels
BRIGHTEST = 16  # the originals' grey levels run from 0 to 16


class DigitsError(Exception):
    """One sentence and an exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 8, 8) of 0..16 and labels (n,)."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError:
        raise DigitsError(
            "scikit-learn, which holds the digits, is missing: pip install scikit-learn", 1
        ) from None
    digits = load()
    return digits.images, digits.target


def is_val(labels: np.ndarray, num_val: int, seed: int) -> np.ndarray:
    """True for `num_val` rows, the validation split: the same share of every class, by largest remainder."""
    counts = np.bincount(labels)
    shares = counts * num_val / len(labels)
    quotas = np.floor(shares).astype(int)
    most_left_over = np.argsort(quotas - shares, kind="stable")
    quotas[most_left_over[: num_val - quotas.sum()]] += 1
    random = np.random.RandomState(seed)
    chosen = np.zeros(len(labels), bool)
    for label, quota in enumerate(quotas):
        rows = np.flatnonzero(labels == label)
        chosen[random.permutation(rows)[:quota]] = True
    return chosen


def enlarge(image: np.ndarray) -> Image.Image:
    """8x8 of 0..16 to 32x32 of 0..255."""
    pixels = np.round(image * (255 / BRIGHTEST)).astype(np.uint8)
    return Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC)


def write(folder: Path, seed: int) -> None:
    images, labels = load_digits()
    for row, (image, label, val) in enumerate(zip(images, labels, is_val(labels, NUM_VAL, seed))):
        path = folder / ("val" if val else "train") / str(label) / f"digit_{row:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        enlarge(image).save(path)
    lines = [f"{label} {label} {name}\n" for label, name in enumerate(NAMES)]
    (folder / "labels.txt").write_text("".join(lines), "utf-8")


def prepare(target: Path, seed: int) -> None:
    """Built beside the target and put there by one rename."""
    if target.exists() and (not target.is_dir() or os.listdir(target)):
        raise DigitsError(f"{target} exists already: name a new folder, or remove it", 2)
    building = target.parent / f".{target.name}.preparing-{os.getpid()}"
    try:
        write(building, seed)
        os.rename(building, target)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def seed_number(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 2**32-1")
    return int(text)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", metavar="DST", help="folder to create")
    parser.add_argument(
        "--seed", type=seed_number, default=0, help="of the split into train and val (%(default)s)"
    )
    args = parser.parse_args(argv)
    target = Path(os.path.abspath(args.target))
    try:
        prepare(target, args.seed)
    except DigitsError as error:
        print(f"prepare_digits.py: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"prepare_digits.py: cannot write {target}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{target}: 1,437 training and 360 validation images of 10 digits")
    print(f"Next: python scripts/prepare_dataset.py {target} RECORDS --map-file {target / 'labels.txt'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
