"""TrivialAugment wide: its fourteen operations, and how often and how strongly each is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

import src.data.trivialaugment as module
from src.data.trivialaugment import OPERATIONS, TrivialAugment


@pytest.fixture
def image() -> np.ndarray:
    return np.random.RandomState(0).randint(0, 256, (50, 60, 3)).astype(np.uint8)


def applied(name: str, image: np.ndarray, share: float) -> np.ndarray:
    return np.asarray(OPERATIONS[name](Image.fromarray(image), share)).astype(int)


CONSTANT = ("auto-contrast", "equalize")  # the same whatever the strength


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in (*CONSTANT, "solarize")])
def test_strength_0_changes_nothing(image, name):
    assert (applied(name, image, 0.0) == image).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_translations_move_by_up_to_32_pixels(image, sign):
    moved = applied("translate-x", image, 1.0 * sign)
    blank = moved[:, -32:] if sign > 0 else moved[:, :32]
    kept = moved[:, :-32] if sign > 0 else moved[:, 32:]
    assert (blank == 0).all()
    assert (kept == (image[:, 32:] if sign > 0 else image[:, :-32])).all()


def test_shear_moves_rows_by_nearly_their_distance_from_the_top():
    image = np.zeros((60, 60, 3), np.uint8)
    image[:, 50] = 255
    sheared = applied("shear-x", image, 0.5)
    places = sheared[:, :, 0].argmax(1)
    np.testing.assert_allclose(places[:60], 50 - 0.495 * np.arange(60), atol=1)


def test_rotation_reaches_135_degrees():
    image = np.zeros((61, 61, 3), np.uint8)
    image[30, 31:] = 255  # points to the right
    y, x = np.nonzero(applied("rotate", image, 1.0)[:, :, 0] > 100)
    angles = np.degrees(np.arctan2(30 - y, x - 30))
    assert abs(np.median(angles) - 135) < 5


@pytest.mark.parametrize(("share", "bits"), [(1.0, 2), (-1.0, 2), (0.5, 5), (1 / 30, 8)])
def test_posterize_keeps_8_to_2_bits(image, share, bits):
    assert (applied("posterize", image, share) == image & (0xFF & ~(0xFF >> bits))).all()


@pytest.mark.parametrize(("share", "threshold"), [(1.0, 0), (-0.5, 127.5), (0.1, 229.5)])
def test_solarize_inverts_what_is_at_least_the_threshold(image, share, threshold):
    assert (applied("solarize", image, share) == np.where(image < threshold, image, 255 - image)).all()


def test_brightness_goes_from_nearly_black_to_nearly_twice(image):
    np.testing.assert_allclose(applied("brightness", image, -1.0), image * 0.01, atol=1)
    np.testing.assert_allclose(applied("brightness", image, 1.0), np.minimum(255, image * 1.99), atol=1)


def test_operations_and_strengths_are_drawn_equally_often(monkeypatch):
    drawn = []
    for name in OPERATIONS:
        note = lambda picture, share, name=name: (drawn.append((name, share)), picture)[1]  # noqa: E731
        monkeypatch.setitem(module.OPERATIONS, name, note)
    op, times = TrivialAugment(0), 6000
    for k in range(times):
        op(np.full((2, 2, 3), (k % 256, k // 256, 0), np.uint8))
    names, counts = np.unique([name for name, _ in drawn], return_counts=True)
    assert len(names) == 14
    np.testing.assert_allclose(counts / times, 1 / 14, atol=5 * math.sqrt(1 / 14 / times))
    shares = np.array([share for _, share in drawn])
    assert set(np.abs(np.rint(shares * 30)).astype(int)) == set(range(31))
    assert np.abs(shares).mean() == pytest.approx(0.5, abs=0.02)
    assert abs(np.sign(shares).mean()) < 0.05


def test_hardly_any_image_becomes_black():
    """MindSpore's own operator made one in eight so."""
    rng, op = np.random.RandomState(0), TrivialAugment(1)
    outs = [op(rng.randint(0, 256, (64, 64, 3)).astype(np.uint8)) for _ in range(1000)]
    assert np.mean([out.max() < 10 for out in outs]) < 0.01
