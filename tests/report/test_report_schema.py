"""The schema of report.json: sound in itself, complete, and strict."""

from __future__ import annotations

import copy
import json

import jsonschema
import pytest

from src.report.dllog import METADATA
from src.report.journal import DLLOGGER_NAMES
from tests.support import ROOT, report_schema, valid_report


def example() -> dict:
    return {
        "schema_version": 1, "status": "completed", "status_reason": None, "model": "resnetv15", "ngpus": 1,
        "total_duration": 1.5, "cmd": ["train.py"], "num_samples": 5, "best": None, "epochs": [0],
        "metrics": {"train.loss": [None]}, "dataset": {"train": {}}, "throughput_definition": "...",
        "environment": dict.fromkeys(
            ("python", "mindspore", "numpy", "device", "host", "processor", "cores", "git_commit")
        ),
        "config": dict.fromkeys(("arch", "batch-size", "lr", "num-epochs", "seed")),
    }  # fmt: skip


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(report_schema())
    valid_report(example())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("status", "done"), ("ngpus", 0), ("surplus", 1), ("metrics", {"train.speed": [1]}),
        ("metrics", {"train.loss": ["1"]}), ("epochs", [-1]), ("best", {"epoch": 0}), ("environment", {}),
    ],
)  # fmt: skip
def test_what_is_not_in_it_is_refused(key, value):
    with pytest.raises(jsonschema.ValidationError):
        valid_report({**example(), key: value})


@pytest.mark.parametrize("key", list(example()))
def test_no_key_may_be_missing(key):
    document = copy.deepcopy(example())
    del document[key]
    with pytest.raises(jsonschema.ValidationError):
        valid_report(document)


def test_every_metric_has_a_unit_and_is_announced_in_the_dllogger_lines():
    metrics = report_schema()["properties"]["metrics"]["properties"]
    assert all("x-unit" in part and part["description"] for part in metrics.values())
    assert {DLLOGGER_NAMES.get(name, name) for name in metrics} == set(METADATA)


def test_the_page_tells_every_key():
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    schema = json.loads((ROOT / "src" / "report" / "report.schema.json").read_text(encoding="utf-8"))
    for name in [*schema["properties"], *schema["properties"]["metrics"]["properties"]]:
        assert f"| `{name}` |" in page
