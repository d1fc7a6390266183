"""Each option of the augmentation does to pixels what its help says, and again from the same seed."""

from __future__ import annotations

import colorsys
import dataclasses

import numpy as np
import pytest

from src.config import Augmentation, Config, Data
from tests.data.test_transforms import PLAIN, photo

OFF = Augmentation(random_resized_crop=False, random_mirror=False)
SIDE = 32


def augmented(value: np.ndarray, times: int = 200, seed: int = 1, workers: int = 1, side: int = SIDE,
              resize: int | None = None, data: Data = PLAIN, **options) -> np.ndarray:  # fmt: skip
    """`times` draws of one image, as pixels (times, 3, side, side); encoded if it is one-dimensional."""
    import mindspore.dataset as ds

    from src.data.transforms import train_ops

    data = dataclasses.replace(data, image_shape=(3, side, side), data_val_resize=resize or side)
    config = Config(data=data, augmentation=dataclasses.replace(OFF, **options))
    ops = train_ops(config, value.ndim == 1, (side, side), seed)
    ds.config.set_seed(seed)
    dataset = ds.GeneratorDataset([value] * times, ["image"], shuffle=False)
    dataset = dataset.map(ops, "image", num_parallel_workers=workers)
    return np.stack([out for (out,) in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)])


def plain(red: int, green: int, blue: int) -> np.ndarray:
    return np.full((SIDE, SIDE, 3), (red, green, blue), np.uint8)


def colours(outs: np.ndarray) -> np.ndarray:
    """The colour of each uniform image, (times, 3)."""
    assert (outs == outs[:, :, :1, :1]).all()
    return outs[:, :, 0, 0]


def spread(values: np.ndarray, low: float, high: float, tolerance: float) -> None:
    """They fill a range: nothing outside, the ends nearly reached, the mean in its middle."""
    assert values.min() >= low - tolerance
    assert values.max() <= high + tolerance
    reach = 0.05 * (high - low) + tolerance
    assert values.min() <= low + reach
    assert values.max() >= high - reach
    assert values.mean() == pytest.approx((low + high) / 2, abs=0.1 * (high - low) + tolerance)


def test_off_means_off():
    rng = np.random.RandomState(0)
    image = rng.randint(0, 256, (SIDE, SIDE, 3)).astype(np.uint8)
    assert (augmented(image, 3) == image.transpose(2, 0, 1)).all()


def test_brightness_multiplies():
    spread(colours(augmented(plain(100, 100, 100), brightness=0.4))[:, 0], 60, 140, 1)


