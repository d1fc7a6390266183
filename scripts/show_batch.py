#!/usr/bin/env python3
"""Draw what the network sees: a contact sheet of the first batch of an epoch, with labels.

    python -m scripts.show_batch --data-root DATA [options of train.py] --output batch.png

Takes every option of train.py, and with --seed shows the very pixels of that run (on one device). The images
are what the pipeline gives to the network, its normalisation undone. With --mixup or --cutmix they are mixed,
and both labels stand below. `--val` shows what validation and prediction see instead.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

try:
    from src import cli
except ModuleNotFoundError as error:
    if error.name != "src":
        raise
    sys.exit("show_batch: run it in the suite's folder, as: python -m scripts.show_batch ...")
from src.config import Config
from src.data.splits import open_splits
from src.errors import SuiteError
from src.platform import environment

MARGIN, TEXT_HEIGHT, SMALLEST_TILE = 4, 14, 112  # pixels
PAPER, INK, FONT = (255, 255, 255), (0, 0, 0), ImageFont.load_default()


@dataclasses.dataclass(frozen=True)
class Tile:
    """An image as the network sees it, uint8 (height, width, 3), and what stands below."""

    pixels: np.ndarray
    caption: str


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--output", type=Path, required=True, help="the PNG to write")
    parser.add_argument("--epoch", type=int, default=0, help="which epoch's first batch, from 0")
    parser.add_argument("--images", type=int, default=64, help="at most so many of the batch")
    parser.add_argument("--val", action="store_true", help="the first batch of validation")
    own, words = parser.parse_known_args(argv)
    try:
        config: Config = cli.parse(words, "show_batch")
        environment.prepare("CPU")
        tiles = tiles_of(config, own.epoch, own.val)[: max(1, own.images)]
        sheet(tiles).save(own.output)
    except SuiteError as error:
        print(f"show_batch: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"show_batch: --output {own.output}: {error.strerror or error}", file=sys.stderr)
        return 2
    height, width = tiles[0].pixels.shape[:2]
    print(f"{own.output}: {len(tiles)} images of {width}x{height} pixels")
    return 0


def tiles_of(config: Config, epoch: int, val: bool) -> list[Tile]:
    """The first batch of an epoch of training, or of validation. Raises DataError when there is none."""
    from src.data.pipeline import TrainPipeline, ValPipeline
    from src.platform.distributed import World

    splits, world = open_splits(config, train=not val, val=val), World(0, 1)
    names = [label.name for label in splits.classes]
    try:
        if val:
            assert splits.val is not None
            images, labels = next(iter(ValPipeline(config, splits.val, world)))
            kept = labels >= 0
            return [
                Tile(pixels, names[label]) for pixels, label in zip(seen(images[kept], config), labels[kept])
            ]
        assert splits.train is not None
        host = dataclasses.replace(config.pipeline, normalize_on_device=False)  # the same pixels
        config = dataclasses.replace(config, pipeline=host)
        pipeline = TrainPipeline(config, splits.train, world, config.training.seed or 0)
        columns = pipeline.epoch(epoch).create_tuple_iterator(num_epochs=1, output_numpy=True)
        images, labels, *mixing = next(iter(columns))
    except RuntimeError:
        fault = splits.row_fault()
        if fault is not None:
            raise fault from None
        raise
    captions = [names[label] for label in labels]
    if mixing:
        images, captions = mixed(images, captions, mixing[0])
    return [Tile(pixels, caption) for pixels, caption in zip(seen(images, config), captions)]


def mixed(images: np.ndarray, captions: list[str], mixing: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Mixed as the training step mixes them, with the share of each label."""
    import mindspore as ms

    from src.data.mixing import SHARE
    from src.train.mixing import mix_images

    ms.set_device("CPU")
    shares = mixing[:, SHARE]
    told = [
        f"{share:.0%} {own}\n{1 - share:.0%} {other}"
        for share, own, other in zip(shares, captions, reversed(captions))
    ]
    return mix_images(ms.Tensor(images), ms.Tensor(mixing)).asnumpy(), told


def seen(images: np.ndarray, config: Config) -> np.ndarray:
    """Network input (batch, 3, height, width) -> uint8 (batch, height, width, 3), normalisation undone."""
    pixels = images.transpose(0, 2, 3, 1) * config.data.rgb_std + config.data.rgb_mean
    return np.rint(pixels).clip(0, 255).astype(np.uint8)


def sheet(tiles: Sequence[Tile]) -> Image.Image:
    """The tiles in rows, small images enlarged by a whole number so that every pixel can be seen."""
    height, width = tiles[0].pixels.shape[:2]
    factor = max(1, -(-SMALLEST_TILE // min(height, width)))
    height, width = height * factor, width * factor
    below = TEXT_HEIGHT * max(len(tile.caption.splitlines()) for tile in tiles)
    columns = max(1, round((len(tiles) * (height + below) / width) ** 0.5))
    rows = -(-len(tiles) // columns)
    size = columns * (width + MARGIN) + MARGIN, rows * (height + below + MARGIN) + MARGIN
    paper = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(paper)
    for k, tile in enumerate(tiles):
        left = MARGIN + k % columns * (width + MARGIN)
        top = MARGIN + k // columns * (height + below + MARGIN)
        picture = Image.fromarray(tile.pixels).resize((width, height), Image.Resampling.NEAREST)
        paper.paste(picture, (left, top))
        for row, line in enumerate(tile.caption.splitlines()):
            place = left, top + height + 1 + row * TEXT_HEIGHT
            draw.text(place, shortened(line, width, draw), fill=INK, font=FONT)
    return paper


def shortened(text: str, width: int, draw: ImageDraw.ImageDraw) -> str:
    """The text, or as much of its beginning as fits."""
    text = text.encode("latin-1", "replace").decode("latin-1")  # all that the built-in font may have
    if draw.textlength(text, font=FONT) <= width:
        return text
    while text and draw.textlength(text + "...", font=FONT) > width:
        text = text[:-1]
    return text + "..."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
