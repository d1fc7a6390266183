#!/usr/bin/env python3
"""What each kind of resizing does to the pixels of validation, and what each augmentation costs.

    python -m benchmarks.preprocessing FOLDER [--images 300] [--rounds 3]

FOLDER holds class folders of photographs. Pixels are compared with Pillow's antialiased resizing, as levels
of 0..255 over the centre crop. Costs are processor time, of all threads, for one image through the suite's
own operators (decoding included; 224 px, two threads): other work on the machine matters less to it than to
wall time. Prints Markdown.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measuring import machine, table
from src.config import Augmentation, Config, Data
from src.platform import environment

KINDS = ("bilinear", "bicubic", "area", "nearest", "pillow-bicubic", "pillow-bilinear")
BATCH = 50
TRAINING = {
    "the default: random resized crop, mirror": {},
    "`--no-fuse-decoder`": None,
    "`--interpolation pillow-bicubic`": "pillow-bicubic",
    "`--interpolation area`": "area",
    "`--max-random-rotate-angle 10 --max-random-shear-ratio 0.1`": {
        "max_random_rotate_angle": 10.0,
        "max_random_shear_ratio": 0.1,
    },
    "`--brightness 0.4 --contrast 0.4 --saturation 0.4`": {
        "brightness": 0.4,
        "contrast": 0.4,
        "saturation": 0.4,
    },
    "`--max-random-h 18`": {"max_random_h": 18.0},
    "`--max-random-s 40 --max-random-l 40`": {"max_random_s": 40.0, "max_random_l": 40.0},
    "`--pca-noise 0.1`": {"pca_noise": 0.1},
    "`--auto-augment randaugment`": {"auto_augment": "randaugment"},
    "`--auto-augment trivialaugment`": {"auto_augment": "trivialaugment"},
    "`--auto-augment autoaugment`": {"auto_augment": "autoaugment"},
    "`--random-erasing 0.25`": {"random_erasing": 0.25},
}


def centre(decoded: np.ndarray, kind: Image.Resampling) -> np.ndarray:
    """Pillow's answer: shorter side 256, centre 224."""
    height, width = decoded.shape[:2]
    size = width * 256 // min(height, width), height * 256 // min(height, width)
    left, top = (size[0] - 224) // 2, (size[1] - 224) // 2
    resized = Image.fromarray(decoded).resize(size, kind)
    return np.asarray(resized.crop((left, top, left + 224, top + 224)))


def differences(files: list[np.ndarray]) -> list[list[object]]:
    """For each kind: mean and largest difference to Pillow's bilinear and bicubic."""
    from mindspore.dataset import vision

    from src.data.transforms import val_ops

    found: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for file in files:
        decoded = vision.Decode()(file)
        peers = [
            centre(decoded, r).astype(int) for r in (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)
        ]
        for kind in KINDS:
            out = decoded
            for op in val_ops(Config(data=Data(val_interpolation=kind)), encoded=False)[:2]:
                out = op(out)
            apart = [np.abs(out - peer) for peer in peers]
            found[kind].append([value for one in apart for value in (one.mean(), one.max())])
    rows: list[list[object]] = []
    for kind, values in found.items():
        all_values = np.array(values)
        mean, most = all_values.mean(0), all_values.max(0)
        rows.append([f"`{kind}`", f"{mean[0]:.2f}", int(most[1]), f"{mean[2]:.2f}", int(most[3])])
    return rows


def pipeline_ms(config: Config, source: object, train: bool) -> float:
    """Processor milliseconds for an image, of an epoch."""
    import mindspore.dataset as ds

    from src.data import transforms

    size = config.train_size(0)
    ops = transforms.train_ops(config, True, size, 1) if train else transforms.val_ops(config, True)
    ds.config.set_seed(1)
    dataset = source.open(np.arange(len(source)), 1).map(ops, "image", num_parallel_workers=2).batch(BATCH)
    begin = time.process_time()
    num_images = sum(
        len(labels) for _, labels in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    )
    return 1e3 * (time.process_time() - begin) / num_images


def training_config(change: object) -> Config:
    config = Config()
    if change is None:
        return dataclasses.replace(config, pipeline=dataclasses.replace(config.pipeline, fuse_decoder=False))
    if isinstance(change, str):
        return Config(data=Data(interpolation=change))
    return Config(augmentation=Augmentation(**change))


def costs(source: object, rounds: int) -> tuple[list[list[object]], list[list[object]]]:
    """Medians over the rounds, in which all take their turns: validation's kinds, training's options."""
    kinds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    options: dict[str, list[float]] = {name: [] for name in TRAINING}
    for _ in range(rounds):
        for kind, times in kinds.items():
            times.append(pipeline_ms(Config(data=Data(val_interpolation=kind)), source, False))
        for name, times in options.items():
            times.append(pipeline_ms(training_config(TRAINING[name]), source, True))
    base = statistics.median(options[next(iter(TRAINING))])

    def shown(name: str, times: list[float], more: bool) -> list[object]:
        median = statistics.median(times)
        row = [name, f"{median:.2f} ({min(times):.2f} to {max(times):.2f})"]
        return [*row, f"{median - base:+.2f}"] if more else row

    return (
        [shown(f"`{kind}`", times, False) for kind, times in kinds.items()],
        [shown(name, times, True) for name, times in options.items()],
    )


def folder_check(folder: Path, rounds: int) -> list[float]:
    """Processor milliseconds for an image of a folder's first epoch (files are checked), and its second."""
    from src.data.sources import ImageFolderSource

    first, second = [], []
    for _ in range(rounds):
        source = ImageFolderSource.scan(folder)
        first.append(pipeline_ms(Config(), source, True))
        second.append(pipeline_ms(Config(), source, True))
    return [statistics.median(first), statistics.median(second)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    environment.prepare("CPU")
    from src.data.sources import ImageFolderSource

    found = ImageFolderSource.scan(args.folder)
    some = found.files[:: max(1, len(found) // args.images)][: args.images]
    source = ImageFolderSource(args.folder, found.classes, some)
    files = [source.row(i)[0] for i in range(len(source))]  # and so every file is checked before any timing
    print(f"{len(source)} photographs, {args.rounds} rounds; {machine()}\n")
    against = [
        f"{what}, {peer}" for peer in ("Pillow bilinear", "Pillow bicubic") for what in ("mean", "largest")
    ]
    print(table(["kind", *against], differences(files)), "\n")
    validation, training = costs(source, args.rounds)
    print(table(["validation", "ms of a core for an image"], validation), "\n")
    print(table(["training", "ms of a core for an image", "more than the default"], training), "\n")
    first, second = folder_check(args.folder, args.rounds)
    print(
        f"A folder, checked as it is read: {first:.2f} ms for an image in the first epoch, "
        f"{second:.2f} in the next."
    )


if __name__ == "__main__":
    main()