def test_contrast_multiplies_the_distance_from_the_mean():
    two = plain(50, 50, 50)
    two[SIDE // 2 :] = 150
    outs = augmented(two, contrast=0.4)
    spread(outs[:, 0, 0, 0], 30, 70, 1)
    np.testing.assert_allclose(outs[:, 0, 0, 0] + outs[:, 0, -1, 0], 200, atol=1.1)


def test_saturation_multiplies_the_distance_from_grey():
    grey = 0.299 * 200 + 0.587 * 100 + 0.114 * 50
    outs = colours(augmented(plain(200, 100, 50), saturation=0.4))
    spread(outs[:, 0], grey + 0.6 * (200 - grey), grey + 1.4 * (200 - grey), 1.5)
    spread(outs[:, 2], grey - 1.4 * (grey - 50), grey - 0.6 * (grey - 50), 1.5)


def hls(outs: np.ndarray) -> np.ndarray:
    return np.array([colorsys.rgb_to_hls(*(colour / 255)) for colour in outs.astype(float)])


def test_hue_is_added_on_a_circle_of_180():
    before = colorsys.rgb_to_hls(40 / 255, 200 / 255, 80 / 255)
    after = hls(colours(augmented(plain(40, 200, 80), max_random_h=18)))
    spread(after[:, 0] * 180, before[0] * 180 - 18, before[0] * 180 + 18, 1.5)
    np.testing.assert_allclose(after[:, 1:], np.tile(before[1:], (len(after), 1)), atol=0.01)


@pytest.mark.parametrize(
    ("option", "index", "kept"), [("max_random_s", 2, (0, 1)), ("max_random_l", 1, (0, 2))]
)
def test_saturation_and_lightness_of_hsl_are_added(option, index, kept):
    before = np.array(colorsys.rgb_to_hls(60 / 255, 130 / 255, 90 / 255))
    after = hls(colours(augmented(plain(60, 130, 90), 300, seed=3, **{option: 40.0})))
    # One image gives one draw with one seed: what is drawn follows from the pixels.
    assert len(np.unique(after[:, index])) == 1
    many = np.concatenate(
        [hls(colours(augmented(plain(60, 130, 90), 1, seed, **{option: 40.0}))) for seed in range(60)]
    )
    spread(many[:, index] * 255, before[index] * 255 - 40, before[index] * 255 + 40, 3)
    for k in kept:
        np.testing.assert_allclose(many[:, k], before[k], atol=0.02)


def test_hsl_agrees_with_the_definition_pixel_by_pixel():
    from src.data.colours import shift_hsl

    rng = np.random.RandomState(0)
    image = rng.randint(0, 256, (8, 8, 3)).astype(np.uint8)
    for ds, dl in ((0.2, 0), (-0.3, 0.1), (0, -0.4), (1, 0), (0, 1)):
        expected = np.empty((8, 8, 3))
        for place in np.ndindex(8, 8):
            h, l, s = colorsys.rgb_to_hls(*(image[place] / 255))  # noqa: E741
            s, l = min(max(s + ds, 0), 1), min(max(l + dl, 0), 1)  # noqa: E741
            expected[place] = np.multiply(colorsys.hls_to_rgb(h, l, s), 255)
        np.testing.assert_allclose(shift_hsl(image, ds, dl), expected, atol=0.51)
    grey = plain(90, 90, 90)
    assert (shift_hsl(grey, 1, 0) == grey).all()


def test_pca_noise_has_alexnets_deviations():
    values = np.array([55.46, 4.794, 1.148])
    vectors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    noise = colours(augmented(plain(128, 128, 128), 1500, pca_noise=0.1)) - 128.0
    expected = 0.01 * (vectors * values**2) @ vectors.T
    np.testing.assert_allclose(np.cov(noise.T), expected, rtol=0.15)
    np.testing.assert_allclose(noise.mean(0), 0, atol=0.6)


def line(side: int = 101) -> np.ndarray:
    """Black, with a white vertical line in the middle, one pixel wide."""
    image = np.zeros((side, side, 3), np.uint8)
    image[:, side // 2] = 255
    return image


def tilt(out: np.ndarray, margin: int = 25) -> float:
    """How far the line moves sideways for each row downwards."""
    middle = slice(margin, -margin)
    top, bottom = out[0, margin, middle].argmax(), out[0, -margin - 1, middle].argmax()
    return (bottom - top) / (out.shape[1] - 2 * margin - 1)


def test_rotation_has_the_angle_and_white_corners():
    outs = augmented(line(), side=101, max_random_rotate_angle=20)
    spread(np.degrees(np.arctan([tilt(out) for out in outs])), -20, 20, 1.5)
    assert (outs[:, :, 0, 0].max(0) == 255).all()


def test_shear_moves_rows_sideways_by_the_ratio():
    outs = augmented(line(), side=101, max_random_shear_ratio=0.2)
    spread(np.array([tilt(out) for out in outs]), -0.2, 0.2, 0.025)
    # Rotation would move columns too: the middle row stays where it is.
    assert (outs[:, 0, 50].argmax(1) == 50).all()


def ramp(side: int) -> np.ndarray:
    """Red tells the column, green the row, one level for a pixel."""
    y, x = np.mgrid[:side, :side]
    return np.stack([x, y, 0 * x], -1).astype(np.uint8)


def test_random_crops_lie_anywhere_and_others_in_the_centre():
    centre = augmented(ramp(64), 5, resize=64)
    assert (centre[:, 0, 0, 0] == 16).all()
    outs = augmented(ramp(64), 300, resize=64, random_crop=True)
    for start in (outs[:, 0, 0, 0], outs[:, 1, 0, 0]):
        assert set(start) == set(range(33))
    assert (outs[:, 0, 0, -1] - outs[:, 0, 0, 0] == 31).all()


def test_crop_sizes_are_drawn_in_pixels():
    outs = augmented(ramp(64), 300, resize=64, min_crop_size=16, max_crop_size=48)
    # A crop of n pixels, resized to 32, spans n - n/32 levels between its first and last pixel's centre.
    spans = (outs[:, 0, 0, -1] - outs[:, 0, 0, 0]) / (1 - 1 / SIDE)
    spread(spans, 16, 48, 1.1)
    assert outs[:, 0, 0, 0] + outs[:, 0, 0, -1] == pytest.approx(63, abs=1.1)


def test_a_random_scale_resizes_before_the_crop():
    outs = augmented(ramp(128), 300, resize=64, min_random_scale=0.5, max_random_scale=2.0)
    # Resized to s x 64, the ramp of 128 levels has 2 / s levels a pixel.
    scales = 2 / ((outs[:, 0, 0, -1] - outs[:, 0, 0, 0]) / (SIDE - 1))
    spread(scales, 0.5, 2.0, 0.05)


def test_erasing_paints_rectangles_of_the_mean_colour_with_the_probability():
    data = Data(rgb_mean=(10, 20, 30))
    rng = np.random.RandomState(0)
    images = rng.randint(40, 256, (400, SIDE, SIDE, 3)).astype(np.uint8)
    outs = np.concatenate([augmented(image, 1, data=data, random_erasing=0.25) for image in images[:8]])
    assert outs.shape == (8, 3, SIDE, SIDE)

    from src.data.erasing import EraseRectangle

    erase, areas = EraseRectangle(0, 0.25), []
    for image in images:
        out = erase(image.transpose(2, 0, 1).astype(np.float32))
        erased = (out == 0).all(0)
        rows, columns = erased.any(1), erased.any(0)
        assert erased.sum() == rows.sum() * columns.sum()
        areas.append(erased.mean())
    hit = np.array([area for area in areas if area > 0])
    assert 0.18 < len(hit) / len(images) < 0.32
    spread(hit, 0.02, 0.33, 0.03)


def test_erasing_comes_after_normalisation():
    data = Data(rgb_mean=(10, 20, 30))
    outs = augmented(plain(200, 200, 200), 1, data=data, random_erasing=1.0)
    assert sorted(np.unique(outs[0, 0]).tolist())[0] == 0
    assert 0.01 < (outs[0, 0] == 0).mean() < 0.4


RANDOM = {
    "mirror": {"random_mirror": True},
    "crop": {"random_crop": True},
    "crop size": {"min_crop_size": 16, "max_crop_size": 40},
    "scale": {"min_random_scale": 0.8, "max_random_scale": 1.2},
    "rotation": {"max_random_rotate_angle": 20.0, "max_random_shear_ratio": 0.1},
    "colours": {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "max_random_h": 20.0},
    "hsl": {"random_crop": True, "max_random_s": 40.0, "max_random_l": 40.0},
    "pca": {"pca_noise": 0.1},
    "randaugment": {"random_crop": True, "auto_augment": "randaugment"},
    "trivialaugment": {"random_crop": True, "auto_augment": "trivialaugment"},
    "autoaugment": {"auto_augment": "autoaugment"},
    "erasing": {"random_crop": True, "random_erasing": 0.9},
    "areas": {"random_resized_crop": True},
}


@pytest.mark.parametrize("options", RANDOM.values(), ids=RANDOM)
def test_one_seed_gives_one_outcome_and_another_seed_another(options):
    image = photo(80, 60)
    first, again, other = (augmented(image, 12, seed, resize=50, **options) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert len({out.tobytes() for out in first}) > 1


def test_threads_do_not_change_what_python_operators_draw():
    """MindSpore's own draw in each thread for itself; ours follow from the pixels."""
    image = ramp(SIDE)
    images = [(image + k).astype(np.uint8) for k in range(24)]
    import mindspore.dataset as ds

    from src.data.transforms import train_ops

    options = dataclasses.replace(OFF, auto_augment="randaugment", random_erasing=0.5, max_random_s=30.0)
    config = Config(data=dataclasses.replace(PLAIN, image_shape=(3, SIDE, SIDE), data_val_resize=SIDE),
                    augmentation=options)  # fmt: skip
    outcomes = []
    for workers in (1, 2):
        dataset = ds.GeneratorDataset(images, ["image"], shuffle=False)
        dataset = dataset.map(
            train_ops(config, False, (SIDE, SIDE), 5), "image", num_parallel_workers=workers
        )
        outcomes.append(
            np.stack([o for (o,) in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)])
        )
    assert (outcomes[0] == outcomes[1]).all()
