"""The parts of a page."""

from __future__ import annotations

from src.report.webpage import Curve, Number, bar, chart, page, table
from tests.browser import opened
from tests.report.example_run import HOSTILE


def test_a_hostile_name_of_a_curve_stays_a_name(tmp_path):
    found = chart(HOSTILE, "epoch", [1, 2], [Curve(HOSTILE, [1.0, None])])
    file = tmp_path / "page.html"
    file.write_text(page(HOSTILE, ['<div id="a"></div>'], {"a": [found]}), encoding="utf-8")
    dom, complaints = opened(file)
    assert complaints == []
    assert 'data-drawn="yes"' in dom
    assert "<img src=" not in dom


def test_a_curve_without_a_value_is_none():
    assert chart("a", "x", [1], [Curve("b", [None])]) is None
    assert [s["label"] for s in chart("a", "x", [1], [Curve("b", [None]), Curve("c", [0.0])])["series"]] == [
        "c"
    ]


def test_numbers_stand_to_the_right_and_are_sorted_by_value():
    found = table(["a", "b"], [("x", Number(0.5, "50 %"))])
    assert "<th>a</th><th class=n>b</th>" in found
    assert '<td class="n" data-value="0.5">50 %</td>' in found


def test_the_shares_of_a_bar():
    assert "width:25.000%" in bar({"a": 1.0, "b": 3.0})
    assert "0.0%" in bar({"a": 0.0})
