"""The lines are, byte for byte, those of NVIDIA's dllogger."""

from __future__ import annotations

import datetime
import json

import numpy as np

from src.report import dllogger_writer as dllogger

START = datetime.datetime(2024, 5, 1, 12, 0, 0, 1, tzinfo=datetime.timezone.utc)


class Clock:
    """Half a second later at every look."""

    def __init__(self):
        self.looks = 0

    def __call__(self):
        self.looks += 1
        return START + datetime.timedelta(seconds=0.5 * (self.looks - 1))


def make(tmp_path, **options):
    file = dllogger.JSONStreamBackend(dllogger.Verbosity.VERBOSE, tmp_path / "log", **options)
    return file, dllogger.Logger([file], clock=Clock())


def test_golden_lines_of_the_file(tmp_path):
    file, logger = make(tmp_path)
    logger.metadata("train.ips", {"unit": "images/s", "format": ":.2f"})
    logger.log(step="PARAMETER", data={"lr": 0.256, "amp": False, "load": None})
    logger.log(step=(0, 19), data={"train.loss": 6.904, "train.ips": 2500})
    logger.log(step=(0,), data={"val.accuracy": 0.5})
    logger.log(step=(), data={})
    file.close()
    assert (tmp_path / "log").read_text().splitlines() == [
        'DLLL {"timestamp": "1714564800.500001", "elapsedtime": "0.5", '
        '"datetime": "2024-05-01 12:00:00.500001+00:00", "type": "METADATA", "metric": "train.ips", '
        '"metadata": {"unit": "images/s", "format": ":.2f"}}',
        'DLLL {"timestamp": "1714564801.000001", "datetime": "2024-05-01 12:00:01.000001+00:00", '
        '"elapsedtime": "1.0", "type": "LOG", "step": "PARAMETER", '
        '"data": {"lr": 0.256, "amp": false, "load": null}}',
        'DLLL {"timestamp": "1714564801.500001", "datetime": "2024-05-01 12:00:01.500001+00:00", '
        '"elapsedtime": "1.5", "type": "LOG", "step": [0, 19], '
        '"data": {"train.loss": 6.904, "train.ips": 2500}}',
        'DLLL {"timestamp": "1714564802.000001", "datetime": "2024-05-01 12:00:02.000001+00:00", '
        '"elapsedtime": "2.0", "type": "LOG", "step": [0], "data": {"val.accuracy": 0.5}}',
        'DLLL {"timestamp": "1714564802.500001", "datetime": "2024-05-01 12:00:02.500001+00:00", '
        '"elapsedtime": "2.5", "type": "LOG", "step": [], "data": {}}',
    ]


def test_golden_lines_of_the_console(capsys):
    logger = dllogger.Logger([dllogger.StdOutBackend(dllogger.Verbosity.DEFAULT)], clock=Clock())
    logger.metadata("train.loss", {"format": ":.5f"})
    logger.metadata("gone", {"format": ":.5f"})
    logger.metadata("train.ips", {"unit": "images/s", "format": ":.2f"})
    logger.log((0, 19), {"train.loss": 6.904, "train.ips": 2500, "seed": 3, "gone": None}, verbosity=0)
    assert capsys.readouterr().out == (
        "DLL 2024-05-01 12:00:02.000001+00:00 - (0, 19) "
        "train.loss : 6.90400  train.ips : 2500.00 images/s seed : 3  gone : None \n"
    )


def test_the_datetime_of_an_unset_clock_is_local_and_without_zone(tmp_path):
    file = dllogger.JSONStreamBackend(dllogger.Verbosity.VERBOSE, tmp_path / "log")
    dllogger.Logger([file]).log((), {})
    file.close()
    record = json.loads((tmp_path / "log").read_text()[5:])
    stamp = datetime.datetime.fromisoformat(record["datetime"])
    assert stamp.tzinfo is None
    assert stamp.timestamp() == float(record["timestamp"])


def test_a_backend_keeps_what_is_not_above_its_verbosity(tmp_path, capsys):
    file, _ = make(tmp_path)
    backends = [
        dllogger.StdOutBackend(dllogger.Verbosity.DEFAULT),
        file,
        dllogger.StdOutBackend(dllogger.Verbosity.OFF),
    ]
    logger = dllogger.Logger(backends)
    logger.log((0,), {"a": 1}, verbosity=dllogger.Verbosity.DEFAULT)
    logger.log((1,), {"b": 1}, verbosity=dllogger.Verbosity.VERBOSE)
    logger.log((2,), {"c": 1})  # as in the original, a Logger's own default is VERBOSE
    file.close()
    shown = capsys.readouterr().out
    assert shown.count("DLL ") == 1
    assert "a : 1" in shown
    assert [json.loads(line[5:])["step"] for line in (tmp_path / "log").read_text().splitlines()] == [
        [0],
        [1],
        [2],
    ]


def test_nan_and_numpy_are_strict_json(tmp_path):
    file, logger = make(tmp_path)
    logger.log((np.int64(0),), {"loss": float("nan"), "ips": np.float32(2.5), "sizes": np.array([1, 2])})
    file.close()
    line = (tmp_path / "log").read_text()
    assert line.endswith('"step": [0], "data": {"loss": null, "ips": 2.5, "sizes": [1, 2]}}\n')


def test_append_continues_and_no_append_begins_anew(tmp_path):
    for append, lines in ((False, 1), (True, 2), (False, 1)):
        file, logger = make(tmp_path, append=append)
        logger.log((), {})
        file.close()
        assert len((tmp_path / "log").read_text().splitlines()) == lines
