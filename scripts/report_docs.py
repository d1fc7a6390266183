"""docs/report.md, made from the JSON Schema of report.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "src" / "report" / "report.schema.json"
TARGET = ROOT / "docs" / "report.md"
HEAD = """# What a run reports

Made by `make docs` from `src/report/report.schema.json`; do not edit. `report.json` is written anew, in one
step, after every epoch and at every kind of end. The file is whole at every moment. How to answer questions
with it: [reading the report](reading-a-report.md).

`report.html`, beside it, shows it to a person: one file without anything from the network, written at the end
of a run, and again by `python -m src.report.html RUN`. It draws the curves of `report.json` and
`dllogger_log.log`, and the answers of the last validation from `report.validation.json`: right answers by
class, the pairs most often confused, and the most confident mistakes with their pictures.
"""


def render() -> str:
    """The whole page."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    lines = [HEAD, schema["description"], "", "## Keys", "", *_table("key", schema)]
    for name, part in schema["properties"].items():
        inner = part if "properties" in part else part.get("items", {})
        if "properties" in inner:
            title = "metric" if name == "metrics" else "key"
            lines += [f"## `{name}`", "", f"{_sentence(part['description'])}", "", *_table(title, inner)]
    return "\n".join(lines)


def _table(title: str, schema: dict[str, Any]) -> list[str]:
    measured = any("x-unit" in part for part in schema["properties"].values())
    kind = "unit" if measured else "type"
    lines = [f"| {title} | {kind} | meaning |", "|---|---|---|"]
    for name, part in schema["properties"].items():
        told = part["x-unit"] if measured else _type(part)
        lines.append(f"| `{name}` | {told} | {part['description']} |")
    return [*lines, ""]


def _type(part: dict[str, Any]) -> str:
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    if "enum" in part:
        return ", ".join(f"`{word}`" for word in part["enum"])
    kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
    return " or ".join(kinds)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
