"""The part of the page that shows what validation answered: classes, confusions, confident mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from src.report.webpage import Number, table


def sections(details: Mapping[str, Any]) -> list[str]:
    """HTML of the document that evaluate/details.py makes."""
    classes = details["classes"]
    names = [label["name"] for label in classes]
    rows = [
        (
            Number(index, str(index)),
            label["name"],
            label["wnid"],
            Number(label["images"], str(label["images"])),
            Number(_share(label), f"{_share(label):.1%}" if label["images"] else "-"),
        )
        for index, label in enumerate(classes)
    ]
    rows.sort(key=lambda row: row[-1].value)
    found = [
        "<h2>Accuracy by class</h2>",
        f'<p class="soft">top-1 of {details["num_images"]} validation images after epoch'
        f" {details['epoch'] + 1}; a click on a heading sorts</p>",
        table(["index", "class", "id", "images", "top-1"], rows, sortable=True),
    ]
    if details["confused"]:
        pairs = [
            (
                names[pair["label"]],
                _answer(names, pair["predicted"]),
                Number(pair["images"], str(pair["images"])),
            )
            for pair in details["confused"]
        ]
        found += ["<h2>Most confused</h2>", table(["class", "taken for", "images"], pairs, sortable=True)]
    if details["mistakes"]:
        figures = "".join(_figure(mistake, names) for mistake in details["mistakes"])
        found += ["<h2>Most confident mistakes</h2>", f'<div class="panel gallery">{figures}</div>']
    return found


def _share(label: Mapping[str, Any]) -> float:
    """Right answers over images; a class without images comes before all others."""
    return label["right"] / label["images"] if label["images"] else -1.0


def _answer(names: list[str], predicted: int) -> str:
    if predicted < 0:
        return "no number"
    return names[predicted] if predicted < len(names) else f"class {predicted}"


def _figure(mistake: Mapping[str, Any], names: list[str]) -> str:
    picture = '<div class="none"></div>'
    if mistake.get("thumbnail"):
        source = f"data:image/jpeg;base64,{escape(mistake['thumbnail'])}"
        picture = f'<img src="{source}" alt="row {mistake["row"]}" loading="lazy">'
    told = f"{_answer(names, mistake['predicted'])}, {mistake['confidence']:.1%}"
    return (
        f"<figure>{picture}<figcaption><b>{escape(told)}</b><br>is {escape(names[mistake['label']])}"
        f'<br><span class="soft">row {mistake["row"]}</span></figcaption></figure>'
    )
