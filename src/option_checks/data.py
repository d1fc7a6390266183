"""Data, the form of images, and augmentation."""

from src.config import Config
from src.option_checks.refusing import refuse


def image(config: Config) -> None:
    """The form of an image."""
    channels, height, width = config.data.image_shape
    refuse(channels != 3, f"--image-shape starts with {channels}; images have 3 channels")
    refuse(min(height, width) < 8, f"--image-shape {height}x{width} is too small; at least 8x8")
    refuse(
        config.val_resize < max(height, width),
        f"--data-val-resize {config.val_resize} is smaller than the image, {height}x{width}",
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


def augmentation(config: Config) -> None:
    """What happens to training images."""
    a = config.augmentation
    refuse(
        not 0 < a.min_random_area <= a.max_random_area <= 1,
        f"--min-random-area {a.min_random_area} and --max-random-area {a.max_random_area}: "
        "0 < min <= max <= 1 must hold",
    )
    refuse(
        not 0 < a.min_random_aspect_ratio <= a.max_random_aspect_ratio,
        f"--min-random-aspect-ratio {a.min_random_aspect_ratio} and --max-random-aspect-ratio "
        f"{a.max_random_aspect_ratio}: 0 < min <= max must hold",
    )
    refuse(
        not a.random_resized_crop and not config.pipeline.fuse_decoder,
        "--no-fuse-decoder has no effect without --random-resized-crop",
    )
