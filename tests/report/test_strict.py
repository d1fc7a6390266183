"""Whatever a run knows can be written as strict JSON."""

from __future__ import annotations

import dataclasses
import enum
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from src.report.strict import strict


class Mode(enum.Enum):
    TRAIN = "train"


@dataclasses.dataclass(frozen=True)
class Section:
    lr_steps: tuple
    data_root: Path


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        (np.float32("nan"), None),
        (np.float64(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1.5, np.inf]]), [[1.5, None]]),
        (np.array(3), 3),
        ((1, (2, 3)), [1, [2, 3]]),
        ({3, 1, 2}, [1, 2, 3]),
        (Path("a/b"), "a/b"),
        (Mode.TRAIN, "train"),
        (int, "int"),
        ({1: {Mode.TRAIN: np.float32(2)}}, {"1": {"train": 2.0}}),
        (Section((30, 60), Path("/data")), {"lr_steps": [30, 60], "data_root": "/data"}),
        (2**60, 2**60),
        (True, True),
        (None, None),
    ],
)
def test_values_become_plain_python(value, expected):
    result = strict(value)
    assert result == expected
    assert type(result) is type(expected)
    assert json.loads(json.dumps(result, allow_nan=False)) == expected


def test_plain_types_all_the_way_down():
    class Text(str):
        pass

    class Number(int):
        pass

    assert type(strict([Text("a")])[0]) is str
    assert type(strict([Number(1)])[0]) is int
    assert type(strict([np.float64(1)])[0]) is float  # a subclass of float, but not float


def test_a_file_name_that_is_no_text_stays_valid_unicode():
    name = b"caf\xe9.jpg".decode("utf-8", "surrogateescape")
    assert strict(name).encode("utf-8").startswith(b"caf")


def test_what_json_has_no_word_for_becomes_its_text():
    assert strict(1 + 2j) == "(1+2j)"
    assert strict(np.datetime64("2024-05-01")) == "2024-05-01"


def test_the_report_needs_no_heavy_library():
    modules = "strict report dllogger_writer dllog console logfile"
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}.split(): importlib.import_module('src.report.' + name)\n"
        "print([name for name in ('mindspore', 'numpy', 'rich') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
