"""Options of what is written, of the machine, and of the processes."""

import dataclasses
from pathlib import Path
from typing import Literal, Optional

import tyro
from typing_extensions import Annotated

from src.config.spelling import alias


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
    save_every_steps: Optional[int] = None
    """save the last checkpoint also within epochs, every so many steps"""
    save_every_minutes: Optional[float] = None
    """the same, when so many minutes have passed since the last one"""
    keep: Optional[int] = None
    """of the checkpoints of every K epochs keep only the newest so many; the best and the last always stay"""
    load: Optional[Path] = None
    """checkpoint whose weights to start from, to score, or to predict with (.safetensors or .ckpt); for
    the last two it also supplies the options of network and image that are not given"""
    use_ema: bool = False
    """take the moving average of the weights (--ema) from --load, not the weights themselves"""
    resume: str = "auto"
    """auto: continue the same run if the workspace holds it; a checkpoint: continue it, also with another
    number of devices, batch size, rate or number of epochs; off: start anew"""
    log: str = "log.log"
    """text log, in the workspace"""
    dllogger_log: str = "dllogger_log.log"
    """dllogger lines, in the workspace"""
    report: str = "report.json"
    """the report, in the workspace"""
    profile: int = 0
    """profile so many steps of the first epoch, after its first 5, and say where their time goes; 0 none"""
    tensorboard: bool = False
    """write event files for TensorBoard too, into tensorboard/ in the workspace (pip install tensorboardX)"""


@dataclasses.dataclass(frozen=True)
class Platform:
    """The machine."""

    device_target: Literal["auto", "Ascend", "GPU", "CPU"] = "auto"
    """auto: the first of Ascend, GPU and CPU that the machine and the installed MindSpore have"""


@dataclasses.dataclass(frozen=True)
class Launch:
    """Processes that runner starts."""

    num_devices: Annotated[int, alias("-n")] = 1
    """devices to train on, one process each"""
    dry_run: bool = False
    """print the resolved configuration and the commands; start nothing"""
