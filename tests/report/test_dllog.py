"""The door to dllogger: either implementation, strict values, flushed records, and reading back."""

from __future__ import annotations

import json
import sys
import types

import pytest

from src.errors import SuiteError
from src.report import dllogger_writer
from src.report.dllog import METADATA, cut, open_log, read_lines, step_format


@pytest.fixture(autouse=True)
def own_writer(monkeypatch):
    """The same test on a machine that has the original."""
    monkeypatch.setitem(sys.modules, "dllogger", None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dllogger_log.log"


def logged(path):
    return [record for record in read_lines(path) if record["type"] == "LOG"]


def test_metrics_are_described_first(path):
    open_log(path, append=False).close()
    described = {record["metric"]: record["metadata"] for record in read_lines(path)}
    assert described == METADATA
    assert described["train.ips"] == {"unit": "images/s", "format": ":.2f"}
    names = "train.loss train.ips train.lr val.accuracy val.top_k_accuracy_5 val.loss val.ips"
    latencies = [f"val.latency_{which}" for which in ("avg", "50", "90", "95", "99", "100")]
    assert {*names.split(), *latencies} <= set(described)


def test_a_record_is_in_the_file_when_log_returns(path):
    log = open_log(path, append=False)
    log.log((0, 19), {"train.loss": float("nan")})
    assert logged(path)[-1]["data"] == {"train.loss": None}
    assert logged(path)[-1]["step"] == [0, 19]
    log.close()


def test_the_published_form_on_the_console(path, capsys):
    log = open_log(path, append=False, console=True)
    log.log((0, 19), {"train.loss": 6.904, "train.ips": 2500.0})
    log.log((0, 19), {"hidden": 1}, verbosity=dllogger_writer.Verbosity.VERBOSE)
    log.close()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("DLL 2")
    assert line.endswith(" - Epoch: 0 Iteration: 19  train.loss : 6.90400  train.ips : 2500.00 images/s")
    assert len(logged(path)) == 2


def test_how_steps_are_named():
    assert step_format("PARAMETER") == "PARAMETER"
    assert step_format((3, 4, 5)) == "Epoch: 3 Iteration: 4 Validation Iteration: 5 "
    assert step_format([3]) == "Epoch: 3 "
    assert step_format(()) == "Summary:"


def test_no_file_and_no_console_is_silent(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = open_log(None, append=False)
    log.log((), {"a": 1})
    log.close()
    assert log.logger.backends == []
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_appends_and_a_new_one_begins_anew(path):
    for append, steps in ((False, [[0]]), (True, [[0], [1]]), (False, [[2]])):
        log = open_log(path, append=append)
        log.log((steps[-1][0],), {})
        log.close()
        assert [record["step"] for record in logged(path)] == steps


def test_appending_to_nothing_starts_a_file(path):
    open_log(path, append=True).close()
    assert len(read_lines(path)) == len(METADATA)


@pytest.mark.parametrize("lost", [1, 30])
def test_a_record_cut_by_a_crash_does_not_spoil_the_next_one(path, lost):
    """With the newline alone lost the record is whole, and kept."""
    log = open_log(path, append=False)
    log.log((0,), {})
    log.log((1,), {"train.loss": 1.0})
    log.close()
    path.write_bytes(path.read_bytes()[:-lost])
    log = open_log(path, append=True)
    log.log((2,), {})
    log.close()
    assert [record["step"] for record in logged(path)] == ([[0], [1], [2]] if lost == 1 else [[0], [2]])


def test_reading_passes_over_other_lines_and_a_cut_last_one(path):
    path.write_text('hello\nDLLL {"type": "LOG", "step": []}\n\nDLL 2024 - x : 1\nDLLL {"type": "LO')
    assert read_lines(path) == [{"type": "LOG", "step": []}]


@pytest.mark.parametrize("damaged", ['DLLL {"type": "LO', "DLLL 3"])
def test_damage_before_the_last_line_is_named(path, damaged):
    path.write_text(f'hello\n{damaged}\nDLLL {{"type": "LOG"}}\n')
    with pytest.raises(SuiteError, match=r"line 2 of the log .*dllogger_log\.log is damaged"):
        read_lines(path)


def test_a_log_that_cannot_be_opened_is_one_sentence(tmp_path):
    with pytest.raises(SuiteError, match=r"cannot write the log .*No such file or directory"):
        open_log(tmp_path / "absent" / "log", append=False)
    with pytest.raises(SuiteError, match=r"cannot read the log .*No such file or directory"):
        read_lines(tmp_path / "absent")


def test_the_original_is_used_where_it_is_installed(path, monkeypatch):
    """A stand-in with the original's behaviour: it writes NaN as it comes and flushes only when told."""

    class JSONStreamBackend(dllogger_writer.JSONStreamBackend):
        def _write(self, record):
            self.file.write(f"DLLL {json.dumps(record)}\n")

    original = types.ModuleType("dllogger")
    original.Logger = dllogger_writer.Logger
    original.Verbosity = dllogger_writer.Verbosity
    original.StdOutBackend = dllogger_writer.StdOutBackend
    original.JSONStreamBackend = JSONStreamBackend
    monkeypatch.setitem(sys.modules, "dllogger", original)

    log = open_log(path, append=False)
    assert isinstance(log.logger.backends[0], JSONStreamBackend)
    log.log((0,), {"train.loss": float("inf")})
    assert "Infinity" not in path.read_text()
    assert logged(path)[-1]["data"] == {"train.loss": None}
    log.close()


def test_what_a_resumed_run_makes_again_is_cut(path):
    log = open_log(path, append=False)
    log.log("PARAMETER", {"lr": 1})
    for epoch in (0, 1, 2):
        for step in (1, 3):
            log.log([epoch, step], {"train.loss": epoch + step / 10})
        log.log([epoch], {"train.loss": epoch})
    log.log([], {"train.loss": 2})
    log.close()
    open_log(path, append=True).close()  # announces all metrics a second time
    with path.open("a") as file:
        file.write("a line of someone else\n")
    cut(path, 1, 3)
    records = read_lines(path)
    steps = [record["step"] for record in records if record["type"] == "LOG"]
    assert steps == ["PARAMETER", [0, 1], [0, 3], [0], [1, 1]]
    announced = [record["metric"] for record in records if record["type"] == "METADATA"]
    assert sorted(announced) == sorted(METADATA)
    assert path.read_text().endswith("a line of someone else\n")
    cut(path.with_name("none"), 0, 0)
