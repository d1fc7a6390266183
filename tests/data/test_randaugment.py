"""RandAugment as in timm: each operation at a known strength, and how often each is applied."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from src.data.randaugment import OPERATIONS, Drawing, RandAugment

FILL = (124, 117, 104)


def drawing(level: float, sign: int = 1) -> Drawing:
    return Drawing(level, sign, FILL, Image.Resampling.BILINEAR)


def applied(name: str, image: np.ndarray, level: float, sign: int = 1) -> np.ndarray:
    return np.asarray(OPERATIONS[name](Image.fromarray(image), drawing(level, sign))).astype(int)


@pytest.fixture
def image() -> np.ndarray:
    return np.random.RandomState(0).randint(0, 256, (40, 50, 3)).astype(np.uint8)


def test_there_are_timms_fifteen_operations():
    assert len(OPERATIONS) == 15


@pytest.mark.parametrize(
    "name",
    ["rotate", "solarize-add", "colour", "contrast", "brightness", "sharpness", "shear-x", "shear-y",
     "translate-x", "translate-y", "solarize"],
)  # fmt: skip
def test_strength_0_changes_nothing_and_10_changes_most(image, name):
    assert (applied(name, image, 0.0) == image).all()
    assert (applied(name, image, 1.0) != image).mean() > 0.2
    y, x = np.mgrid[:40, :50]
    smooth = np.stack([4 * x, 5 * y, (x - 25) ** 2 // 4 + 2 * y], -1).astype(np.uint8)
    smooth[10:20, 10:30] = 255
    weak, strong = (np.abs(applied(name, smooth, level) - smooth).mean() for level in (0.2, 1.0))
    assert strong > weak


@pytest.mark.parametrize(("level", "bits"), [(0.0, 4), (0.7, 2), (1.0, 0)])
def test_posterize_keeps_ever_fewer_bits(image, level, bits):
    assert (applied("posterize", image, level) == image & (0xFF & ~(0xFF >> bits))).all()


@pytest.mark.parametrize(("level", "threshold"), [(0.5, 128), (0.7, 77), (1.0, 0)])
def test_solarize_inverts_above_an_ever_lower_threshold(image, level, threshold):
    assert (applied("solarize", image, level) == np.where(image < threshold, image, 255 - image)).all()


def test_solarize_add_brightens_the_dark_half(image):
    expected = np.where(image < 128, np.minimum(255, image.astype(int) + 77), image)
    assert (applied("solarize-add", image, 0.7) == expected).all()


def test_brightness_goes_both_ways_and_never_below_a_tenth(image):
    np.testing.assert_allclose(applied("brightness", image, 0.5, -1), image * 0.55, atol=1)
    np.testing.assert_allclose(applied("brightness", image, 0.5, 1), np.minimum(255, image * 1.45), atol=1)
    np.testing.assert_allclose(applied("brightness", image, 1.0, -1), image * 0.1, atol=1)


def test_translation_is_a_share_of_the_side_and_fills_with_the_mean_colour(image):
    moved = applied("translate-x", image, 1.0)  # by 45 % of 50 pixels
    assert (moved[:, -22:] == FILL).all()
    assert not (moved[:, :20] == FILL).all(2).any()
    moved = applied("translate-y", image, 1.0, -1)
    assert (moved[:17] == FILL).all()


def counted(op: RandAugment, times: int = 3000) -> list[int]:
    """How many of an image's operations were applied, for each of `times` images."""
    import src.data.randaugment as module

    counts = []
    recorded = {name: (lambda picture, drawn: (counts[-1].append(drawn), picture)[1]) for name in OPERATIONS}
    saved = dict(OPERATIONS)
    module.OPERATIONS.update(recorded)
    try:
        for k in range(times):
            counts.append([])
            op(np.full((2, 2, 3), 0, np.uint8) + np.array([k % 256, k // 256, 0], np.uint8))
    finally:
        module.OPERATIONS.update(saved)
    return counts


def test_each_of_two_operations_is_applied_half_of_the_time_at_the_asked_strength():
    draws = counted(RandAugment(0, 7.0, 0.5, 2, FILL))
    share = np.bincount([len(found) for found in draws], minlength=3) / len(draws)
    np.testing.assert_allclose(share, [0.25, 0.5, 0.25], atol=0.03)
    levels = np.array([drawn.level for found in draws for drawn in found]) * 10
    assert levels.mean() == pytest.approx(7, abs=0.05)
    assert levels.std() == pytest.approx(0.5, abs=0.03)
    signs = np.array([drawn.sign for found in draws for drawn in found])
    assert abs(signs.mean()) < 0.06


def test_strengths_stay_within_the_scale():
    draws = counted(RandAugment(0, 10.0, 3.0, 4, FILL), 500)
    levels = [drawn.level for found in draws for drawn in found]
    assert max(levels) == 1.0
    assert min(levels) >= 0.0


def test_shear_moves_rows_by_three_tenths_of_their_distance_from_the_top():
    image = np.zeros((60, 60, 3), np.uint8)
    image[:, 40] = 255
    places = applied("shear-x", image, 1.0)[:, :, 0].argmax(1)
    np.testing.assert_allclose(places, 40 - 0.3 * np.arange(60), atol=1)
    places = applied("shear-y", image.transpose(1, 0, 2), 1.0)[:, :, 0].argmax(0)
    np.testing.assert_allclose(places, 40 - 0.3 * np.arange(60), atol=1)


@pytest.mark.parametrize(("level", "sign", "angle"), [(1.0, 1, 30), (0.5, -1, -15)])
def test_rotation_reaches_30_degrees(level, sign, angle):
    image = np.zeros((61, 61, 3), np.uint8) + np.array(FILL, np.uint8)
    image[30, 31:] = 255  # points to the right
    y, x = np.nonzero(applied("rotate", image, level, sign)[:, :, 2] > 170)
    assert np.median(np.degrees(np.arctan2(30 - y, x - 30))) == pytest.approx(angle, abs=3)
