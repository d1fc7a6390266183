"""Typed records out of the lines that the suite writes."""

from __future__ import annotations

import pytest

from src.errors import SuiteError
from src.report.dllog import METADATA, open_log
from src.report.dllog_reader import Metric, read

# As NVIDIA's own package writes them, whose order of keys differs between the two kinds.
THEIRS = (
    'DLLL {"timestamp": "1714564800.5", "elapsedtime": "0.5", "datetime": "2024-05-01 12:00:00.500000", '
    '"type": "METADATA", "metric": "train.ips", "metadata": {"unit": null, "format": ":.2f"}}\n'
    'DLLL {"timestamp": "1714564801.0", "datetime": "2024-05-01 12:00:01", "elapsedtime": "1.0", '
    '"type": "LOG", "step": [0, 19], "data": {"train.loss": 6.904, "train.ips": 2500}}\n'
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dllogger_log.log"


def test_what_is_written_is_read_back(path):
    log = open_log(path, append=False)
    log.log("PARAMETER", {"lr": 0.1})
    log.log([0, 3], {"train.loss": 1.5})
    log.log([0, 7], {"train.loss": float("nan")})
    log.log([0], {"val.accuracy": 0.5})
    log.log([], {"val.accuracy": 0.5})
    log.close()
    found = read(path)
    assert found.options == {"lr": 0.1}
    assert [line.step for line in found.steps] == [(0, 3), (0, 7)]
    assert found.series("train.loss") == [(0, 3, 1.5)], "what was no number is no point of a curve"
    assert [(line.step, line.data) for line in found.epochs] == [((0,), {"val.accuracy": 0.5})]
    assert found.summary.data == {"val.accuracy": 0.5}
    assert found.summary.elapsed_s >= found.steps[0].elapsed_s >= 0
    assert found.metrics == {name: Metric(**about) for name, about in METADATA.items()}


def test_the_originals_lines_are_read_and_a_torn_last_one_is_passed_over(path):
    path.write_text(THEIRS + THEIRS[:-9])
    found = read(path)
    assert found.metrics == {"train.ips": Metric("", ":.2f")}
    assert [(line.time_s, line.step) for line in found.steps] == [(1714564801.0, (0, 19))]
    assert found.summary is None


@pytest.mark.parametrize(
    "damaged",
    [
        'DLLL {"type": "LO',
        'DLLL {"type": "LOG", "step": [0, 1]}',
        'DLLL {"type": "LOG", "step": ["0"], "timestamp": "1", "elapsedtime": "1", "data": {}}',
        'DLLL {"type": "LOG", "step": [0], "timestamp": "soon", "elapsedtime": "1", "data": {}}',
        'DLLL {"type": "LOG", "step": [0], "timestamp": "1", "elapsedtime": "1", "data": 3}',
        'DLLL {"type": "OTHER", "step": [0], "timestamp": "1", "elapsedtime": "1", "data": {}}',
        'DLLL {"type": "METADATA", "metric": "a", "metadata": null}',
        'DLLL {"step": []}',
    ],
)
def test_a_line_that_is_no_record_is_named_with_its_file(path, damaged):
    path.write_text(f"a line of another program\n{damaged}\n{THEIRS}")
    with pytest.raises(SuiteError, match=r"line 2 of the log .*dllogger_log\.log is"):
        read(path)
