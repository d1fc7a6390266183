"""What moves while a run works: the progress of an epoch, and waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from src.report import wording
from src.report.terminal import Bar, Spinner

if TYPE_CHECKING:
    from src.report.console import Console

_REDRAW_S = 0.2
_WIDE_TERMINAL = 100  # columns; below, the learning rate has no room beside the bar


class Progress:
    """The progress of one epoch: a bar on a terminal, elsewhere one line for each `line`.

    A number that is not given keeps its last value, so `step` can be called alone at every step.
    """

    def __init__(self, console: Console, label: str, steps: int):
        self._console = console
        self._label = label
        self._steps = steps
        self._numbers: dict[str, Optional[float]] = {}
        self._bar: Optional[Bar] = None
        self._first: Optional[tuple[int, float]] = None  # step and time
        self._drawn = float("-inf")

    @property
    def shown(self) -> bool:
        return self._bar is not None

    def step(
        self,
        step: int,
        *,
        loss: Optional[float] = None,
        ips: Optional[float] = None,
        lr: Optional[float] = None,
    ) -> None:
        """`step` of the epoch's steps are done.  Cheap: the bar is redrawn five times a second at most."""
        given = {"loss": loss, "ips": ips, "lr": lr}
        self._numbers.update({name: value for name, value in given.items() if value is not None})
        now = self._console.clock()
        if self._first is None:
            self._first = (step, now)
        if self._console.rich is None:
            return
        if now - self._drawn >= _REDRAW_S or step >= self._steps:
            self._drawn = now
            self._draw(step, now)

    def line(
        self,
        step: int,
        *,
        loss: Optional[float] = None,
        ips: Optional[float] = None,
        lr: Optional[float] = None,
    ) -> None:
        """The same as `step`, for every so many steps: a line where there is no bar, and in the log."""
        self.step(step, loss=loss, ips=ips, lr=lr)
        done = f"step {step:>{len(str(self._steps))}}/{self._steps}"
        text = "  ".join([self._label, done, *self._words(with_lr=True), *self._left(step)])
        if self._console.rich is None:
            self._console.say(text)
        else:
            self._console.copy_to_log(text)

    def close(self) -> None:
        if self._bar is not None:
            bar, self._bar = self._bar, None
            bar.close()

    def _draw(self, step: int, now: float) -> None:
        if self._bar is None:
            self._console.end_waiting()
            self._bar = Bar(self._console.rich, self._label, self._steps)
        words = self._words(with_lr=self._console.rich.width >= _WIDE_TERMINAL)
        self._bar.update(step, "  ".join([*words, *self._left(step)]))

    def _words(self, with_lr: bool) -> list[str]:
        numbers = self._numbers
        words = []
        if "loss" in numbers:
            words.append(f"loss {wording.loss(numbers['loss'])}")
        if "ips" in numbers:
            words.append(wording.speed(numbers["ips"]))
        if "lr" in numbers and with_lr:
            words.append(f"lr {numbers['lr']:.5f}")
        return words

    def _left(self, step: int) -> list[str]:
        """The time left in this epoch.  It is judged from the second step on: the first one compiles."""
        if self._first is None or step <= self._first[0]:
            return []
        first_step, first_time = self._first
        step_s = (self._console.clock() - first_time) / (step - first_step)
        return [f"left {wording.duration(step_s * max(0, self._steps - step)).strip()}"]


class Waiting:
    """Something takes long: a spinner on a terminal.  Ends with `close`, or as a `with` block."""

    def __init__(self, rich: object, text: str):
        self._spinner = None if rich is None else Spinner(rich, text)

    def close(self) -> None:
        if self._spinner is not None:
            spinner, self._spinner = self._spinner, None
            spinner.close()

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
