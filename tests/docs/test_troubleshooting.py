"""The messages that docs quote in their tables "told | ..." are still those of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from src import errors
from tests.support import ROOT

HEAD = "| told |"
GAP = "..."  # in a quotation: what is filled in
PAGES = ["troubleshooting.md", "modelarts.md"]


def sentences() -> str:
    """Every string of the code, a line each: neighbours joined, and what is filled in written as `...`."""
    found = []
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]:
        module = ast.parse(path.read_text(encoding="utf-8"))
        names = constants(module)
        described = {id(doc) for node in ast.walk(module) for doc in descriptions(node)}
        for node in ast.walk(module):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(_text(part, names) for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
                found.append(node.value.replace("{}", GAP))
    return "\n".join(" ".join(text.split()) for text in found)


def constants(module: ast.Module) -> dict[str, str]:
    """The module's names for fixed strings."""
    return {
        target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }


def descriptions(node: ast.AST) -> list[ast.expr]:
    """What stands for itself in a body: docstrings, and the help of options."""
    body = getattr(node, "body", [])
    return [each.value for each in body if isinstance(each, ast.Expr)] if isinstance(body, list) else []


def _text(part: ast.expr, names: dict[str, str]) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    value = getattr(part, "value", None)
    return names.get(value.id, GAP) if isinstance(value, ast.Name) else GAP


def quoted(page: Path) -> list[str]:
    """The code spans in the first cells of the tables of messages."""
    found, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith(HEAD):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|--"):
            spans = re.findall(r"`([^`]+)`", line.split(" | ")[0])
            assert spans, f"no message is quoted: {line}"
            found += spans
    return found


QUOTATIONS = [(page, text) for page in PAGES for text in quoted(ROOT / "docs" / page)]
CODE = sentences()


@pytest.mark.parametrize(("page", "text"), QUOTATIONS)
def test_a_quoted_message_is_one_that_the_code_gives(page, text):
    pieces = [piece for piece in text.strip(". ").split(GAP) if len(piece.strip()) > 3]
    assert pieces, "nothing to recognise it by"
    assert text.strip(". ") in CODE


def test_every_exit_code_is_told():
    ends = [end for end in vars(errors).values() if isinstance(end, type)]
    codes = {end.exit_code for end in ends if issubclass(end, errors.SuiteError)}
    codes |= {errors.RESULTS_NOT_SENT, errors.INTERRUPTED_SIGINT}
    table = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").split("## First aid")[0]
    told = {
        int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in cell.split(",")
    }
    assert codes <= told


def test_there_is_something_to_find():
    assert len(QUOTATIONS) > 50
