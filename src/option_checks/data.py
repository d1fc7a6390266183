"""Data, the form of images, and augmentation."""

import re

from src.config import Config
from src.option_checks.refusing import refuse

SMALLEST = 8  # pixels


def image(config: Config) -> None:
    """The form of an image."""
    channels, height, width = config.data.image_shape
    refuse(channels != 3, f"--image-shape starts with {channels}; images have 3 channels")
    refuse(min(height, width) < SMALLEST, f"--image-shape {height}x{width} is too small; at least 8x8")
    size_steps(config)
    side = config.data.val_image_size
    refuse(
        side is not None and side < SMALLEST, f"--val-image-size is {side}; it must be at least {SMALLEST}"
    )
    height, width = config.val_size
    refuse(
        config.val_resize < max(height, width),
        f"--data-val-resize {config.val_resize} is smaller than the image, {height}x{width}",
    )


def size_steps(config: Config) -> None:
    """The sizes of progressive resizing."""
    steps = config.data.image_size_steps
    for step in steps:
        refuse(
            re.fullmatch(r"[0-9]+@[0-9]+", step) is None,
            f"--image-size-steps {step}: SIZE@EPOCH is expected, for example 192@71",
        )
    sizes = [int(step.split("@")[0]) for step in steps]
    epochs = [int(step.split("@")[1]) for step in steps]
    shown, last = " ".join(steps), config.training.num_epochs - 1
    refuse(any(size < SMALLEST for size in sizes), f"--image-size-steps {shown}: at least {SMALLEST} pixels")
    refuse(epochs != sorted(set(epochs)), f"--image-size-steps {shown}: the epochs must grow")
    # Where a checkpoint is only used, its steps come with it, and --num-epochs need not be that of its run.
    refuse(
        config.trains and any(not 0 < epoch <= last for epoch in epochs),
        f"--image-size-steps {shown}: each must lie between epoch 1 and {last}, the last of --num-epochs "
        f"{last + 1}; the size of epoch 0 is --image-shape",
    )


def backend(config: Config) -> None:
    """Where rows come from."""
    data, wanted = config.data, config.data.data_backend == "generator"
    refuse(
        wanted and data.data_source is None,
        "--data-backend generator needs --data-source FILE.py; docs/own-data.md shows one",
    )
    refuse(
        not wanted and data.data_source is not None,
        f"--data-source has no effect with --data-backend {data.data_backend}; add --data-backend generator",
    )
    refuse(
        data.on_bad_image != "error" and data.data_backend != "imagefolder",
        f"--on-bad-image {data.on_bad_image} has no effect with --data-backend {data.data_backend}; it "
        "belongs to imagefolder (records were checked when they were made)",
    )
