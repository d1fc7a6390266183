"""README and docs: links lead somewhere, README leads everywhere, and each result names its command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from src.report import breakdown
from src.report.journal import null_reason
from tests.shown import ALL, FENCE, PAGES
from tests.support import ROOT, report_schema

EVERY_PAGE = [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LONGEST_README = 200  # lines


def prose(page: str) -> str:
    return FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def links(page: str) -> list[str]:
    """Where it links to, other sites left out."""
    found = re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(page))
    return [target for target in found if not target.startswith(("https://", "http://"))]


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", EVERY_PAGE)
def test_every_link_leads_to_a_file_and_a_heading(page):
    for target in links(page):
        name, _, anchor = target.partition("#")
        file = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(file), target


def test_the_readme_leads_to_every_page_and_is_short():
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {target.partition("#")[0] for target in links("README.md")}
    assert len(README.splitlines()) < LONGEST_README


def test_each_result_of_ours_links_to_its_page_and_names_its_command():
    results = README.split("## Results")[1].split("others have published")[0]
    rows = [line for line in results.splitlines() if re.search(r"\| .*\d %", line)]
    assert len(rows) >= 3
    commands = {command for each in ALL if each.page == "README.md" for command in each.commands}
    for row in rows:
        assert re.search(r"\d %[^\]]*\]\(docs/results[\w-]*\.md#", row), row
        assert any(f"`{command}`" in row for command in commands), row


@pytest.mark.parametrize(
    "word",
    ["--hang-timeout", "--profile", "--tensorboard", "SIGUSR1", "src.report.html", "src.report.compare"],
)
def test_the_readme_mentions_what_people_look_for(word):
    assert word in README


def test_reading_the_report_tells_what_the_report_says():
    """Its answers, its shares, and its reasons for null, in the words of the code."""
    page = " ".join((ROOT / "docs" / "reading-a-report.md").read_text(encoding="utf-8").split())
    for metric in ("train.loss", "train.total_ips"):
        assert null_reason(metric).removeprefix("it ") in page
    assert f"Below {breakdown.NOTICEABLE:.0%}".replace("%", " %") in page
    assert f"from {breakdown.DECISIVE:.0%}".replace("%", " %") in page
    for waiting, between in ((0.01, 0), (0.1, 0), (0.5, 0), (0, 0.5)):
        times = {"data": waiting, "compute": 1 - waiting - between, "other": between}
        told = breakdown.bound_by({f"train.{name}_time": [share] for name, share in times.items()})
        answer = re.split(r"[:,]", told)[0]
        assert f"| `{answer}" in page, told
    for name in ("train.data_time", "train.compute_time", "train.other_time"):
        assert name in report_schema()["properties"]["metrics"]["properties"]
        assert f"`{name}`" in page
