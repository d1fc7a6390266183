"""Profiles: MindSpore's table read, and told to a person."""

from __future__ import annotations

import pytest

from src.errors import SuiteError
from src.report.profile import document, lines, read_operators

# As MindSpore 2.10 writes it.
TABLE = """op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent
Conv2D,4,2,30.5,7.625,0.6
SGD,2,1,0.5,0.25,0.1
AddN,2,1,9,4.5,0.3
"""


@pytest.fixture
def folder(tmp_path):
    for rank in (0, 1):
        place = tmp_path / f"vm_{rank}_ms" / "FRAMEWORK"
        place.mkdir(parents=True)
        (place / f"cpu_op_type_info_{rank}.csv").write_text(TABLE)
    return tmp_path


def test_operators_are_added_up_and_sorted(folder):
    found = read_operators(folder)
    assert [(row["name"], row["calls"]) for row in found] == [("Conv2D", 8), ("AddN", 4), ("SGD", 4)]
    assert [row["seconds"] for row in found] == pytest.approx([0.061, 0.018, 0.001])


def test_another_form_is_refused_and_none_is_none(folder, tmp_path):
    assert read_operators(tmp_path / "nowhere") == []
    (folder / "vm_0_ms" / "FRAMEWORK" / "cpu_op_type_info_0.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SuiteError, match=r"cpu_op_type_info_0\.csv is no table of operators"):
        read_operators(folder)


def test_the_table_accounts_for_the_wall_time(folder):
    found = document(0, [0.01, 0.01], [0.05, 0.05], [0.07, 0.07], read_operators(folder))
    assert found["between_s"] == pytest.approx(0.02)
    told = lines(found)
    assert told[0] == "profile of 2 steps of epoch 1, 70.0 ms each"
    rows = {line[:22].strip(): line[22:].split() for line in told[1:]}
    assert rows["waiting for data"] == ["10.00", "ms", "14.3%"]
    assert rows["computing"] == ["50.00", "ms", "71.4%"]
    assert rows["Conv2D"] == ["30.50", "ms", "43.6%", "4", "calls"]
    assert rows["no operator (host)"] == ["10.00", "ms", "14.3%"]
    assert rows["between steps"] == ["10.00", "ms", "14.3%"]


def test_many_operators_are_summed_up_and_none_is_said():
    operators = [{"name": f"Op{k}", "calls": 1, "seconds": 0.001} for k in range(20)]
    told = lines(document(0, [0.0], [0.02], [0.02], operators))
    assert any(line.split()[:2] == ["8", "others"] and "40.0%" in line for line in told)
    assert "no operators" in lines(document(0, [0.0], [0.02], [0.02], []))[-1]
