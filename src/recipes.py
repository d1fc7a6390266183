"""In what a run differs from its recipe."""

from __future__ import annotations

from typing import Any

from src import cli
from src.config import Config
from src.errors import OptionError
from src.weights.resume import FREE_OPTIONS


def differences(config: Config) -> dict[str, Any]:
    """The recipe of a run, None for the published one (the defaults), and the options that it departs from.

    Only options that decide what is computed; where data and files are is nobody's recipe.
    """
    base, file = Config(), config.output.config
    if file is not None:
        try:
            base = cli.parse(["--config", str(file)], "recipe")
        except OptionError:  # half a recipe, which the command line completed
            file = None
    now, then = config.plain(), base.plain()
    found = {
        name: {"recipe": then[name], "run": value}
        for name, value in now.items()
        if name not in FREE_OPTIONS and value != then[name]
    }
    return {"file": None if file is None else str(file), "differences": found}
