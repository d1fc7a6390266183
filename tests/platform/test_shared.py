"""What rank 0 tells, and files that every rank must be able to read; the ranks are threads here."""

import threading
from pathlib import Path
from typing import Any, Callable, List, Sequence

import pytest

from src.errors import CheckpointError
from src.platform import shared
from src.platform.shared import require_everywhere, told_by_main


class Ranks:
    """Runs a function in three threads, each with a World of its own, whose collectives are exact lists."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(3, timeout=10)
        self.rows: List[Sequence[float]] = [()] * 3

    def each(self, work: Callable[[Any], Any]) -> List[Any]:
        """What the function returned on each rank, or the exception that it raised."""
        found: List[Any] = [None] * 3

        def run(rank: int) -> None:
            try:
                found[rank] = work(self.world(rank))
            except CheckpointError as error:
                found[rank] = error

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def world(self, rank: int) -> Any:
        ranks = self

        class World:
            is_main = rank == 0

            def gather(self, values: Sequence[float]) -> List[List[float]]:
                ranks.rows[rank] = list(values)
                ranks.barrier.wait()
                rows = [list(row) for row in ranks.rows]
                ranks.barrier.wait()
                assert len({len(row) for row in rows}) == 1, "ranks disagree on the size of a collective"
                return rows

            def sum(self, values: Sequence[float]) -> List[float]:
                return [sum(column) for column in zip(*self.gather(values))]

        world = World()
        world.rank = rank  # type: ignore[attr-defined]
        return world


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "LEAVE_DELAY_S", 0.0)


def test_every_rank_is_told_what_rank_0_knows() -> None:
    value = {"action": "continue", "checkpoint": "ü/ä b.safetensors", "seed": 2**32 - 1, "sentence": None}
    found = Ranks().each(lambda world: told_by_main(world, value if world.is_main else {"action": "start"}))
    assert found == [value] * 3


@pytest.mark.parametrize(
    ("third", "sentence"),
    [(None, "rank 2 cannot read "), (b"other", "rank 2 finds another file as "), (b"same", None)],
)
def test_a_file_must_be_the_same_on_all_ranks(third: bytes, sentence: str, tmp_path: Path) -> None:
    for rank, content in enumerate((b"same", b"same", third)):
        if content is not None:
            (tmp_path / str(rank)).write_bytes(content)
    found = Ranks().each(lambda world: require_everywhere(world, tmp_path / str(world.rank)))
    if sentence is None:
        assert found == [None] * 3
    else:
        assert all(isinstance(error, CheckpointError) and str(error).startswith(sentence) for error in found)


def test_ranks_of_which_the_first_lacks_the_file_are_told_so(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"x")
    found = Ranks().each(lambda world: require_everywhere(world, tmp_path / str(world.rank)))
    assert all(str(error).startswith("rank 0 cannot read ") for error in found)
