"""Preprocessing as lists of operators: reading a list is knowing what an image goes through."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mindspore.dataset import transforms, vision
from mindspore.dataset.vision import Inter

from src.data.colours import ShiftSaturationLightness
from src.data.erasing import EraseRectangle
from src.data.randaugment import RandAugment
from src.data.resizing import INTERPOLATION, PillowBilinear
from src.data.trivialaugment import TrivialAugment

if TYPE_CHECKING:
    from src.config import Config

CROP_ATTEMPTS = 10  # of the random crop, then the centre is taken (Szegedy et al. 2014, as published since)
HUE_CIRCLE = 180  # of OpenCV and so of MXNet; MindSpore's is 1
CORNERS = (255, 255, 255)  # what rotation and shear leave open; as MXNet fills them


def train_ops(config: Config, encoded: bool, size: tuple[int, int], seed: int) -> list:
    """File bytes (or uint8 pixels, if not `encoded`) -> augmented float32 (3, height, width) of `size`.

    Of uint8 with --normalize-on-device (train/normalizing.py). Colours are changed as uint8. `seed` is for
    the operators that MindSpore does not have.
    """
    a = config.augmentation
    if a.random_resized_crop:
        ops = _random_resized_crop(config, encoded, size)
    else:
        ops = _decode(encoded) + _affine(config) + _crop(config, size)
    if a.random_mirror:
        ops.append(vision.RandomHorizontalFlip(0.5))
    ops += _auto_augment(config, seed) + _colours(config, seed)
    ops += _to_network(config, normalizes=not config.pipeline.normalize_on_device)
    if a.random_erasing:
        ops.append(EraseRectangle(seed, a.random_erasing))
    return ops


def val_ops(config: Config, encoded: bool) -> list:
    """File bytes (or uint8 pixels) -> float32 (3, height, width): shorter side resized, centre cropped."""
    kind = config.data.val_interpolation or config.data.interpolation
    if kind == "pillow-bilinear":
        resize = PillowBilinear(config.val_resize)
    else:
        resize = vision.Resize(config.val_resize, INTERPOLATION[kind])
    return [*_decode(encoded), resize, vision.CenterCrop(config.val_size), *_to_network(config)]


def _decode(encoded: bool) -> list:
    return [vision.Decode()] if encoded else []


def _random_resized_crop(config: Config, encoded: bool, size: tuple[int, int]) -> list:
    a, affine = config.augmentation, _affine(config)
    arguments = (
        size,
        (a.min_random_area, a.max_random_area),
        (a.min_random_aspect_ratio, a.max_random_aspect_ratio),
        INTERPOLATION[config.data.interpolation],
        CROP_ATTEMPTS,
    )
    if encoded and config.pipeline.fuse_decoder and not affine:
        return [vision.RandomCropDecodeResize(*arguments)]
    return [*_decode(encoded), *affine, vision.RandomResizedCrop(*arguments)]


def _affine(config: Config) -> list:
    """Rotation and shear of the whole image, which keeps its size."""
    a = config.augmentation
    angle, ratio = a.max_random_rotate_angle, a.max_random_shear_ratio
    if not angle and not ratio:
        return []
    shear = math.degrees(math.atan(ratio)) if ratio else None
    return [vision.RandomAffine(angle, shear=shear, resample=Inter.LINEAR, fill_value=CORNERS)]


def _crop(config: Config, size: tuple[int, int]) -> list:
    """Without random areas: resize, to a random size if asked for, and crop a fixed or a random size."""
    a, kind = config.augmentation, INTERPOLATION[config.data.interpolation]
    shorter = config.train_resize(size)
    resize = _one_of(
        [vision.Resize(side, kind) for side in _sides(shorter, a.min_random_scale, a.max_random_scale)]
    )
    crop = vision.RandomCrop if a.random_crop else vision.CenterCrop
    if not a.max_crop_size:
        return [resize, crop(size)]
    squares = [crop(side) for side in range(a.min_crop_size, a.max_crop_size + 1)]
    return [resize, _one_of(squares), vision.Resize(size, kind)]


def _sides(shorter: int, low: float, high: float) -> range:
    return range(round(shorter * low), round(shorter * high) + 1)


def _one_of(ops: list) -> object:
    """A random one of these, each equally likely."""
    return ops[0] if len(ops) == 1 else transforms.RandomChoice(ops)


def _auto_augment(config: Config, seed: int) -> list:
    a, (red, green, blue) = config.augmentation, config.data.rgb_mean
    mean = round(red), round(green), round(blue)
    if a.auto_augment == "randaugment":
        magnitude, deviation = a.randaugment_magnitude, a.randaugment_magnitude_std
        return [RandAugment(seed, magnitude, deviation, a.randaugment_ops, mean)]
    if a.auto_augment == "trivialaugment":
        return [TrivialAugment(seed)]
    if a.auto_augment == "autoaugment":
        return [vision.AutoAugment(interpolation=Inter.LINEAR)]
    return []


def _colours(config: Config, seed: int) -> list:
    a, ops = config.augmentation, []
    if a.brightness or a.contrast or a.saturation or a.max_random_h:
        hue = a.max_random_h / HUE_CIRCLE
        ops.append(vision.RandomColorAdjust(a.brightness, a.contrast, a.saturation, hue))
    if a.max_random_s or a.max_random_l:
        ops.append(ShiftSaturationLightness(seed, a.max_random_s, a.max_random_l))
    if a.pca_noise:
        ops.append(vision.RandomLighting(a.pca_noise))
    return ops


def _to_network(config: Config, normalizes: bool = True) -> list:
    data = config.data
    # Transposed first, while a pixel is one byte: the same bits as the other way round, in 5/6 of the time.
    ops: list = [vision.HWC2CHW()]
    if normalizes:
        ops.append(vision.Normalize(list(data.rgb_mean), list(data.rgb_std), is_hwc=False))
    return ops
