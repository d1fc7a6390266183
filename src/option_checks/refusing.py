"""What all rules use."""

from typing import Iterable

from src.errors import OptionError


def refuse(condition: bool, sentence: str) -> None:
    """Raise OptionError with `sentence` if the condition holds."""
    if condition:
        raise OptionError(sentence)


def listed(numbers: Iterable[float]) -> str:
    """Numbers as a person types them."""
    return ",".join(f"{number:g}" for number in numbers)
