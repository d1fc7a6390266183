"""n processes on the CPU are one that accumulates n batches: losses, weights, statistics and scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.many_ranks import BATCH, EPOCHS, UPDATES, VALIDATION_SIZES
from tests.ranks import start

BN_MOMENTUM = 0.9
SIZES = [2, *(pytest.param(n, marks=pytest.mark.deep) for n in (3, 4))]


def run(folder: Path, num_ranks: int, size: int) -> list[dict[str, np.ndarray]]:
    """What each of `num_ranks` processes found for `size` ranks."""
    outcome = start("tests.many_ranks", folder, num_ranks, size)
    assert outcome.code == 0, outcome.message
    return [dict(np.load(folder / f"{size}_rank_{rank}_of_{num_ranks}.npz")) for rank in range(num_ranks)]


@pytest.fixture(scope="module", params=SIZES, ids=lambda n: f"{n} ranks")
def both(request, tmp_path_factory):
    """The ranks, and the process that accumulates."""
    folder = tmp_path_factory.mktemp(f"ranks-{request.param}")
    return run(folder, request.param, request.param), run(folder, 1, request.param)[0]


def assert_close(found: np.ndarray, wanted: np.ndarray, name: str) -> None:
    """Within 1e-5 of the tensor's largest number: an element near 0 has no relative accuracy of its own."""
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * scale, err_msg=name)


def own_statistics(name: str) -> bool:
    return "moving" in name


@pytest.mark.slow
class TestRanksAreOneProcess:
    def test_each_batch_has_the_same_loss_and_right_answers(self, both):
        ranks, alone = both
        steps = alone["rows"].reshape(EPOCHS * UPDATES, len(ranks), -1)
        assert len(np.unique(steps[..., 0])) == steps[..., 0].size, "no two batches are the same"
        for rank, found in enumerate(ranks):
            np.testing.assert_allclose(found["rows"][:, 0], steps[:, rank, 0], rtol=1e-5)
            np.testing.assert_array_equal(found["rows"][:, 1:5], steps[:, rank, 1:5])
            assert (found["rows"][:, 4] == BATCH).all()

    def test_the_updates_give_the_same_weights_momentum_and_averages(self, both):
        ranks, alone = both
        names = [n for n in ranks[0] if n.startswith("state/") and not own_statistics(n)]
        assert {"state/3.weight", "state/moments.3.weight", "state/ema.3.weight"} <= set(names)
        for name in names:
            assert_close(ranks[0][name], alone[name], name)
        assert ranks[0]["state/global_step"] == EPOCHS * UPDATES
        assert np.abs(ranks[0]["state/3.weight"] - ranks[0]["begin/3.weight"]).max() > 1e-3, "it learnt"

    def test_batch_norm_statistics_are_the_mean_over_ranks_of_theirs(self, both):
        """One process updates its moving statistics n times where each rank does once.

        So those of the ranks are made from the statistics of each batch, which the one process's give away,
        by the rule of one update a step, and one mean over ranks after each epoch.
        """
        ranks, alone = both
        n = len(ranks)
        before = np.concatenate([start_of(alone)[None], alone["statistics"][:-1]])
        batches = (alone["statistics"] - BN_MOMENTUM * before) / (1 - BN_MOMENTUM)
        batches = batches.reshape(EPOCHS, UPDATES, n, -1)
        wanted = start_of(alone)
        for epoch in range(EPOCHS):
            own = np.repeat(wanted[None], n, 0)
            for step in range(UPDATES):
                own = BN_MOMENTUM * own + (1 - BN_MOMENTUM) * batches[epoch, step]
            wanted = own.mean(0)
        for found in ranks:
            assert_close(found["means"], wanted, "statistics")
        assert np.abs(own - wanted).max() > 1e-3, "each rank gathered its own"

    def test_all_ranks_hold_the_same_bits(self, both):
        ranks, _ = both
        for found in ranks[1:]:
            for name in ("means", *(n for n in found if n.startswith("state/"))):
                np.testing.assert_array_equal(found[name], ranks[0][name], err_msg=name)

    def test_all_begin_with_the_weights_of_the_first_whatever_they_drew(self, both):
        """Each rank of this run draws its weights from a seed of its own."""
        ranks, alone = both
        for found in ranks:
            for name in (n for n in found if n.startswith("begin/")):
                np.testing.assert_array_equal(found[name], alone[name], err_msg=name)
            (told,) = found["told"]
            assert "before the first step" in told
            assert "0.conv1.weight of rank 1" in told
        assert not alone["told"].size

    def test_every_set_has_the_same_counts_shared_or_not(self, both):
        ranks, alone = both
        wanted = alone["scores"]
        assert wanted[:, 3].tolist() == 2 * list(VALIDATION_SIZES)
        assert 0 < wanted[-1, 0] < 1, "some right, some wrong"
        for found in ranks:
            np.testing.assert_array_equal(found["scores"][:, [0, 1, 3]], wanted[:, [0, 1, 3]])
            np.testing.assert_allclose(found["scores"][:, 2], wanted[:, 2], rtol=1e-6)

    def test_all_ranks_make_the_same_collectives(self, both):
        """With fewer images to validate than ranks, too."""
        ranks, _ = both
        calls = [json.loads(str(found["calls"])) for found in ranks]
        assert all(found == calls[0] for found in calls)
        kinds = {call.split()[0] for call in calls[0]}
        assert kinds == {"gather", "any", "broadcast", "mean"}


def start_of(alone: dict[str, np.ndarray]) -> np.ndarray:
    """Means 0 and variances 1, in the order of the network's tensors: 8 channels each."""
    pairs = alone["means"].size // 16
    return np.tile(np.repeat([0.0, 1.0], 8), pairs)


@pytest.mark.slow
def test_what_one_rank_cannot_use_all_ranks_skip(tmp_path):
    """An infinity in one image of one rank; clipping, accumulation and averaging as they are alone."""
    outcome = start("tests.two_ranks", tmp_path, 2)
    assert outcome.code == 0, outcome.message
    first, second = (dict(np.load(tmp_path / f"rank_{rank}_of_2.npz")) for rank in (0, 1))
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
