"""What happens to training images."""

import math
from typing import Any, Dict

from src.config import Config
from src.option_checks.refusing import refuse

# Largest useful value of what is 0 when it is off.
AMOUNTS = {
    "max-random-rotate-angle": 180.0,
    "max-random-shear-ratio": math.inf,
    "max-random-h": 90.0,  # to either side: the whole circle
    "max-random-s": 255.0,
    "max-random-l": 255.0,
    "brightness": 1.0,
    "contrast": 1.0,
    "saturation": 1.0,
    "pca-noise": math.inf,
    "random-erasing": 1.0,
    "randaugment-magnitude": 10.0,
    "randaugment-magnitude-std": math.inf,
}
AREA_OPTIONS = ("min-random-area", "max-random-area", "min-random-aspect-ratio", "max-random-aspect-ratio")
CROP_OPTIONS = ("random-crop", "min-crop-size", "max-crop-size", "min-random-scale", "max-random-scale")
RANDAUGMENT_OPTIONS = ("randaugment-magnitude", "randaugment-magnitude-std", "randaugment-ops")


def amounts(config: Config) -> None:
    """Ranges of single options."""
    given = config.flat()
    for name, largest in AMOUNTS.items():
        value: Any = given[name]
        fits = 0 <= value <= largest and math.isfinite(value)
        told = "0 or more" if largest == math.inf else f"in [0, {largest:g}]"
        refuse(not fits, f"--{name} is {value}; it must be {told}")
    a = config.augmentation
    refuse(a.randaugment_ops < 1, f"--randaugment-ops is {a.randaugment_ops}; it must be at least 1")


def random_areas(config: Config) -> None:
    """Random resized crops."""
    a = config.augmentation
    refuse(
        not 0 < a.min_random_area <= a.max_random_area <= 1,
        f"--min-random-area {a.min_random_area} and --max-random-area {a.max_random_area}: "
        "0 < min <= max <= 1 must hold",
    )
    refuse(
        not 0 < a.min_random_aspect_ratio <= a.max_random_aspect_ratio < math.inf,
        f"--min-random-aspect-ratio {a.min_random_aspect_ratio} and --max-random-aspect-ratio "
        f"{a.max_random_aspect_ratio}: 0 < min <= max must hold",
    )
    refuse(
        not a.random_resized_crop and not config.pipeline.fuse_decoder,
        "--no-fuse-decoder has no effect without --random-resized-crop",
    )
    refuse(
        bool(a.max_random_rotate_angle or a.max_random_shear_ratio) and not config.pipeline.fuse_decoder,
        "--no-fuse-decoder has no effect with rotation or shear, which need the whole image decoded anyway",
    )


def erasing(config: Config) -> None:
    """Random erasing."""
    refuse(
        config.augmentation.random_erasing > 0 and config.pipeline.normalize_on_device,
        "--random-erasing sets normalised pixels to 0; leave out --normalize-on-device",
    )


def without_effect(config: Config) -> None:
    """Options that only another option makes count."""
    a, given, default = config.augmentation, config.flat(), Config().flat()
    changed: Dict[str, bool] = {name: given[name] != value for name, value in default.items()}
    for name in AREA_OPTIONS:
        refuse(
            changed[name] and not a.random_resized_crop,
            f"--{name} has no effect with --no-random-resized-crop",
        )
    for name in CROP_OPTIONS:
        refuse(
            changed[name] and a.random_resized_crop,
            f"--{name} has no effect with --random-resized-crop, which is on; add --no-random-resized-crop",
        )
    for name in RANDAUGMENT_OPTIONS:
        refuse(
            changed[name] and a.auto_augment != "randaugment",
            f"--{name} has no effect with --auto-augment {a.auto_augment}; it belongs to randaugment",
        )


def crops(config: Config) -> None:
    """Crops of a fixed size, or of a random one: they must fit into the resized image."""
    a = config.augmentation
    low, high = a.min_random_scale, a.max_random_scale
    refuse(
        not 0 < low <= high < math.inf,
        f"--min-random-scale {low:g} and --max-random-scale {high:g}: 0 < min <= max must hold",
    )
    small, large = a.min_crop_size, a.max_crop_size
    refuse(
        (small, large) != (0, 0) and not 0 < small <= large,
        f"--min-crop-size {small} and --max-crop-size {large}: 0 < min <= max must hold; give both, or none",
    )
    if a.random_resized_crop:
        return
    sizes = {config.train_size(epoch) for epoch in range(config.training.num_epochs)}
    for size in sizes:
        least, needed = round(config.train_resize(size) * low), large or max(size)
        refuse(
            least < needed,
            f"a crop of {needed} pixels does not fit into a shorter side of {least}: lower --max-crop-size, "
            "or raise --data-val-resize or --min-random-scale",
        )
