"""Options of what is run, and of the optimisation."""

import dataclasses
from typing import Literal, Optional, Tuple, Union

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
    """end this run after so many epochs; the schedule still spans --num-epochs. With --mode val: score so
    often (figures of speed)"""
    lr: Annotated[float, alias("-l")] = 0.256
    """peak learning rate per 256 images of global batch, for every optimizer"""
    lr_schedule: Literal["cosine", "multistep"] = "cosine"
    """shape after the warm-up"""
    lr_steps: Tuple[float, ...] = ()
    """epochs at which multistep multiplies the rate, or cosine restarts, by --lr-factor: 30,60,80"""
    lr_factor: Optional[float] = None
    """rate multiplier at each of --lr-steps; unless given 0.256 (cosine) or 0.1 (multistep)"""
    warmup_epochs: float = 5.0
    """epochs of linear warm-up from 0"""
    optimizer: Literal["sgd", "nag", "adamw", "lars", "lamb"] = "sgd"
    """SGD with momentum, plain or Nesterov; AdamW; layer-wise rates, with momentum (LARS) or Adam (LAMB)"""
    mom: float = 0.875
    """momentum of sgd, nag and lars"""
    adam_beta1: float = 0.9
    """decay of the mean of gradients in adamw and lamb"""
    adam_beta2: float = 0.999
    """decay of the mean of squared gradients in adamw and lamb"""
    adam_eps: Optional[float] = None
    """added to the divisor of adamw and lamb; unless given 1e-8 (adamw) or 1e-6 (lamb)"""
    trust_coefficient: float = 0.001
    """of lars: a layer's step is so much of its weights' size (eta of the paper)"""
    wd: float = 3.0517578125e-05
    """weight decay of convolution and dense parameters; decoupled from the gradient in adamw and lamb"""
    bn_weight_decay: bool = False
    """decay batch norm's gamma and beta too"""
    bias_weight_decay: bool = True
    """decay the bias of dense layers"""
    accumulation: int = 1
    """batches whose gradients are averaged into one update; global batch = devices x batch size x this"""
    grad_clip: float = 0.0
    """scale gradients down to this norm over all parameters; 0 never"""
    ema: float = 0.0
    """decay per update of a moving average of the weights, validated and saved beside them, by which the best
    checkpoint is then chosen; 0 keeps none"""
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    """type in which the network computes; weights, batch norm, loss and checkpoints stay float32"""
    amp: bool = False
    """only convolution and dense layers compute in --dtype, all else in float32"""
    loss_scale: Optional[Union[float, Literal["dynamic"]]] = None
    """factor on the loss, so that float16 holds its gradients; unless given dynamic with float16, else 1"""
    max_nonfinite_steps: int = 10
    """stop, with exit code 4, after so many updates in a row that were skipped as no gradient was finite, and
    no lower loss scale could help"""
    label_smoothing: float = 0.1
    """share of the target spread over all classes; validation never smooths"""
    mixup: float = 0.0
    """mix each image with another, its share drawn from Beta(MIXUP, MIXUP); 0 never"""
    cutmix: float = 0.0
    """paste a box of another image, its area drawn from Beta(CUTMIX, CUTMIX), one box per batch; 0 never;
    with --mixup too, each batch has one of the two"""
    loss: Literal["ce", "bce"] = "ce"
    """cross-entropy, or a binary cross-entropy for each class, their mean"""
    bce_threshold: Optional[float] = None
    """for --loss bce: targets above it become 1, all others 0; unless given they stay as they are"""
    disp_batches: int = 20
    """report progress every so many steps"""
    benchmark_iters: Optional[int] = None
    """run only so many steps of each epoch and each validation (figures of speed, not of accuracy); with it
    --mode val needs no --load"""
    metrics: bool = True
    """count top-1 and top-5 of the training batches; never with --mixup or --cutmix"""
    test_io: bool = False
    """measure the input pipeline alone, without a network"""
    test_io_mode: Literal["train", "val"] = "train"
    """which pipeline --test-io measures"""

    @property
    def mixes(self) -> bool:
        """Whether training images are mixed with each other."""
        return self.mixup > 0 or self.cutmix > 0

    @property
    def counts_right(self) -> bool:
        """Whether right answers are counted in training; for a mixed image there is no right answer."""
        return self.metrics and not self.mixes
