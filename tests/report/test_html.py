"""report.html: all of a run on one page, whatever its names hold, and in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from src.report import html
from src.report.html import details_file, main, render
from src.report.journal import Journal
from src.report.report import load
from tests.browser import opened
from tests.report.example_run import JPEG, make_run
from tests.report.test_journal import open_journal, run
from tests.support import ROOT


@pytest.fixture
def report(tmp_path):
    return make_run(tmp_path)


def drawn(page: str) -> dict:
    """What the page's script is given."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page).group(1))["charts"]


def test_curves_over_epochs_and_steps(report):
    charts = drawn(render(report))
    by_epoch = {chart["title"]: chart for chart in charts["by-epoch"]}
    assert set(by_epoch) == {"loss", "accuracy, %", "learning rate", "images per second"}
    assert by_epoch["loss"]["xs"] == [1, 2, 3]
    assert by_epoch["loss"]["series"] == [
        {"label": "train.loss", "values": [3.0, 2.0, 1.0]},
        {"label": "val.loss", "values": [None, 2.0, 2.0]},
    ]
    assert by_epoch["accuracy, %"]["series"] == [{"label": "val.top1", "values": [50.0] * 3}]
    by_step = {chart["title"]: chart for chart in charts["by-step"]}
    assert by_step["loss"]["xs"] == [4, 8, 12, 16, 20, 24]
    assert set(by_step) == {"loss", "learning rate", "images per second"}


def test_a_long_run_has_no_more_points_than_a_screen(report, monkeypatch):
    monkeypatch.setattr(html, "MAX_POINTS", 4)
    assert drawn(render(report))["by-step"][0]["xs"] == [4, 12, 20]


def test_what_a_person_asks_is_in_words_and_tables(report):
    page = render(report)
    for text in (
        "Training is bound by data: 33% of the time", "<td>--lr</td><td>0.256</td><td>0.1</td>",
        "which are the published recipe", "18.0 s", "60.0%", "snail", ">20.0%<", "no number, 0.0%",
        f"data:image/jpeg;base64,{JPEG}",
    ):  # fmt: skip
        assert text in page, text


def test_no_text_becomes_markup(report):
    page = render(report)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("&lt;/script&gt;&lt;script&gt;alert(1)") >= 4, "command, host, data and class"


def test_nothing_comes_from_the_network(report):
    page = render(report)
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", page.replace("&quot;", ""))
    assert len(page) < 120_000


@pytest.mark.parametrize("missing", ["dllogger_log.log", "report.validation.json"])
def test_what_is_not_there_is_left_out(report, missing):
    (report.parent / missing).unlink()
    page = render(report)
    assert drawn(page)["by-epoch"]
    assert ('id="by-step"' in page) == (missing != "dllogger_log.log")
    assert ("Accuracy by class" in page) == (missing == "dllogger_log.log")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it_without_a_complaint(report, tmp_path, width):
    assert main([str(tmp_path)]) == 0
    dom, complaints = opened(tmp_path / "report.html", width=width)
    assert complaints == []
    assert 'data-drawn="yes"' in dom
    assert dom.count("<canvas") == 7
    assert "<button" in dom, "headings that sort"


def test_the_classes_are_sorted_by_a_click(report, tmp_path):
    """The page's own script, with a click at its end: by images, fewest first."""
    page = render(report).replace(
        "</body>", "<script>document.querySelectorAll('table.sortable th button')[3].click()</script></body>"
    )
    (tmp_path / "clicked.html").write_text(page)
    dom, complaints = opened(tmp_path / "clicked.html")
    assert complaints == []
    table = dom[dom.index("Accuracy by class") :]
    assert table.index("none of these") < table.index("alert(1)") < table.index("snail")
    assert 'aria-sort="ascending"' in table


def test_the_command_and_its_mistakes(report, tmp_path, capsys):
    done = subprocess.run(
        [sys.executable, "-m", "src.report.html", str(report)], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(report.with_suffix(".html")))
    assert main([str(tmp_path / "nowhere")]) == 1
    assert "no report at" in capsys.readouterr().err


def test_a_run_writes_its_page_however_it_ends(tmp_path, capsys):
    for number, end in enumerate(
        (lambda j: j.finish("done", {}), lambda j: j.failed("x"), lambda j: j.interrupted(2, ""))
    ):
        (tmp_path / str(number)).mkdir()
        journal = open_journal(tmp_path / str(number))
        run(journal)
        end(journal)
        assert (tmp_path / str(number) / "report.html").is_file()
    assert "page" in capsys.readouterr().out


def test_a_page_that_fails_is_only_a_warning(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(html, "render", lambda report: 1 / 0)
    journal = open_journal(tmp_path)
    run(journal)
    journal.details({"epoch": 0})
    journal.finish("done", {})
    assert "report.html is not written: ZeroDivisionError" in capsys.readouterr().err
    assert load(tmp_path / "report.json")["status"] == "completed"
    assert details_file(tmp_path / "report.json").is_file()


def test_what_neither_trained_nor_scored_has_no_page(tmp_path):
    assert open_journal(tmp_path).page() is None
    assert Journal.silent().page() is None


def test_an_earlier_runs_page_is_moved_aside_with_it(report):
    from src.config import Config, Output
    from src.weights.resume import move_aside

    main([str(report)])
    aside = move_aside(Config(output=Output(workspace=report.parent)))
    assert {p.name for p in aside.iterdir()} >= {"report.json", "report.html", "report.validation.json"}
