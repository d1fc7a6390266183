"""docs/migration.md: every option of the MXNet example is there, and what it names as ours exists."""

from __future__ import annotations

import json
import re

import pytest

from scripts.make_docs import shown
from src.config import RunnerConfig
from src.config.benchmark import Benchmark
from tests.support import ROOT

PAGE = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
THEIRS = json.loads((ROOT / "tests" / "golden" / "mxnet_options.json").read_text(encoding="utf-8"))
GROUPS = [name for name in THEIRS if name != "source"]
OURS = RunnerConfig().flat()
OF_BENCHMARK = {name.replace("_", "-"): value for name, value in vars(Benchmark()).items()}


def rows(group: str) -> list[list[str]]:
    """The cells of the table below a heading: there, default, here, default, remark."""
    section = re.split(r"^### ", PAGE, flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(f"{group}\n")]
    lines = [line for line in text.splitlines() if line.startswith("| `--")]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines]


def bare(cell: str) -> str:
    return cell.strip("`")


def default_of(option: str, ours: dict[str, object]) -> str:
    """As the table shows it, empty where it is found out at the start."""
    name = option.removeprefix("--")
    if name not in ours and name.startswith("no-"):
        name = name[3:]
    return shown(ours[name])  # KeyError: there is no such option


@pytest.mark.parametrize("group", GROUPS)
def test_every_option_of_the_mxnet_example_is_in_its_table_with_its_default(group):
    assert {bare(row[0]).removeprefix("--"): bare(row[1]) for row in rows(group)} == THEIRS[group]
    assert len(rows(group)) == len(THEIRS[group]), "one twice"


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_named_as_ours_exists_and_has_that_default(group):
    found = 0
    for _, _, here, default, remark in rows(group):
        if not here:
            assert remark, "an option that is gone says why"
            assert not default
            continue
        found += 1
        ours = OF_BENCHMARK if group == "benchmark.py" else OURS
        assert default == default_of(bare(here), ours), here
    assert found


@pytest.mark.parametrize("group", GROUPS)
def test_where_a_name_or_a_default_is_another_one_the_table_says_something_of_it(group):
    """But for the same value in another form, and for ours that are found out where theirs are None."""
    for there, default, here, ours, remark in rows(group):
        same = (bare(default), bare(ours)) in {("None", ""), ("[]", ""), ("./", ".")} or number(
            default
        ) == number(ours)
        renamed = here and bare(here) != bare(there) and group == "Training"
        if renamed or not same:
            assert remark or group == "runner", there


def number(cell: str) -> object:
    words = bare(cell).strip("[]").replace(" ", "")
    try:
        return float(words)
    except ValueError:
        return words


def test_the_remarks_name_no_option_that_does_not_exist():
    theirs = {option for group in GROUPS for option in THEIRS[group]}
    for word in re.findall(r"`(--[a-z][a-z0-9-]*[a-z0-9])(?![A-Z-])", PAGE):
        name = word.removeprefix("--")
        known = name in OURS or name in OF_BENCHMARK or name.removeprefix("no-") in OURS or name in theirs
        assert known or name == "help", word
