"""The lists of operators do what they say."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest
from PIL import Image

from src.config import Augmentation, Config, Data, Pipeline

PLAIN = Data(rgb_mean=(0, 0, 0), rgb_std=(1, 1, 1))


def photo(width: int, height: int) -> np.ndarray:
    """A smooth colour picture as JPEG bytes."""
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([255 * x / width, 255 * y / height, 128 + 0 * x], -1).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=95)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def apply_many(ops: list, value: np.ndarray, times: int) -> list[np.ndarray]:
    """The operators in a pipeline over the same image again and again, as training uses them."""
    import mindspore.dataset as ds

    ds.config.set_seed(1)
    dataset = ds.GeneratorDataset([value] * times, ["image"], shuffle=False).map(ops, "image")
    return [out for (out,) in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def apply(ops: list, value: np.ndarray) -> np.ndarray:
    for op in ops:
        value = op(value)
    return value


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest"])
def test_validation_resizes_the_shorter_side_and_takes_the_centre(interpolation):
    from src.data.transforms import val_ops

    config = Config(data=dataclasses.replace(PLAIN, interpolation=interpolation))
    out = apply(val_ops(config, encoded=True), photo(500, 375))
    assert out.shape == (3, 224, 224)
    # Shorter side 375 -> 256, longer 500 -> 341; the centre 224 begins at column 58.5 and row 16 of that.
    assert out[0, 0, 0] == pytest.approx(255 * 58.5 / 341, abs=4)
    assert out[1, 0, 0] == pytest.approx(255 * 16 / 256, abs=4)
    assert out[0, 0, -1] == pytest.approx(255 * (58.5 + 224) / 341, abs=4)
    assert out[2].mean() == pytest.approx(128, abs=3)


@pytest.mark.parametrize("fused", [True, False])
def test_a_random_crop_has_the_size_and_spread_that_was_asked_for(fused):
    from src.data.transforms import train_ops

    config = Config(
        data=dataclasses.replace(PLAIN, image_shape=(3, 64, 64)),
        pipeline=Pipeline(fuse_decoder=fused),
        augmentation=Augmentation(min_random_area=0.25, max_random_area=0.25, random_mirror=False,
                                  min_random_aspect_ratio=1.0, max_random_aspect_ratio=1.0),
    )  # fmt: skip
    starts = []
    for out in apply_many(train_ops(config, True, config.train_size(0), seed=1), photo(400, 400), 8):
        assert out.shape == (3, 64, 64)
        # A quarter of the area of a square is half its width: half of the ramp is seen.
        assert out[0, :, -1].mean() - out[0, :, 0].mean() == pytest.approx(127, abs=8)
        starts.append(out[0, 0, 0])
    assert max(starts) - min(starts) > 20


def test_mirroring_flips_about_half_of_the_images():
    from src.data.transforms import train_ops

    config = Config(
        data=dataclasses.replace(PLAIN, image_shape=(3, 64, 64)),
        augmentation=Augmentation(random_resized_crop=False),
    )
    outs = apply_many(train_ops(config, True, config.train_size(0), seed=1), photo(80, 80), 60)
    flipped = sum(out[0, 0, 0] > 128 for out in outs)
    assert 12 < flipped < 48


def test_gray_and_palette_files_become_three_channels():
    from src.data.transforms import val_ops

    ops = val_ops(Config(data=PLAIN), encoded=True)
    for mode in ("L", "P", "RGBA"):
        buffer = io.BytesIO()
        Image.new("RGB", (300, 300), (90, 90, 90)).convert(mode, palette=Image.Palette.ADAPTIVE).save(
            buffer, "PNG"
        )
        out = apply(ops, np.frombuffer(buffer.getvalue(), np.uint8))
        assert out.shape == (3, 224, 224)
        assert out == pytest.approx(np.full_like(out, 90), abs=1)


def test_transposing_before_normalising_gives_the_same_bits():
    """All 256 values in each channel, beside MindSpore's operators in the usual order."""
    from mindspore.dataset import vision

    from src.data.transforms import _to_network

    data = Data()
    pixels = np.stack([np.roll(np.arange(256, dtype=np.uint8), c).reshape(16, 16) for c in range(3)], -1)
    usual = [vision.Normalize(list(data.rgb_mean), list(data.rgb_std), is_hwc=True), vision.HWC2CHW()]
    ours, theirs = apply(_to_network(Config()), pixels), apply(usual, pixels)
    assert (ours.shape, ours.dtype) == ((3, 16, 16), np.float32)
    np.testing.assert_array_equal(ours.view(np.int32), theirs.view(np.int32))
