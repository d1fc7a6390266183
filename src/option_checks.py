"""Combinations of options that cannot work, each refused in one sentence before anything is started."""

import math
from typing import Any, Callable, Dict, Iterable, List

from src.config import Config
from src.errors import OptionError


def check(config: Config) -> None:
    """Raises OptionError for the first combination that cannot work."""
    for rule in _RULES:
        rule(config)


def _refuse(condition: bool, sentence: str) -> None:
    if condition:
        raise OptionError(sentence)


def _listed(numbers: Iterable[float]) -> str:
    return ",".join(f"{number:g}" for number in numbers)


def _numbers(config: Config) -> None:
    """Ranges of single options."""
    options: Dict[str, Any] = config.flat()
    for name in ("batch-size", "num-epochs", "disp-batches", "prefetch-queue"):
        _refuse(options[name] < 1, f"--{name} is {options[name]}; it must be at least 1")
    optional = ("run-epochs", "benchmark-iters", "num-examples", "data-threads", "data-validation-threads",
                "num-classes", "data-val-resize")  # fmt: skip
    for name in optional:
        value = options[name]
        _refuse(value is not None and value < 1, f"--{name} is {value}; it must be at least 1")
    for name in ("lr", "wd", "warmup-epochs"):
        _refuse(not 0 <= options[name] < math.inf, f"--{name} is {options[name]}; it must be 0 or more")
    for name in ("mom", "label-smoothing", "batchnorm-mom"):
        _refuse(not 0 <= options[name] < 1, f"--{name} is {options[name]}; it must be in [0, 1)")
    _refuse(
        not options["batchnorm-eps"] > 0, f"--batchnorm-eps is {options['batchnorm-eps']}; it must be > 0"
    )
    _refuse(options["save-frequency"] < -1, "--save-frequency is -1, 0 or a number of epochs")
    seed = options["seed"]
    _refuse(seed is not None and not 0 <= seed < 2**32, f"--seed is {seed}; it must be in 0..{2**32 - 1}")
    _refuse(any(std <= 0 for std in options["rgb-std"]), "--rgb-std: every value must be > 0")


def _schedule(config: Config) -> None:
    t = config.training
    _refuse(
        t.warmup_epochs >= t.num_epochs and t.warmup_epochs > 0,
        f"--warmup-epochs {t.warmup_epochs:g} leaves nothing of --num-epochs {t.num_epochs}; "
        "for a short run give a shorter warm-up, 0 for none",
    )
    _refuse(
        t.lr_schedule == "multistep" and not t.lr_steps,
        "--lr-schedule multistep needs --lr-steps, for example --lr-steps 30,60,80",
    )
    _refuse(
        t.lr_factor is not None and not t.lr_steps,
        "--lr-factor has no effect without --lr-steps",
    )
    _refuse(list(t.lr_steps) != sorted(set(t.lr_steps)), "--lr-steps must grow: " + _listed(t.lr_steps))
    start = t.warmup_epochs if t.lr_schedule == "cosine" else 0
    _refuse(
        any(not start < step < t.num_epochs for step in t.lr_steps),
        f"--lr-steps {_listed(t.lr_steps)}: each must lie between epoch {start:g} and {t.num_epochs}",
    )


def _image(config: Config) -> None:
    channels, height, width = config.data.image_shape
    _refuse(channels != 3, f"--image-shape starts with {channels}; images have 3 channels")
    _refuse(min(height, width) < 8, f"--image-shape {height}x{width} is too small; at least 8x8")
    _refuse(
        config.val_resize < max(height, width),
        f"--data-val-resize {config.val_resize} is smaller than the image, {height}x{width}",
    )


def _backend(config: Config) -> None:
    data, wanted = config.data, config.data.data_backend == "generator"
    _refuse(
        wanted and data.data_source is None,
        "--data-backend generator needs --data-source FILE.py; docs/own-data.md shows one",
    )
    _refuse(
        not wanted and data.data_source is not None,
        f"--data-source has no effect with --data-backend {data.data_backend}; add --data-backend generator",
    )


def _augmentation(config: Config) -> None:
    a = config.augmentation
    _refuse(
        not 0 < a.min_random_area <= a.max_random_area <= 1,
        f"--min-random-area {a.min_random_area} and --max-random-area {a.max_random_area}: "
        "0 < min <= max <= 1 must hold",
    )
    _refuse(
        not 0 < a.min_random_aspect_ratio <= a.max_random_aspect_ratio,
        f"--min-random-aspect-ratio {a.min_random_aspect_ratio} and --max-random-aspect-ratio "
        f"{a.max_random_aspect_ratio}: 0 < min <= max must hold",
    )
    _refuse(
        not a.random_resized_crop and not config.pipeline.fuse_decoder,
        "--no-fuse-decoder has no effect without --random-resized-crop",
    )


def _mode(config: Config) -> None:
    t, out = config.training, config.output
    _refuse(
        t.mode in ("val", "pred") and out.load is None and not t.test_io,
        f"--mode {t.mode} needs weights: --load CHECKPOINT",
    )
    _refuse(t.mode == "pred" and not config.data.data_pred, "--mode pred needs --data-pred FILE, DIR or GLOB")
    _refuse(
        bool(config.data.data_pred) and t.mode != "pred",
        f"--data-pred has no effect with --mode {t.mode}; add --mode pred",
    )
    _refuse(
        t.mode in ("val", "pred") and out.resume != "auto",
        f"--resume has no effect with --mode {t.mode}; use --load",
    )


def _files(config: Config) -> None:
    out = config.output
    _refuse(
        not out.model_prefix or "/" in out.model_prefix,
        f"--model-prefix {out.model_prefix!r} is a name, not a path; the folder is --workspace",
    )
    for name in ("log", "dllogger_log", "report"):
        value = getattr(out, name)
        _refuse(
            not value or "/" in value,
            f"--{name.replace('_', '-')} {value!r} is the name of a file in --workspace",
        )


_RULES: List[Callable[[Config], None]] = [
    _numbers, _schedule, _image, _backend, _augmentation, _mode, _files,
]  # fmt: skip
