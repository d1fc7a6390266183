"""Draws of mixup and cutmix: the right distribution, the exact area, and the same again after a resume."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from src.config import Config, Data, Training
from src.data.mixing import BOTTOM, KEPT, LEFT, RIGHT, SHARE, TOP, Mixing
from src.data.sources import ImageFolderSource, MindRecordSource
from src.data.synthetic import SyntheticSource
from src.platform.distributed import World

MIXUP = Mixing(mixup=0.2, cutmix=0.0, size=(24, 40), batch_size=8, steps=50, seed=1, epoch=0, rank=0)
CUTMIX = dataclasses.replace(MIXUP, mixup=0.0, cutmix=1.0)


def all_draws(mixing: Mixing) -> np.ndarray:
    return np.stack([mixing.draw(step) for step in range(mixing.steps)])


def test_mixup_draws_a_lambda_for_each_image_from_beta():
    draws = all_draws(dataclasses.replace(MIXUP, steps=500))
    lambdas = draws[..., KEPT].ravel().astype(np.float64)
    assert (draws[..., SHARE] == draws[..., KEPT]).all()
    assert (draws[..., [TOP, LEFT, BOTTOM, RIGHT]] == [0, 0, 24, 40]).all()
    assert len(np.unique(lambdas)) > 3000, "one per image, not one per batch"
    alpha = 0.2  # Beta(a, a): mean 1/2, variance 1 / (4 (2a + 1)); 4,000 draws
    assert lambdas.mean() == pytest.approx(0.5, abs=0.02)
    assert lambdas.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), abs=0.01)


def test_cutmix_draws_one_box_a_batch_and_shares_by_its_exact_area():
    draws = all_draws(dataclasses.replace(CUTMIX, steps=2000))
    assert (draws == draws[:, :1]).all(), "one box for the batch"
    kept, top, left, bottom, right, share = draws[:, 0].astype(np.float64).T
    assert (kept == 0).all()
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (bottom <= 24).all()
    assert (right <= 40).all()
    assert (bottom >= top).all()
    assert (right >= left).all()
    np.testing.assert_allclose(share, 1 - (bottom - top) * (right - left) / (24 * 40), atol=1e-7)
    # The centre is anywhere: every pixel is pasted over now and then, those in the middle more often.
    covered = np.zeros((24, 40))
    for t, b, begin, end in np.stack([top, bottom, left, right], 1).astype(int):
        covered[t:b, begin:end] += 1
    assert covered.min() > 0.1 * len(draws)
    assert covered[12, 20] > 1.2 * covered[0, 0]
    # Uncut boxes have the drawn area, uniform for alpha 1.
    uncut = (top > 0) & (left > 0) & (bottom < 24) & (right < 40)
    ratio = (bottom - top)[uncut] / (right - left)[uncut].clip(1)
    assert np.median(ratio) == pytest.approx(24 / 40, abs=0.05), "the box has the image's shape"


def test_of_both_each_batch_has_one_with_equal_probability():
    both = dataclasses.replace(MIXUP, cutmix=1.0, steps=1000)
    cut = (all_draws(both)[..., KEPT] == 0).all(1)
    assert 0.45 < cut.mean() < 0.55


def test_draws_differ_by_step_epoch_rank_and_seed_and_by_nothing_else():
    def drawn(step=0, **changes):
        return dataclasses.replace(MIXUP, **changes).draw(step).tobytes()

    assert drawn() == drawn() == drawn(steps=99)
    others = {drawn(), drawn(step=1), drawn(epoch=1), drawn(rank=1), drawn(seed=2)}
    assert len(others) == 5


CONFIG = Config(
    training=Training(batch_size=8, mixup=0.2, cutmix=1.0),
    data=Data(image_shape=(3, 32, 32), data_val_resize=32),
)


@pytest.fixture(scope="module")
def sources(digits):
    from src.data.manifest import read_manifest

    return {
        "mindrecord": MindRecordSource(read_manifest(digits / "records" / "val")),
        "imagefolder": ImageFolderSource.scan(digits / "images" / "val"),
        "synthetic": SyntheticSource(64, 5, (32, 32)),
    }


def batches(source, first_step=0, rank=0, config=CONFIG):
    from src.data.pipeline import TrainPipeline

    dataset = TrainPipeline(config, source, World(rank, 2), seed=3).epoch(1)
    if first_step:
        dataset.set_init_step(first_step)
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


@pytest.mark.parametrize("backend", ["mindrecord", "imagefolder", "synthetic"])
def test_every_backend_hands_out_the_draws_beside_the_batch(sources, backend):
    source = sources[backend]
    for rank in (0, 1):
        found = batches(source, rank=rank)
        assert len(found) == len(source) // 16
        for step, (images, labels, mixing) in enumerate(found):
            assert (images.shape, labels.shape) == ((8, 3, 32, 32), (8,))
            np.testing.assert_array_equal(mixing, Mixing(0.2, 1.0, (32, 32), 8, 99, 3, 1, rank).draw(step))


@pytest.mark.parametrize("backend", ["mindrecord", "synthetic"])
def test_an_epoch_continued_in_the_middle_mixes_as_an_unbroken_one(sources, backend):
    unbroken, continued = batches(sources[backend]), batches(sources[backend], first_step=2)
    assert len(continued) == len(unbroken) - 2
    for whole, part in zip(unbroken[2:], continued):
        np.testing.assert_array_equal(whole[1], part[1])
        np.testing.assert_array_equal(whole[2], part[2])


def test_without_mixing_there_is_no_third_column(sources):
    plain = dataclasses.replace(CONFIG, training=Training(batch_size=8))
    assert len(batches(sources["synthetic"], config=plain)[0]) == 2


def test_validation_never_mixes(sources):
    from src.data.pipeline import ValPipeline

    plain = dataclasses.replace(CONFIG, training=Training(batch_size=8))
    mixed, unmixed = (list(ValPipeline(c, sources["synthetic"], World())) for c in (CONFIG, plain))
    for one, other in zip(mixed, unmixed):
        assert len(one) == 2
        assert (one[0] == other[0]).all()
        assert (one[1] == other[1]).all()


def test_with_growing_images_the_draws_grow_too(sources):
    data = dataclasses.replace(CONFIG.data, image_size_steps=("48@1",))
    config = dataclasses.replace(CONFIG, data=data, training=Training(batch_size=8, mixup=0.2))
    for images, _, mixing in batches(sources["synthetic"], config=config):
        assert images.shape == (8, 3, 48, 48)
        assert (mixing[:, [BOTTOM, RIGHT]] == 48).all()
