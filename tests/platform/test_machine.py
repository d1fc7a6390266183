"""What the report says of the machine."""

from __future__ import annotations

import json

from src.platform import machine


def test_the_machine_is_described_in_json():
    found = machine.describe("CPU")
    assert json.loads(json.dumps(found)) == found
    assert found["device"] == "CPU"
    assert found["cores"] >= 1
    assert found["mindspore"].split(".")[0] == "2"
    assert found["processor"]
