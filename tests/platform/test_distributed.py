"""World's collectives: exact, and the same on every rank."""

import json
import math
import sys
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from src import launch
from src.platform import environment
from src.platform.distributed import World, _split, leave
from src.platform.supervisor import Process, supervise

SUITE = Path(__file__).resolve().parents[2]


class TestAlone:
    def test_everything_is_the_identity(self) -> None:
        world = World()
        assert world.is_main
        assert world.gather([0.1, 3]) == [[0.1, 3.0]]
        assert world.sum([1 / 3, 2**53 + 1]) == [1 / 3, float(2**53 + 1)]
        assert world.sum([]) == []
        assert world.any(True) is True
        assert world.any(False) is False
        (mean,) = world.mean_arrays([np.ones((2, 1))])
        assert mean.tolist() == [[1.0], [1.0]]
        world.barrier()

    def test_leaving_is_returning(self) -> None:
        assert leave(4, World()) == 4


@pytest.mark.parametrize("value", [1 / 3, 2.0**53 - 1, -123456789.125, 0.0, 1e-30, math.pi * 1e30])
def test_a_number_is_its_float32_parts(value: float) -> None:
    parts = _split(value)
    assert all(float(np.float32(part)) == part for part in parts)
    assert math.fsum(parts) == value


def test_what_is_not_finite_stays_so() -> None:
    assert _split(math.inf) == [math.inf, 0.0, 0.0]
    assert math.isnan(_split(math.nan)[0])


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> List[Dict[str, Any]]:
    """What two ranks wrote down; about 10 s."""
    folder = tmp_path_factory.mktemp("ranks")
    port, reservation = launch.reserve_port()
    command = [sys.executable, "-m", "tests.platform.collectives", str(folder)]
    scheduler = [sys.executable, "-m", "src.platform.scheduler"]
    plan = [
        Process(
            "scheduler",
            scheduler,
            environment.scheduler_environment(2, port),
            folder / "s.log",
            SUITE,
            service=True,
        ),
        *(
            Process(
                f"rank {rank}",
                command,
                environment.rank_environment("CPU", rank, 2, port),
                folder / f"{rank}.log",
                SUITE,
            )
            for rank in (0, 1)
        ),
    ]
    with reservation:
        outcome = supervise(plan)
    assert outcome.code == 0, outcome.message
    return [json.loads((folder / f"answers_{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.slow
class TestTwoRanks:
    def test_places(self, answers: List[Dict[str, Any]]) -> None:
        assert [answer.pop("place") for answer in map(dict, answers)] == [[0, 2, 0, True], [1, 2, 1, False]]

    def test_all_else_is_the_same_on_both(self, answers: List[Dict[str, Any]]) -> None:
        first, second = ({name: a[name] for name in a if name != "place"} for a in answers)
        assert first == second

    def test_gather_and_sum_are_exact(self, answers: List[Dict[str, Any]]) -> None:
        numbers = [1 / 3, 123456789.125, 2.0**53 - 1, -1e-9, 0.0]
        assert answers[0]["gather"] == [numbers, [2 * number for number in numbers]]
        assert answers[0]["sum"] == [2 * number for number in numbers]
        assert answers[0]["sum of one rank"] == [math.fsum([2.0**53, 1.0]), 7]

    def test_what_is_not_finite_spoils_only_itself(self, answers: List[Dict[str, Any]]) -> None:
        assert answers[0]["not finite"] == ["nan", "inf", "10.0"]

    def test_any(self, answers: List[Dict[str, Any]]) -> None:
        assert answers[0]["any"] == [True, False, True]

    def test_mean(self, answers: List[Dict[str, Any]]) -> None:
        assert answers[0]["mean"] == [[[0.5] * 3] * 2, [0.75, 1.75, 2.75, 3.75]]
