"""Combinations of options that cannot work, each refused in one sentence before anything is started."""

from typing import Callable, List

from src.config import Config
from src.option_checks import augmentation, data, launching, mixing, model, numbers, output, training


def check(config: Config) -> None:
    """Raises OptionError for the first combination that cannot work."""
    for rule in RULES:
        rule(config)


RULES: List[Callable[[Config], None]] = [
    numbers.numbers, training.schedule, training.optimisation, training.precision, mixing.mixing, mixing.loss,
    model.network, model.pretrained, data.image, data.backend, augmentation.amounts,
    augmentation.random_areas, augmentation.erasing, augmentation.without_effect, augmentation.crops,
    training.mode, output.files, output.saving, launching.processes,
]  # fmt: skip
