"""The suite's own contestants answer a round: what they call of the suite is still there."""

from __future__ import annotations

import sys

import pytest

from benchmarks.rounds import Contestant
from benchmarks.settings import AS_IT_IS, FOLDED, PREDICT, TRAIN

pytestmark = pytest.mark.deep
TINY = ["-b", "2", "--num-layers", "18", "--image-shape", "3,32,32"]


@pytest.mark.parametrize(
    ("words", "images"),
    [
        (["suite_inference", "evaluate", "3", *TINY], 6),
        (["suite_inference", "predict", "3", *TINY], 6),
        (["suite_step", "suite", "2", *TINY, "--num-examples", "20"], 4),
        (["suite_step", "settings", "2", *TINY, "--num-examples", "20"], 4),
        (["settings", "--serve", TRAIN, AS_IT_IS, "--batch", "2", "--size", "32", "--steps", "1"], 2),
        (["settings", "--serve", TRAIN, "jit level O1", "--batch", "2", "--size", "32", "--steps", "1"], 2),
        (["settings", "--serve", PREDICT, FOLDED, "--batch", "2", "--size", "32", "--steps", "3"], 6),
    ],
    ids=lambda words: " ".join(words[:4]) if isinstance(words, list) else "",
)
def test_it_answers_a_round(words, images):
    one = Contestant("one", [sys.executable, "-m", f"benchmarks.{words[0]}", *words[1:]])
    one.start()
    try:
        assert one.measure()["images"] == images
    finally:
        one.stop()
