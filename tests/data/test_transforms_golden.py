"""Preprocessing of validation against values of an independent implementation (Pillow and NumPy)."""

from __future__ import annotations

import dataclasses
import json
import zlib

import numpy as np
import pytest

from src.config import Config, Data
from tests.support import ROOT

FOLDER = ROOT / "tests" / "golden"
GOLDEN = json.loads((FOLDER / "preprocessing.json").read_text(encoding="utf-8"))
NAMES = sorted(path.name for path in (FOLDER / "images").iterdir())
RAW = Data(rgb_mean=(0, 0, 0), rgb_std=(1, 1, 1))


def preprocessed(data: Data, file: np.ndarray) -> np.ndarray:
    """(224, 224, 3)"""
    from src.data.transforms import val_ops

    for op in val_ops(Config(data=data), encoded=True):
        file = op(file)
    return np.ascontiguousarray(np.asarray(file).transpose(1, 2, 0), np.float64)


@pytest.fixture(params=NAMES)
def picture(request) -> tuple[np.ndarray, dict]:
    return np.fromfile(FOLDER / "images" / request.param, np.uint8), GOLDEN["images"][request.param]


def test_files_decode_to_the_same_pixels(picture):
    from mindspore.dataset import vision

    file, expected = picture
    assert zlib.crc32(file) == expected["file_crc32"]
    assert zlib.crc32(vision.Decode()(file)) == expected["decoded_crc32"]


def test_antialiased_bilinear_is_pillows_in_every_pixel(picture):
    file, expected = picture
    out = preprocessed(dataclasses.replace(RAW, val_interpolation="pillow-bilinear"), file)
    assert zlib.crc32(out.astype(np.uint8)) == expected["pil_bilinear_antialias"]["crop_crc32"]


def test_plain_bilinear_is_within_one_level(picture):
    file, expected = picture
    places, expected = GOLDEN["grid_rows_and_cols"], expected["bilinear_no_antialias"]
    out = preprocessed(RAW, file)
    assert np.abs(out[places][:, places] - expected["grid_uint8"]).max() <= 1
    # MindSpore's fixed-point rounding leaves pixels 0.13 levels darker.
    np.testing.assert_allclose(out.mean((0, 1)), expected["uint8_mean"], atol=0.15)


def test_pillow_bicubic_is_pillows_in_every_pixel(picture):
    from mindspore.dataset import vision
    from PIL import Image

    file, expected = picture
    decoded = Image.fromarray(vision.Decode()(file))
    left, top = expected["crop_left_top"]
    resized = decoded.resize(expected["resized_wh"], Image.Resampling.BICUBIC)
    out = preprocessed(dataclasses.replace(RAW, val_interpolation="pillow-bicubic"), file)
    assert (out == np.asarray(resized)[top : top + 224, left : left + 224]).all()


def test_pixels_are_normalised_on_the_scale_of_0_to_255(picture):
    file, expected = picture
    data = Data(
        rgb_mean=tuple(GOLDEN["mean"]), rgb_std=tuple(GOLDEN["std"]), val_interpolation="pillow-bilinear"
    )
    assert (data.rgb_mean, data.rgb_std) == (Data().rgb_mean, Data().rgb_std)
    out, expected = preprocessed(data, file), expected["pil_bilinear_antialias"]
    np.testing.assert_allclose(out[0, 0], expected["normalised_at_0_0"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out.mean((0, 1)), expected["normalised_mean"], rtol=1e-4)
    np.testing.assert_allclose(out.std((0, 1)), expected["normalised_std"], rtol=1e-4)


@pytest.mark.parametrize("case", GOLDEN["resized_sizes"], ids=lambda case: "x".join(map(str, case["wh"])))
def test_the_longer_side_is_floored(case):
    from mindspore.dataset import vision

    from src.data.resizing import INTERPOLATION, PillowBilinear

    width, height = case["wh"]
    black = np.zeros((height, width, 3), np.uint8)
    kinds = [vision.Resize(256, INTERPOLATION[kind]) for kind in ("bilinear", "area", "pillow-bicubic")]
    for resize in (*kinds, PillowBilinear(256)):
        assert list(resize(black).shape[1::-1]) == case["floor"]
