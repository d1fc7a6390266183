"""Options of what is run, and of the optimisation."""

import dataclasses
from typing import Literal, Optional, Tuple

from typing_extensions import Annotated

from src.config.spelling import alias


@dataclasses.dataclass(frozen=True)
class Training:
    """What is run, and the optimisation."""

    mode: Literal["train_val", "train", "val", "pred"] = "train_val"
    """train and validate after each epoch; only train; score a checkpoint; classify images"""
    seed: Optional[int] = None
    """of weights, order and augmentation; drawn and recorded unless given"""
    batch_size: Annotated[int, alias("-b")] = 192
    """images per device and step"""
    num_epochs: Annotated[int, alias("-e")] = 90
    """epochs that the learning-rate schedule spans"""
    run_epochs: Optional[int] = None
    """end this run after so many epochs; the schedule still spans --num-epochs"""
    lr: Annotated[float, alias("-l")] = 0.256
    """peak learning rate per 256 images of global batch"""
    lr_schedule: Literal["cosine", "multistep"] = "cosine"
    """shape after the warm-up"""
    lr_steps: Tuple[float, ...] = ()
    """epochs at which multistep multiplies the rate, or cosine restarts, by --lr-factor: 30,60,80"""
    lr_factor: Optional[float] = None
    """rate multiplier at each of --lr-steps; unless given 0.256 (cosine) or 0.1 (multistep)"""
    warmup_epochs: float = 5.0
    """epochs of linear warm-up from 0"""
    optimizer: Literal["sgd", "nag"] = "sgd"
    """SGD with momentum, plain or Nesterov"""
    mom: float = 0.875
    """momentum"""
    wd: float = 3.0517578125e-05
    """weight decay of convolution and dense parameters"""
    bn_weight_decay: bool = False
    """decay batch norm's gamma and beta too"""
    label_smoothing: float = 0.1
    """share of the target spread over all classes; validation never smooths"""
    disp_batches: int = 20
    """report progress every so many steps"""
    benchmark_iters: Optional[int] = None
    """run only so many steps of each epoch (figures of speed, not of accuracy)"""
    metrics: bool = True
    """count top-1 and top-5 of the training batches"""
    test_io: bool = False
    """measure the input pipeline alone, without a network"""
    test_io_mode: Literal["train", "val"] = "train"
    """which pipeline --test-io measures"""
