"""Contestants are measured in turn, and what they answer is taken as it is."""

from __future__ import annotations

import sys

import pytest

from benchmarks import rounds
from benchmarks.rounds import Contestant, photographs, spread, take_turns

# Answers 100 images in 0.5 s and 0.2 s of the processor, prints besides, and notes its turn in a file.
ANSWERS = """
import sys
from benchmarks.peers.serving import serve
name, file = sys.argv[1:]
print("noise before")
def measure():
    print("noise between")
    open(file, "a").write(name)
    return {"images": 100, "seconds": 0.5, "cpu_seconds": 0.2}
serve({"versions": name + " 1.0"}, measure)
"""


@pytest.fixture
def contestants(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "REST_S", 0.0)
    found = [Contestant(name, [sys.executable, "-c", ANSWERS, name, tmp_path / "turns"]) for name in "abc"]
    for each in found:
        each.start()
    yield found
    for each in found:
        each.stop()


def test_each_round_begins_with_another_one(contestants, tmp_path):
    take_turns(contestants, 3)
    assert (tmp_path / "turns").read_text() == "abc" + "bca" + "cab"
    assert [each.rates() for each in contestants] == [[200.0] * 3] * 3
    assert contestants[0].cpu_ms() == pytest.approx(2.0)
    assert contestants[1].versions == "b 1.0"


def test_no_round_begins_after_the_limit(contestants, tmp_path):
    take_turns(contestants, 3, limit_s=0.0)
    assert not (tmp_path / "turns").exists()


def test_a_contestant_that_ends_is_an_error_with_its_code():
    with pytest.raises(RuntimeError, match="broken ended with 3"):
        Contestant("broken", [sys.executable, "-c", "raise SystemExit(3)"]).start()


def test_it_may_use_only_so_many_cores_and_not_what_is_unset(monkeypatch):
    monkeypatch.setenv("SET_BY_THE_USER", "1")
    code = (
        "import os; from benchmarks.peers.serving import serve\n"
        "serve({'versions': [len(os.sched_getaffinity(0)), os.environ.get('SET_BY_THE_USER')]}, dict)"
    )
    contestant = Contestant("one", [sys.executable, "-c", code], {"SET_BY_THE_USER": ""}, cores=1)
    contestant.start()
    contestant.stop()
    assert contestant.versions == "[1, None]"


def test_spread_is_median_and_extremes():
    assert spread([3.0, 1000.0, 2.0]) == "3 (2 to 1,000)"


def test_photographs_are_those_given_or_of_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUITE_DATA_DIR", str(tmp_path))
    assert photographs(None) is None
    (tmp_path / "imagenet-samples.tar").touch()
    assert photographs(None) == tmp_path / "imagenet-samples.tar"
    assert photographs(tmp_path / "absent.tar") is None
