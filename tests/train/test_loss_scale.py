"""The loss scale's rule, and which options ask for which."""

from __future__ import annotations

import pytest

from src.train import loss_scale as rules


def adjusted(scale, *finite: bool) -> list[float]:
    import mindspore as ms

    values = []
    for ok in finite:
        scale(ms.Tensor(ok))
        values.append(float(scale.scale.asnumpy()))
    return values


def test_it_halves_at_an_overflow_and_never_below_1(graph_mode):
    scale = rules.LossScale(4.0, dynamic=True)
    assert adjusted(scale, False, False, False, False) == [2, 1, 1, 1]


def test_it_says_when_it_could_be_lowered_no_further(graph_mode):
    import mindspore as ms

    scale = rules.LossScale(2.0, dynamic=True)
    assert [bool(scale(ms.Tensor(False)).asnumpy()) for _ in range(3)] == [False, True, True]


def test_it_doubles_after_enough_good_updates_in_a_row_up_to_its_limit(graph_mode, monkeypatch):
    monkeypatch.setattr(rules, "GROWTH_UPDATES", 3)
    monkeypatch.setattr(rules, "MAX_SCALE", 16.0)
    scale = rules.LossScale(8.0, dynamic=True)
    assert adjusted(scale, True, True, False, True, True, True) == [8, 8, 4, 4, 4, 8]
    assert adjusted(scale, *[True] * 6) == [8, 8, 16, 16, 16, 16]


def test_a_fixed_scale_stays(graph_mode):
    assert adjusted(rules.LossScale(8.0, dynamic=False), False, True) == [8, 8]


@pytest.mark.parametrize(
    ("asked", "dtype", "wanted"),
    [
        (None, "float32", None),
        (None, "bfloat16", None),
        (None, "float16", (65536.0, True)),
        ("dynamic", "float16", (65536.0, True)),
        (128.0, "float16", (128.0, False)),
    ],
)
def test_only_float16_is_scaled(graph_mode, asked, dtype, wanted):
    found = rules.loss_scale(asked, dtype)
    assert (found and (float(found.scale.asnumpy()), found.dynamic)) == wanted
