"""How numbers are written for people.  ASCII only: not every terminal and log viewer knows more."""

from __future__ import annotations

import math
from typing import Any, Optional

_NONE = "-"


def as_text(value: Any) -> str:
    """A fact for people.  Whole numbers stay ungrouped: a seed is there to be copied."""
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(as_text, value))
    return str(value)


def epoch_label(epoch: int, num_epochs: int) -> str:
    """`epoch  3/90`: the epoch, counted from 0, is shown from 1."""
    return f"epoch {epoch + 1:>{len(str(num_epochs))}}/{num_epochs}"


def loss(value: Optional[float]) -> str:
    return _NONE.rjust(6) if value is None else f"{value:6.4f}"


def percent(fraction: Optional[float]) -> str:
    return f"{_NONE:>6}  " if fraction is None else f"{100 * fraction:6.2f} %"


def speed(images_per_s: Optional[float]) -> str:
    """Images per second, with the digits that can be meant."""
    if images_per_s is None or not math.isfinite(images_per_s):
        return f"{_NONE:>6} img/s"
    return f"{images_per_s:>6,.{0 if images_per_s >= 100 else 1}f} img/s"


def duration(seconds: Optional[float]) -> str:
    """`1:02:03`, or `2:03` below an hour."""
    if seconds is None or not math.isfinite(seconds):
        return f"{_NONE:>7}"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:>4}:{rest:02}"
