"""Ranks that differ are told, by name; those that should be equal are made so. Ranks here are threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any, Callable

import numpy as np
import pytest

from src.config import Config, Training
from src.errors import SuiteError
from src.platform.distributed import World
from tests.train.test_step import small


class Meeting:
    """Where the ranks of one test exchange what they bring."""

    def __init__(self, size: int) -> None:
        self.barrier, self.brought = threading.Barrier(size, timeout=20), [None] * size

    def exchange(self, rank: int, what: Any) -> list:
        self.brought[rank] = what
        self.barrier.wait()
        rows = list(self.brought)
        self.barrier.wait()
        return rows


@dataclass(frozen=True)
class Threads(World):
    """A World whose ranks are threads of this process; refuses unequal collectives."""

    meeting: Any = None

    def gather(self, values):
        rows = self.meeting.exchange(self.rank, [float(value) for value in values])
        assert len({len(row) for row in rows}) == 1, "all ranks bring as many numbers"
        return rows

    def broadcast_arrays(self, arrays):
        return self.meeting.exchange(self.rank, [np.array(array) for array in arrays])[0]


def on_ranks(size: int, work: Callable[[World], Any]) -> list:
    """What each rank returned, or the SuiteError it raised."""
    meeting, results = Meeting(size), [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(Threads(rank, size, meeting=meeting))
        except SuiteError as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def steps(size: int, **options: Any) -> list:
    return [small(Training(ema=0.9, **options))[1] for _ in range(size)]


def parameter(step, name: str):
    return next(p for p in step.get_parameters() if p.name == name)


def change(step, name: str) -> None:
    from src.train.assigning import assign

    found = parameter(step, name)
    assign(found, found.asnumpy() + np.ones((), found.asnumpy().dtype))


def require(cells) -> list:
    from src.train.agreement import require_equal

    return on_ranks(len(cells), lambda world: require_equal(cells[world.rank], world, "at the checkpoint"))


def test_ranks_that_hold_the_same_are_left_alone(graph_mode):
    assert require(steps(3)) == [None] * 3


@pytest.mark.parametrize(
    "name", ["0.weight", "5.bias", "moments.0.weight", "ema.5.weight", "global_step", "streak", "1.gamma"]
)
def test_a_difference_is_told_on_every_rank_with_its_rank_and_tensor(graph_mode, name):
    cells = steps(3)
    change(cells[2], name)
    errors = require(cells)
    assert len(set(map(str, errors))) == 1
    assert f"{name} of rank 2 differs from rank 0's" in str(errors[0])
    assert "at the checkpoint" in str(errors[0])


def test_the_first_of_many_is_named_and_the_others_are_counted(graph_mode):
    cells = steps(3)
    for name in ("0.weight", "5.bias", "5.weight"):
        change(cells[0], name)  # then all others differ from it
    assert "0.weight of rank 1, 2 differs from rank 0's, as do 2 more tensors" in str(require(cells)[1])


def test_what_each_rank_has_for_itself_may_differ(graph_mode):
    cells = steps(2, accumulation=2)
    own = {"1.moving_mean", "1.moving_variance", "ema.1.moving_mean", "ema.1.moving_variance", "sums"}
    own |= {"kept_statistics", "accumulated.0.weight", "accumulated.5.bias"}
    for name in own:
        change(cells[1], name)
    assert require(cells) == [None, None]
    change(cells[1], "accumulated_batches")
    assert "accumulated_batches" in str(require(cells)[0])


def test_statistics_of_frozen_batch_norms_may_not(graph_mode):
    cells = steps(2)
    for cell in cells:
        parameter(cell, "1.moving_mean")
        next(
            c for _, c in cell.cells_and_names() if type(c).__name__ == "BatchNorm2d"
        ).use_batch_statistics = False
    change(cells[1], "1.moving_mean")
    assert "1.moving_mean of rank 1" in str(require(cells)[0])


def test_other_networks_are_told_before_anything_is_compared(graph_mode):
    cells = [small(Training())[1], small(Training(), batch_norm=False)[1]]
    for error in require(cells):
        assert "do not train the same network" in str(error)


@pytest.mark.parametrize("resumed", [False, True])
def test_rank_0_gives_its_state_to_those_that_differ(graph_mode, resumed):
    from src.train.agreement import make_equal

    cells, told = steps(3), [[], [], []]
    for name in ("0.weight", "global_step", "1.moving_mean"):
        change(cells[1], name)
    wanted = {p.name: p.asnumpy().copy() for p in cells[0].get_parameters()}

    def work(world):
        warn = told[world.rank].append
        make_equal(cells[world.rank], world, "now", resumed=resumed, warn=warn)

    assert on_ranks(3, work) == [None] * 3
    for cell in cells:
        for p in cell.get_parameters():
            kept = resumed and cell is cells[1] and p.name == "1.moving_mean"  # its own, to go on from
            assert (p.asnumpy() == wanted[p.name]).all() != kept, p.name
            assert p.asnumpy().dtype == wanted[p.name].dtype
    assert told[0] == told[1] == told[2]
    assert "0.weight of rank 1" in told[0][0]


def begin(configs, numbers=(100, 100), facts=({}, {})) -> list:
    """The start of ranks with these options, numbers of training images and further facts."""
    from src.data.splits import Splits
    from src.data.synthetic import SyntheticSource
    from src.train.agreement import begin_together

    cells = steps(len(configs))

    def work(world):
        source = SyntheticSource(numbers[world.rank], 4, (8, 8))
        splits = Splits(source, None, source.classes)
        rank = world.rank
        begin_together(
            cells[rank], world, configs[rank], splits, facts[rank], resumed=False, warn=pytest.fail
        )

    return on_ranks(len(configs), work)


def with_training(**options: Any) -> Config:
    return Config(training=replace(Config().training, **options))


def test_ranks_that_do_the_same_begin(graph_mode):
    assert begin([Config(), with_training(seed=4)]) == [None, None], (
        "rank 0's seed is used, whatever the others'"
    )


@pytest.mark.parametrize(
    ("option", "value"), [("disp_batches", 7), ("run_epochs", 3), ("benchmark_iters", 5), ("lr", 0.1)]
)
def test_other_options_are_refused_by_name(graph_mode, option, value):
    for rank, error in enumerate(begin([Config(), with_training(**{option: value})])):
        assert f"--{option.replace('_', '-')}" in str(error), rank
        assert "rank 1 and rank 0 differ" in str(error)


def test_other_data_and_other_checkpoints_are_refused(graph_mode):
    for error in begin([Config(), Config()], numbers=(100, 99)):
        assert "images in train" in str(error)
    for error in begin([Config(), Config()], facts=({"epochs done": 3}, {"epochs done": 2})):
        assert "epochs done" in str(error)


def test_alone_there_is_nobody_to_agree_with(graph_mode):
    from src.train.agreement import make_equal, require_equal, require_same

    (step,) = steps(1)
    require_equal(step, World(), "now")
    make_equal(step, World(), "now", resumed=False, warn=pytest.fail)
    require_same({"a": 1}, World(), "now")


def test_an_input_that_ends_early_ends_the_run_before_the_next_collective(graph_mode):
    from unittest import mock

    from src import cli
    from src.data.splits import open_splits
    from src.errors import DataError
    from src.platform.signals import Requests
    from src.report.journal import Journal
    from src.train import fit
    from tests import many_ranks

    config = cli.parse([*many_ranks.WORDS.split(), "--num-examples", "32"], "test")
    splits = open_splits(config, train=True, val=True)
    with mock.patch.object(fit.models, "build", return_value=many_ranks.small_network(1)):
        fitting = fit.build(config, World(), splits, 1)
    whole = fitting.pipeline.epoch
    with (
        mock.patch.object(fitting.pipeline, "epoch", lambda *place: whole(*place).take(3)),
        mock.patch("src.train.callbacks.AverageStatistics.on_train_epoch_end") as meeting,
        pytest.raises(DataError, match="3 of 4 steps"),
    ):
        fit.fit(fitting, config, World(), Journal.silent(), Requests())
    meeting.assert_not_called()
