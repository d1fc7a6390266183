"""Mixup, cutmix, and the loss of mixed targets."""

import math

from src.config import Config
from src.option_checks.refusing import refuse


def mixing(config: Config) -> None:
    """Mixing images with each other."""
    t = config.training
    for name, alpha in (("mixup", t.mixup), ("cutmix", t.cutmix)):
        refuse(
            not 0 <= alpha < math.inf,
            f"--{name} is {alpha}; it is the alpha of a Beta distribution, at least 0",
        )
        refuse(
            alpha > 0 and t.batch_size == 1,
            f"--{name} mixes the images of a batch with each other; --batch-size 1 leaves none to mix with",
        )


def loss(config: Config) -> None:
    """The training loss."""
    t = config.training
    refuse(
        t.bce_threshold is not None and t.loss != "bce",
        f"--bce-threshold has no effect with --loss {t.loss}; add --loss bce",
    )
    refuse(
        t.bce_threshold == 0 and t.label_smoothing > 0,
        "--bce-threshold 0 makes every class a right answer, as --label-smoothing "
        f"{t.label_smoothing:g} gives each a share; add --label-smoothing 0",
    )
    refuse(
        t.bce_threshold is not None and not 0 <= t.bce_threshold < 1,
        f"--bce-threshold is {t.bce_threshold}; it must be in [0, 1)",
    )
