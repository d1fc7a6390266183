"""One self-contained page: its parts as HTML, with every text escaped. What draws on it is in page/.

The curves are drawn by uPlot (MIT, page/uPlot.LICENSE): 51 kB stand in the page, where Plotly's library would
put 4.5 MB and Bokeh's 1 MB; it needs no package in Python, so that every run can have its page; and unlike
a picture from matplotlib, its curves can be read off, zoomed, and fit a phone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Optional

from src.report.strict import strict

PAGE = Path(__file__).parent / "page"
COLOURS = ("#2f6fde", "#d9730d", "#7a7f87", "#8f4bd1", "#0f8a9d", "#188a57", "#8a6d1a", "#b9bec5")
# Nothing may be fetched, and nothing run but what stands in the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Curve:
    """One line of a chart; None where there is no value."""

    label: str
    values: Sequence[Optional[float]]


def chart(title: str, x: str, xs: Sequence[float], curves: Iterable[Curve]) -> Optional[dict[str, Any]]:
    """A chart for page.js, of the curves that have a value; None if there is no such curve."""
    series = [
        {"label": curve.label, "values": list(curve.values)}
        for curve in curves
        if any(value is not None for value in curve.values)
    ]
    return {"title": title, "x": x, "xs": list(xs), "series": series} if series else None


def page(title: str, body: Iterable[str], charts: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The whole page. `charts`: id of an element of `body` -> the charts that are drawn into it."""
    # "<" would let a text end the script element that holds it.
    data = json.dumps(strict({"charts": charts}), allow_nan=False).replace("<", "\\u003c")
    style = "\n".join(_part(name) for name in ("uPlot.min.css", "page.css"))
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>",
            *body,
            f'</main>\n<script type="application/json" id="data">{data}</script>',
            f"<script>{_part('uPlot.iife.min.js')}</script>\n<script>{_part('page.js')}</script>",
            "</body>\n</html>\n",
        ]
    )


def cards(pairs: Mapping[str, str]) -> str:
    """Figures that are to be seen first: name -> value."""
    found = "".join(
        f'<div class="card"><b>{escape(v)}</b><span>{escape(k)}</span></div>' for k, v in pairs.items()
    )
    return f'<div class="cards">{found}</div>'


@dataclass(frozen=True)
class Number:
    """A cell to the right, sorted by its value."""

    value: float
    text: str


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], sortable: bool = False) -> str:
    """A table in a panel that scrolls by itself; a `Number` makes its column one of numbers."""
    rows = list(rows)
    numeric = [isinstance(cell, Number) for cell in rows[0]] if rows else [False] * len(heads)
    head = "".join(f"<th{' class=n' if n else ''}>{escape(h)}</th>" for h, n in zip(heads, numeric))
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    kind = ' class="sortable"' if sortable else ""
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="panel scroll"><table{kind}>{inner}</table></div>'


def bar(parts: Mapping[str, float]) -> str:
    """Shares of a whole as one bar, with a table of them below."""
    whole = sum(parts.values()) or 1.0
    shares = [(name, value, value / whole, colour) for (name, value), colour in zip(parts.items(), COLOURS)]
    strip = "".join(
        f'<i style="width:{100 * share:.3f}%;background:{colour}" title="{escape(name)} {share:.1%}"></i>'
        for name, _, share, colour in shares
    )
    rows = "".join(
        f'<tr><td><span class="swatch" style="background:{colour}"></span>{escape(name)}</td>'
        f'<td class="n">{value:,.1f} s</td><td class="n">{share:.1%}</td></tr>'
        for name, value, share, colour in shares
    )
    return f'<div class="panel"><div class="bar">{strip}</div><table><tbody>{rows}</tbody></table></div>'


def _cell(cell: Any) -> str:
    if isinstance(cell, Number):
        return f'<td class="n" data-value="{cell.value!r}">{escape(cell.text)}</td>'
    return f"<td>{escape(str(cell))}</td>"


def _part(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
