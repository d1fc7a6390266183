"""Runs side by side."""

from __future__ import annotations

import json
import re

import pytest

from src.report import html
from src.report.compare import as_page, as_text, main, read_runs
from tests.browser import opened
from tests.report.example_run import make_run


@pytest.fixture
def runs(tmp_path):
    make_run(tmp_path / "a" / "run", epochs=3, top1=0.5, lr=0.1)
    make_run(tmp_path / "b" / "run", epochs=2, top1=0.75, lr=0.2, seconds=100.0)
    return [tmp_path / "a" / "run", tmp_path / "b" / "run" / "report.json"]


def test_the_table_has_results_and_differing_options(runs):
    lines = [re.split(r"\s{2,}", line) for line in as_text(read_runs(runs)).splitlines()]
    table = {line[0]: line[1:] for line in lines[1:]}
    assert lines[0][1:] == ["a/run", "b/run"]
    assert table["best top-1"] == ["50.00% (epoch 3)", "75.00% (epoch 2)"]
    assert table["final top-1"] == ["50.00 %", "75.00 %"]
    assert table["final training loss"] == ["1.0000", "2.0000"]
    assert table["training, median epoch"] == ["100 img/s", "100 img/s"]
    assert table["bound by"] == ["data", "data"]
    assert {name: told for name, told in table.items() if name.startswith("--")} == {
        "--lr": ["0.1", "0.2"],
        "--num-epochs": ["3", "2"],
    }


def test_accuracies_of_averaged_weights_are_called_so(runs):
    report = runs[1]
    document = json.loads(report.read_text())
    document["best"]["weights"] = "ema"
    document["metrics"]["val.ema_top1"] = [0.5, 0.75]
    document["metrics"]["val.top1"] = [0.25, 0.25]
    report.write_text(json.dumps(document))
    rows = (re.split(r"\s{2,}", line) for line in as_text(read_runs(runs)).splitlines())
    table = {line[0]: line[1:] for line in rows}
    assert table["best top-1"] == ["50.00% (epoch 3)", "75.00% (epoch 2, averaged weights)"]
    assert table["final top-1"] == ["50.00 %", "75.00 % (averaged weights)"]
    assert "best top-1, averaged weights" in html.render(report)


def test_the_page_lays_curves_over_each_other(runs, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main([*map(str, runs), "-o", str(page)]) == 0
    assert "best top-1" in capsys.readouterr().out
    text = page.read_text()
    charts = json.loads(re.search(r'id="data">(.*?)</script>', text).group(1))["charts"]["by-epoch"]
    loss = next(chart for chart in charts if chart["title"] == "loss: train.loss")
    assert loss["xs"] == [1, 2, 3]
    assert loss["series"] == [
        {"label": "a/run", "values": [3.0, 2.0, 1.0]},
        {"label": "b/run", "values": [3.0, 2.0, None]},
    ]
    assert text == as_page(read_runs(runs))
    dom, complaints = opened(page)
    assert complaints == []
    assert dom.count("<canvas") == len(charts) == 5


def test_one_run_and_no_run_are_refused(runs, tmp_path, capsys):
    assert main([str(runs[0])]) == 1
    assert "nothing to compare" in capsys.readouterr().err
    assert main([str(runs[0]), str(tmp_path)]) == 1
    assert "no report at" in capsys.readouterr().err
    assert not (tmp_path / "comparison.html").exists()
