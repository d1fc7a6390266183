"""Options of what happens to training images."""

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """What happens to training images, in this order: rotate and shear, crop, mirror, colours, erase."""

    random_resized_crop: bool = True
    """crop a random area and aspect ratio; off: resize the shorter side as validation does, then crop"""
    min_random_area: float = 0.08
    """smallest share of the image that a random crop keeps"""
    max_random_area: float = 1.0
    """largest share"""
    min_random_aspect_ratio: float = 0.75
    """narrowest crop, width over height"""
    max_random_aspect_ratio: float = 1.333
    """widest crop"""
    random_crop: bool = False
    """with --no-random-resized-crop: crop anywhere, instead of in the centre"""
    min_crop_size: int = 0
    """with --no-random-resized-crop: crop a square of a random side, MIN to MAX pixels, and resize that;
    0: crop the size of the image"""
    max_crop_size: int = 0
    """largest side of that square; 0: none"""
    min_random_scale: float = 1.0
    """with --no-random-resized-crop: multiply the size before the crop by a random number, MIN to MAX"""
    max_random_scale: float = 1.0
    """largest of these numbers"""
    random_mirror: bool = True
    """flip left and right with probability 0.5"""
    max_random_rotate_angle: float = 0.0
    """rotate by -ANGLE to ANGLE degrees about the centre, before the crop; corners become white"""
    max_random_shear_ratio: float = 0.0
    """shift each row sideways by -RATIO to RATIO of its distance from the centre row, before the crop"""
    max_random_h: float = 0.0
    """add -H to H to the hue, where 180 is the whole circle"""
    max_random_s: float = 0.0
    """add -S to S to the saturation of HSL, where 255 is the full one"""
    max_random_l: float = 0.0
    """add -L to L to the lightness of HSL, where 255 is white"""
    brightness: float = 0.0
    """multiply pixels by 1-BRIGHTNESS to 1+BRIGHTNESS"""
    contrast: float = 0.0
    """multiply the distance from the image's mean grey by 1-CONTRAST to 1+CONTRAST"""
    saturation: float = 0.0
    """multiply each pixel's distance from its own grey by 1-SATURATION to 1+SATURATION"""
    pca_noise: float = 0.0
    """add colour noise along the principal components of ImageNet's colours, of this deviation (0.1 in
    AlexNet)"""
    auto_augment: Literal["none", "randaugment", "trivialaugment", "autoaugment"] = "none"
    """a policy of random operations: randaugment as in timm (its "increasing" set), trivialaugment (wide) or
    autoaugment (for ImageNet) as in torchvision"""
    randaugment_magnitude: float = 9.0
    """strength of RandAugment's operations, 0 to 10"""
    randaugment_magnitude_std: float = 0.5
    """standard deviation of that strength"""
    randaugment_ops: int = 2
    """operations for an image, each applied with probability 0.5"""
    random_erasing: float = 0.0
    """probability of painting a random rectangle, 2 to 33 % of the image, with the mean colour"""
