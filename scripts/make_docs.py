#!/usr/bin/env python3
"""Write docs/options.md and docs/report.md from what they describe: `python -m scripts.make_docs`."""

from __future__ import annotations

import ast
import dataclasses
import typing
from pathlib import Path

from scripts import report_docs
from src import config as options
from src.config import RunnerConfig
from src.config.benchmark import BenchmarkConfig

TARGET = Path(__file__).resolve().parent.parent / "docs" / "options.md"
HEAD = """# Options

Made by `make docs` from `src/config/`; do not edit. `./runner --help` prints the same. Every option is
also a key of a recipe (`--config FILE.yaml`), without the dashes in front. Switches are turned off with
`--no-NAME` or `--NAME 0`; lists are separated by commas or spaces.
"""


def help_texts() -> dict[str, dict[str, str]]:
    """Class name -> field name ("" for the class itself) -> its help."""
    found: dict[str, dict[str, str]] = {}
    modules = sorted(Path(options.__file__).parent.glob("*.py"))
    for node in [node for module in modules for node in ast.parse(module.read_text(encoding="utf-8")).body]:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {"": ast.get_docstring(node) or ""}
            for field, text in zip(node.body, node.body[1:]):
                if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                    continue
                if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                    found[node.name][field.target.id] = " ".join(str(text.value.value).split())
    return found


def render() -> str:
    """The whole page."""
    texts, lines = help_texts(), [HEAD]
    sections = {**typing.get_type_hints(RunnerConfig), **typing.get_type_hints(BenchmarkConfig)}
    for name, section in sections.items():
        note = {"launch": " (runner only)", "benchmark": " (benchmark.py only)"}.get(name, "")
        lines += [f"## {section.__name__}{note}", "", texts[section.__name__][""], ""]
        lines += ["| option | default | meaning |", "|---|---|---|"]
        for field in dataclasses.fields(section):
            option = field.name.replace("_", "-")
            default = shown(field.default)
            lines.append(f"| `--{option}` | {default} | {texts[section.__name__][field.name]} |")
        lines.append("")
    return "\n".join(lines)


def shown(default: object) -> str:
    if default is None or default == ():
        return ""
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, tuple):
        return "`" + ",".join(map(str, default)) + "`"
    return f"`{default}`"


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    for target, page in ((TARGET, render()), (report_docs.TARGET, report_docs.render())):
        target.write_text(page, encoding="utf-8")
        print(f"wrote {target}")
