"""Ranges of single options."""

import math
from typing import Any, Dict

from src.config import Config
from src.option_checks.refusing import refuse


def numbers(config: Config) -> None:
    """Ranges of single options."""
    options: Dict[str, Any] = config.flat()
    for name in ("batch-size", "num-epochs", "disp-batches", "prefetch-queue", "accumulation",
                 "max-nonfinite-steps"):  # fmt: skip
        refuse(options[name] < 1, f"--{name} is {options[name]}; it must be at least 1")
    optional = ("run-epochs", "benchmark-iters", "num-examples", "data-threads", "data-validation-threads",
                "num-classes", "data-val-resize", "save-every-steps", "keep")  # fmt: skip
    for name in optional:
        value = options[name]
        refuse(value is not None and value < 1, f"--{name} is {value}; it must be at least 1")
    for name in ("lr", "wd", "warmup-epochs", "grad-clip"):
        refuse(not 0 <= options[name] < math.inf, f"--{name} is {options[name]}; it must be 0 or more")
    for name in ("mom", "label-smoothing", "batchnorm-mom", "adam-beta1", "adam-beta2", "ema"):
        refuse(not 0 <= options[name] < 1, f"--{name} is {options[name]}; it must be in [0, 1)")
    for name in ("batchnorm-eps", "adam-eps", "trust-coefficient", "loss-scale"):
        value = options[name]
        fits = value in (None, "dynamic") or 0 < value < math.inf
        refuse(not fits, f"--{name} is {value}; it must be > 0")
    refuse(options["save-frequency"] < -1, "--save-frequency is -1, 0 or a number of epochs")
    seed = options["seed"]
    refuse(seed is not None and not 0 <= seed < 2**32, f"--seed is {seed}; it must be in 0..{2**32 - 1}")
    refuse(any(std <= 0 for std in options["rgb-std"]), "--rgb-std: every value must be > 0")
