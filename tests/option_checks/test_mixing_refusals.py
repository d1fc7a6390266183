"""Mixing and losses that cannot work are refused in a sentence that names the option."""

from __future__ import annotations

import pytest

from src import cli
from src.config import Training
from src.errors import OptionError


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--mixup -0.1", "--mixup is -0.1"),
        ("--mixup nan", "--mixup is nan"),
        ("--cutmix inf", "--cutmix is inf"),
        ("--mixup 0.2 -b 1", "--batch-size 1 leaves none"),
        ("--cutmix 1 -b 1", "--batch-size 1 leaves none"),
        ("--bce-threshold 0.2", "--bce-threshold has no effect with --loss ce"),
        ("--loss bce --bce-threshold 1", "--bce-threshold is 1.0"),
        ("--loss bce --bce-threshold 0", "add --label-smoothing 0"),
        ("--loss hinge", "hinge"),
    ],
)
def test_what_cannot_work_is_refused(words, told):
    with pytest.raises(OptionError, match=told):
        cli.parse(words.split(), "train.py")


@pytest.mark.parametrize(
    "words",
    [
        "--mixup 0 --cutmix 0 -b 1",
        "--loss bce --bce-threshold 0 --label-smoothing 0",
        "--mixup 0.2 --cutmix 1",
    ],
)
def test_what_can_work_is_not(words):
    cli.parse(words.split(), "train.py")


def test_right_answers_are_counted_only_where_there_are_any():
    assert Training().counts_right
    assert not Training(metrics=False).counts_right
    assert not Training(mixup=0.2).counts_right
    assert not Training(cutmix=1.0).counts_right
