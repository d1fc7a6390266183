"""Every option of the suite, once: its name, type, default and help. Nothing here imports MindSpore.

The dataclasses are the sections of `--help`; the field `batch_size` is the option `--batch-size` and the key
`batch-size` of a recipe. Types use `typing` names because they are read at run time, on Python 3.9 too.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, Dict, Literal, Optional, Tuple

import tyro
from typing_extensions import Annotated

LR_BASE_BATCH = 256  # the published rate 0.256 is stated for 256 images (Goyal et al. 2017, linear scaling)
IMAGENET_TRAIN_IMAGES = 1_281_167
VAL_RESIZE_RATIO = 256 / 224  # published evaluation: shorter side 256, centre 224


def _alias(*names: str):
    return tyro.conf.arg(aliases=list(names))


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


@dataclasses.dataclass(frozen=True)
class Training:
    """What is run, and the optimisation."""

    mode: Literal["train_val", "train", "val", "pred"] = "train_val"
    """train and validate after each epoch; only train; score a checkpoint; classify images"""
    seed: Optional[int] = None
    """of weights, order and augmentation; drawn and recorded unless given"""
    batch_size: Annotated[int, _alias("-b")] = 192
    """images per device and step"""
    num_epochs: Annotated[int, _alias("-e")] = 90
    """epochs that the learning-rate schedule spans"""
    run_epochs: Optional[int] = None
    """end this run after so many epochs; the schedule still spans --num-epochs"""
    lr: Annotated[float, _alias("-l")] = 0.256
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


@dataclasses.dataclass(frozen=True)
class Data:
    """Where images come from, and their form at the network's door."""

    data_root: Path = Path("/data/imagenet/train-val-mindrecord")
    """folder with train/ and val/"""
    data_train: Optional[Path] = None
    """the training set, if not DATA_ROOT/train"""
    data_val: Optional[Path] = None
    """the validation set, if not DATA_ROOT/val"""
    data_pred: Optional[str] = None
    """an image, a folder or a glob to classify (--mode pred)"""
    data_backend: Literal["mindrecord", "imagefolder", "generator", "synthetic"] = "mindrecord"
    """records made by scripts/, class folders of image files, your own Python source, or made-up images"""
    data_source: Annotated[Optional[Path], tyro.conf.arg(metavar="FILE.py")] = None
    """for --data-backend generator: a file with a function open_split(split, folder); see docs/own-data.md"""
    image_shape: Tuple[int, int, int] = (3, 224, 224)
    """channels, height, width fed to the network"""
    rgb_mean: Tuple[float, float, float] = (123.68, 116.779, 103.939)
    """subtracted from pixels of 0..255"""
    rgb_std: Tuple[float, float, float] = (58.393, 57.12, 57.375)
    """divides what is left"""
    data_val_resize: Optional[int] = None
    """shorter side before the centre crop, in pixels; unless given 8/7 of the image size (256 for 224)"""
    num_examples: Optional[int] = None
    """use only so many training images; for synthetic data the size of the set (unless given 1281167)"""
    interpolation: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    """resizing of training crops and validation images"""


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """How the input pipeline runs."""

    data_threads: Optional[int] = None
    """decoding threads of each process; unless given the process's share of the cores, at most 8"""
    data_validation_threads: Optional[int] = None
    """the same for validation; unless given as --data-threads"""
    prefetch_queue: int = 16
    """batches kept ready"""
    fuse_decoder: bool = True
    """decode only the part of a JPEG that the random crop keeps"""
    separ_val: bool = False
    """every process validates the whole set, instead of its share"""


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


@dataclasses.dataclass(frozen=True)
class Output:
    """What is read and written besides data."""

    config: Annotated[Optional[Path], tyro.conf.arg(metavar="FILE.yaml")] = dataclasses.field(
        default=None, compare=False
    )
    """a recipe: a saved command line; options given on the command line win over it"""
    workspace: Path = Path(".")
    """folder of everything the run writes; it holds one run"""
    overwrite: bool = False
    """move the files of another run in the workspace aside, into previous-N/"""
    model_prefix: str = "model"
    """checkpoints are called PREFIX_best, PREFIX_last, PREFIX_0007"""
    save_frequency: int = -1
    """-1: the best and the last checkpoint; K: another every K epochs; 0: none at all"""
    load: Optional[Path] = None
    """checkpoint whose weights to start from, to score, or to predict with (.safetensors or .ckpt); for
    the last two it also supplies the options of network and image that are not given"""
    resume: str = "auto"
    """auto: continue the same run if the workspace holds it; a checkpoint: continue it; off: start anew"""
    log: str = "log.log"
    """text log, in the workspace"""
    dllogger_log: str = "dllogger_log.log"
    """dllogger lines, in the workspace"""
    report: str = "report.json"
    """the report, in the workspace"""


@dataclasses.dataclass(frozen=True)
class Platform:
    """The machine."""

    device_target: Literal["auto", "Ascend", "GPU", "CPU"] = "auto"
    """auto: the first of Ascend, GPU and CPU that the machine and the installed MindSpore have"""


@dataclasses.dataclass(frozen=True)
class Config:
    """Train, validate and use ResNet on ImageNet, or on any folder of classes, with MindSpore."""

    model: Model = dataclasses.field(default_factory=Model)
    training: Training = dataclasses.field(default_factory=Training)
    data: Data = dataclasses.field(default_factory=Data)
    pipeline: Pipeline = dataclasses.field(default_factory=Pipeline)
    augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)
    output: Output = dataclasses.field(default_factory=Output)
    platform: Platform = dataclasses.field(default_factory=Platform)

    @property
    def trains(self) -> bool:
        return self.training.mode in ("train_val", "train") and not self.training.test_io

    @property
    def validates(self) -> bool:
        return self.training.mode in ("train_val", "val") and not self.training.test_io

    @property
    def train_folder(self) -> Path:
        return self.data.data_train or self.data.data_root / "train"

    @property
    def val_folder(self) -> Path:
        return self.data.data_val or self.data.data_root / "val"

    @property
    def val_resize(self) -> int:
        """Shorter side before the centre crop, in pixels."""
        return self.data.data_val_resize or round(max(self.data.image_shape[1:]) * VAL_RESIZE_RATIO)

    def peak_lr(self, global_batch_size: int) -> float:
        return self.training.lr * global_batch_size / LR_BASE_BATCH

    def flat(self) -> Dict[str, object]:
        """Option name (with dashes) -> value, in the order of --help."""
        return {
            field.name.replace("_", "-"): getattr(section, field.name)
            for section in (getattr(self, f.name) for f in dataclasses.fields(self))
            for field in dataclasses.fields(section)
        }

    def plain(self) -> Dict[str, Any]:
        """`flat` as JSON holds it: paths as text, tuples as lists."""
        plain: Dict[str, Any] = json.loads(json.dumps(self.flat(), default=str))
        return plain


@dataclasses.dataclass(frozen=True)
class Launch:
    """Processes that runner starts."""

    num_devices: Annotated[int, _alias("-n")] = 1
    """devices to train on, one process each"""
    dry_run: bool = False
    """print the resolved configuration and the commands; start nothing"""


@dataclasses.dataclass(frozen=True)
class RunnerConfig(Config):
    """Train, validate and use ResNet on one or many devices: one supervised train.py per device."""

    launch: Launch = dataclasses.field(default_factory=Launch)

    def for_rank(self) -> Config:
        """The same options without runner's own."""
        return Config(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Config)})
