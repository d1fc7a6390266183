"""How numbers are written for people."""

from __future__ import annotations

import pytest

from src.report import wording


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.6, "1:00"), (3599.4, "59:59"), (3723, "1:02:03"), (360000, "100:00:00")],
)
def test_duration(seconds, text):
    assert wording.duration(seconds).strip() == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(26674.2, "26,674 img/s"), (99.94, "99.9 img/s"), (0.0, "0.0 img/s"), (float("nan"), "- img/s")],
)
def test_speed(value, text):
    assert wording.speed(value).strip() == text


def test_percent():
    assert [wording.percent(value) for value in (0.0, 0.76311, 1.0)] == ["  0.00 %", " 76.31 %", "100.00 %"]


@pytest.mark.parametrize("written", [wording.loss, wording.percent, wording.speed, wording.duration])
def test_an_unknown_number_is_a_dash_of_the_same_width(written):
    assert written(None).split()[0] == "-"
    assert len(written(None)) == len(written(1.0))


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (True, "on"), (1234567, "1234567"), (0.1 + 0.2, "0.3"), ((30, 60), "30, 60"), ("a", "a")],
)
def test_facts(value, text):
    assert wording.as_text(value) == text


def test_epochs_are_counted_from_one_for_people():
    assert wording.epoch_label(0, 90) == "epoch  1/90"
    assert wording.epoch_label(89, 90) == "epoch 90/90"
