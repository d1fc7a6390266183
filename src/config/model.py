"""Options of the network."""

import dataclasses
from pathlib import Path
from typing import Literal, Optional

import tyro
from typing_extensions import Annotated


@dataclasses.dataclass(frozen=True)
class Model:
    """The network."""

    arch: Literal["resnetv1", "resnetv15", "resnextv1", "resnextv15", "xception"] = "resnetv15"
    """v1.5 strides in the 3x3 convolution of a bottleneck, v1 in the first 1x1"""
    num_layers: Literal[18, 34, 50, 101, 152] = 50
    """depth of resnet, or of resnext from 50 on; 18 and 34 have no bottleneck: v1 and v1.5 are the same"""
    num_groups: int = 32
    """groups of a resnext's 3x3 convolutions (its cardinality)"""
    width_per_group: int = 4
    """channels of each such group in the first stage; doubled from stage to stage"""
    num_classes: Optional[int] = None
    """classes of the head; read from the data set unless given (synthetic data: 1000)"""
    batchnorm_eps: float = 1e-5
    """added to the batch variance"""
    batchnorm_mom: float = 0.9
    """share of the old value kept in the moving mean and variance"""
    pretrained: Annotated[Optional[Path], tyro.conf.arg(metavar="FILE")] = None
    """weights to begin a new run with (.safetensors, also with PyTorch's names, or .ckpt), all but a head
    for another number of classes, which is drawn anew; see --freeze"""
    freeze: Literal[0, 1, 2, 3, 4, 5] = 0
    """keep the first stages as loaded, batch norm statistics too: 0 none, 1 the stem, 2 also layer1, ...,
    5 all but the head; the stages of xception end with stem, block1, block2, block11 and bn4"""

    @property
    def family(self) -> str:
        """resnet, resnext or xception."""
        return self.arch.split("v")[0]

    @property
    def title(self) -> str:
        """The network as a person calls it: `resnetv15 50`, `resnextv1 101 32x4d`, `xception`."""
        groups = {"resnext": f" {self.num_layers} {self.num_groups}x{self.width_per_group}d"}
        return self.arch + groups.get(self.family, f" {self.num_layers}" if self.family == "resnet" else "")
