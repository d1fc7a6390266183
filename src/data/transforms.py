"""Preprocessing as lists of operators: reading a list is knowing what an image goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindspore.dataset import vision
from mindspore.dataset.vision import Inter

if TYPE_CHECKING:
    from src.config import Config

INTERPOLATION = {"bilinear": Inter.LINEAR, "bicubic": Inter.BICUBIC, "nearest": Inter.NEAREST}
CROP_ATTEMPTS = 10  # of the random crop, then the centre is taken (Szegedy et al. 2014, as published since)


def train_ops(config: Config, encoded: bool) -> list:
    """File bytes (or uint8 pixels, if not `encoded`) -> augmented float32 (3, height, width)."""
    if config.augmentation.random_resized_crop:
        ops = _random_crop(config, encoded)
    else:
        ops = _centre_crop(config, encoded)
    if config.augmentation.random_mirror:
        ops.append(vision.RandomHorizontalFlip(0.5))
    return ops + _to_network(config)


def val_ops(config: Config, encoded: bool) -> list:
    """File bytes (or uint8 pixels) -> float32 (3, height, width): shorter side resized, centre cropped."""
    return _centre_crop(config, encoded) + _to_network(config)


def _random_crop(config: Config, encoded: bool) -> list:
    a, size = config.augmentation, config.data.image_shape[1:]
    arguments = (
        size,
        (a.min_random_area, a.max_random_area),
        (a.min_random_aspect_ratio, a.max_random_aspect_ratio),
        INTERPOLATION[config.data.interpolation],
        CROP_ATTEMPTS,
    )
    if encoded and config.pipeline.fuse_decoder:
        return [vision.RandomCropDecodeResize(*arguments)]
    decode = [vision.Decode()] if encoded else []
    return [*decode, vision.RandomResizedCrop(*arguments)]


def _centre_crop(config: Config, encoded: bool) -> list:
    decode = [vision.Decode()] if encoded else []
    resize = vision.Resize(config.val_resize, INTERPOLATION[config.data.interpolation])
    return [*decode, resize, vision.CenterCrop(config.data.image_shape[1:])]


def _to_network(config: Config) -> list:
    data = config.data
    return [vision.Normalize(list(data.rgb_mean), list(data.rgb_std), is_hwc=True), vision.HWC2CHW()]
