"""Options of what is saved that cannot work together."""

from __future__ import annotations

import pytest

from src import cli
from src.errors import OptionError


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--keep 2", "--save-frequency"),
        ("--keep 2 --save-frequency 0", "--save-frequency"),
        ("--keep 0 --save-frequency 1", "--keep is 0"),
        ("--save-every-steps 0", "--save-every-steps is 0"),
        ("--save-every-steps 5 --save-frequency 0", "--save-every-steps 5 contradicts"),
        ("--profile -1", "--profile is -1"),
        ("--profile 3 --test-io", "--mode train_val --test-io"),
        ("--tensorboard --mode val --load x", "--tensorboard is about training"),
        ("--report run.html", "call it run.json"),
        ("--save-every-minutes 0", "--save-every-minutes is 0"),
        ("--save-every-minutes nan", "--save-every-minutes is nan"),
        ("--save-every-minutes 5 --save-frequency 0", "--save-every-minutes 5.0 contradicts"),
    ],
)
def test_what_cannot_be_saved_so_is_refused(words, told):
    with pytest.raises(OptionError, match=told):
        cli.parse(words.split(), "test")


def test_what_can_be_saved_so_is_not():
    config = cli.parse(
        ["--save-frequency", "2", "--keep", "1", "--save-every-steps", "7", "--save-every-minutes", "0.5"],
        "t",
    )
    assert (config.output.keep, config.output.save_every_steps, config.output.save_every_minutes) == (
        1,
        7,
        0.5,
    )
