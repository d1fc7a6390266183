"""Options of what happens to training images."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """What happens to training images."""

    random_resized_crop: bool = True
    """crop a random area and aspect ratio; off: resize and crop the centre, as validation does"""
    min_random_area: float = 0.08
    """smallest share of the image that a random crop keeps"""
    max_random_area: float = 1.0
    """largest share"""
    min_random_aspect_ratio: float = 0.75
    """narrowest crop, width over height"""
    max_random_aspect_ratio: float = 1.333
    """widest crop"""
    random_mirror: bool = True
    """flip left and right with probability 0.5"""
