"""Every recipe parses, says how to run it, and reads back as itself."""

from __future__ import annotations

import pytest

from src import cli
from tests.support import ROOT

RECIPES = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_a_recipe_is_a_command_line(path):
    config = cli.parse(["--config", str(path)], "train.py")
    assert cli.parse(cli.to_argv(config), "train.py") == config
    assert cli.to_argv(config), "a recipe that changes nothing"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#")
    assert f"--config configs/{path.name}" in text, "its command stands in its head comment"
