"""Two processes on the CPU: averaging gradients of the same samples changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from src import launch
from src.platform import environment
from src.platform.supervisor import Process, supervise
from tests.support import ROOT


def run(folder: Path, size: int, samples: str) -> list[dict[str, np.ndarray]]:
    """What each of `size` ranks wrote down."""
    port, reservation = launch.reserve_port()
    command = [sys.executable, "-m", "tests.two_ranks", str(folder), samples]
    ranks = [
        Process(
            f"rank {rank}",
            command,
            environment.rank_environment("CPU", rank, size, port),
            folder / f"rank_{rank}.log",
            ROOT,
        )
        for rank in range(size)
    ]
    scheduler = [sys.executable, "-m", "src.platform.scheduler"]
    variables = environment.scheduler_environment(size, port)
    service = Process("scheduler", scheduler, variables, folder / "scheduler.log", ROOT, service=True)
    with reservation:
        outcome = supervise([service, *ranks] if size > 1 else ranks)
    assert outcome.code == 0, outcome.message
    return [dict(np.load(folder / f"rank_{rank}_of_{size}.npz")) for rank in range(size)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return run(tmp_path_factory.mktemp("one"), 1, "same")[0]


@pytest.mark.slow
def test_two_ranks_fed_the_same_samples_give_the_losses_and_weights_of_one(alone, tmp_path):
    for found in run(tmp_path, 2, "same"):
        assert found["losses"] == pytest.approx(alone["losses"], rel=1e-5)
        for name, value in alone.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_two_ranks_with_samples_of_their_own_stay_one_network(alone, tmp_path):
    """The same trainable weights on both, which are not those of either half alone."""
    first, second = run(tmp_path, 2, "own")
    assert (first["losses"] != second["losses"]).all()
    for name in alone:
        if name != "losses" and "moving" not in name:
            assert (first[name] == second[name]).all(), name
    (name,) = (name for name in alone if name.endswith("bn1.moving_mean"))
    assert (first[name] != second[name]).any()


@pytest.mark.slow
def test_what_one_rank_cannot_use_all_ranks_skip(tmp_path):
    """An infinity in one image of one rank; clipping, accumulation and averaging as they are alone."""
    first, second = run(tmp_path, 2, "broken")
    shared = [
        name for name in first if not name.endswith(("losses", "sums", "statistics")) and "moving" not in name
    ]
    assert {"ema.3.weight", "moments.3.weight", "streak"} <= set(shared)
    for name in shared:
        assert (first[name] == second[name]).all(), name
        assert np.isfinite(first[name]).all(), name
    for found in (first, second):
        assert found["sums"][-1] == 1, "one update of four"
        assert found["global_step"][0] == 4
        assert all(np.isfinite(value).all() for name, value in found.items() if "moving" in name)
