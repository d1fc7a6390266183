"""Options of the network."""

import dataclasses
from typing import Literal, Optional


@dataclasses.dataclass(frozen=True)
class Model:
    """The network."""

    arch: Literal["resnetv1", "resnetv15"] = "resnetv15"
    """v1.5 strides in the 3x3 convolution of a bottleneck, v1 in the first 1x1"""
    num_layers: Literal[18, 34, 50, 101, 152] = 50
    """depth; 18 and 34 have no bottleneck, so v1 and v1.5 are the same there"""
    num_classes: Optional[int] = None
    """classes of the head; read from the data set unless given (synthetic data: 1000)"""
    batchnorm_eps: float = 1e-5
    """added to the batch variance"""
    batchnorm_mom: float = 0.9
    """share of the old value kept in the moving mean and variance"""
