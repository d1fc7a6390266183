"""Which rank sees which image, in which order."""

from __future__ import annotations

import numpy as np
import pytest

from src.data import sampling
from src.errors import DataError


def order(seed=0, epoch=0, rank=0, size=1, rows=100, batch=4, steps=None):
    return sampling.epoch_order(
        np.arange(rows),
        seed,
        epoch,
        steps=steps or rows // (batch * size),
        batch_size=batch,
        rank=rank,
        world_size=size,
    )


def test_ranks_share_one_shuffle_without_overlap():
    ranks = [order(rank=r, size=3, rows=100, batch=4) for r in range(3)]
    seen = np.concatenate(ranks)
    assert len(seen) == len(set(seen)) == 96
    assert {len(r) for r in ranks} == {32}


def test_the_global_batches_are_those_of_one_process():
    alone = order(batch=6, size=1, rows=60).reshape(-1, 6)
    ranks = [order(rank=r, size=2, batch=3, rows=60).reshape(-1, 3) for r in range(2)]
    for step, batch in enumerate(alone):
        together = np.concatenate([rank[step] for rank in ranks])
        assert sorted(together) == sorted(batch)


def test_epochs_and_seeds_differ_and_repeat():
    assert (order(epoch=1) == order(epoch=1)).all()
    assert (order(epoch=1) != order(epoch=2)).any()
    assert (order(seed=1) != order(seed=2)).any()


def test_each_epoch_leaves_out_another_rest():
    full = set(range(10))
    left_out = [full - set(order(epoch=e, rows=10, batch=8).tolist()) for e in range(5)]
    assert all(len(rest) == 2 for rest in left_out)
    assert len({frozenset(rest) for rest in left_out}) > 1


def test_augmentation_differs_by_epoch_and_rank():
    seeds = {sampling.augmentation_seed(0, epoch, rank) for epoch in range(4) for rank in range(4)}
    assert len(seeds) == 16
    assert all(0 <= seed < 2**32 for seed in seeds)


@pytest.mark.parametrize(("rows", "size"), [(9, 3), (10, 3), (2, 4), (1, 1)])
def test_validation_counts_every_row_exactly_once(rows, size):
    seen = np.concatenate([sampling.validation_rows(rows, rank, size) for rank in range(size)])
    assert sorted(seen) == list(range(rows))


def test_too_few_images_are_refused_with_the_arithmetic():
    with pytest.raises(DataError, match=r"5 training images .* 8"):
        sampling.steps_per_epoch(5, 8)
    assert sampling.steps_per_epoch(9, 8) == 1
    assert sampling.steps_per_epoch(100, 8, limit=3) == 3


def test_a_subset_is_fixed_by_the_seed():
    some = sampling.training_rows(100, 10, seed=3)
    assert len(set(some)) == 10
    assert (some == sampling.training_rows(100, 10, seed=3)).all()
    assert len(sampling.training_rows(100, None, seed=3)) == 100
