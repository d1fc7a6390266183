"""Combinations of options that cannot work, each refused in one sentence before anything is started."""

from typing import Callable, List

from src.config import Config
from src.option_checks import data, numbers, output, training


def check(config: Config) -> None:
    """Raises OptionError for the first combination that cannot work."""
    for rule in RULES:
        rule(config)


RULES: List[Callable[[Config], None]] = [
    numbers.numbers, training.schedule, data.image, data.backend, data.augmentation, training.mode,
    output.files,
]  # fmt: skip
