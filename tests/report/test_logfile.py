"""log.log: one dated line for each message, and no other logger touched."""

from __future__ import annotations

import logging
import re

import pytest

from src.errors import SuiteError
from src.report.logfile import open_log_file


def test_lines_carry_time_and_level(tmp_path):
    logger = open_log_file(tmp_path / "log.log", append=False)
    logger.info("reading %s", "data")
    logger.warning("odd")
    first, second = (tmp_path / "log.log").read_text().splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d INFO    reading data", first)
    assert second.endswith(" WARNING odd")


@pytest.mark.parametrize("append", [False, True])
def test_opening_twice_does_not_double_the_lines(tmp_path, append):
    first = open_log_file(tmp_path / "log.log", append)
    second = open_log_file(tmp_path / "log.log", append=True)
    second.info("once")
    first.info("twice")
    assert [line[-5:] for line in (tmp_path / "log.log").read_text().splitlines()] == [" once", "twice"]


def test_append_continues_and_no_append_begins_anew(tmp_path):
    for append, lines in ((False, 1), (True, 2), (False, 1)):
        open_log_file(tmp_path / "log.log", append).info("line")
        assert len((tmp_path / "log.log").read_text().splitlines()) == lines


def test_two_runs_do_not_mix(tmp_path):
    one, other = (open_log_file(tmp_path / name, False) for name in "ab")
    one.info("one")
    other.info("other")
    assert (tmp_path / "a").read_text().endswith(" one\n")
    assert (tmp_path / "b").read_text().endswith(" other\n")


def test_the_root_logger_is_left_alone(tmp_path, caplog, capsys):
    handlers, level = list(logging.root.handlers), logging.root.level
    open_log_file(tmp_path / "log.log", False).error("mine")
    assert (logging.root.handlers, logging.root.level) == (handlers, level)
    assert caplog.records == []
    assert capsys.readouterr().err == ""


def test_odd_characters_are_written_whatever_the_locale(tmp_path):
    open_log_file(tmp_path / "log.log", False).info("caf\u00e9 \u732b \udce9")
    assert (tmp_path / "log.log").read_text(encoding="utf-8").endswith("caf\u00e9 \u732b \\udce9\n")


def test_no_path_is_silent(capsys):
    open_log_file(None, False).error("nobody hears")
    assert capsys.readouterr().err == ""


def test_a_log_that_cannot_be_opened_is_one_sentence(tmp_path):
    with pytest.raises(SuiteError, match=r"cannot write the log .*: No such file or directory"):
        open_log_file(tmp_path / "absent" / "log.log", False)
