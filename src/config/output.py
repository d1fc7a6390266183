"""Options of what is written, of the machine, and of the processes."""

import dataclasses
from pathlib import Path
from typing import Literal, Optional, Tuple

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
    """take the moving average of the weights (--ema) from --load or --pretrained, not the weights themselves;
    refused where there is none"""
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
    compile_cache: Optional[Path] = None
    """folder for the compiled graph of the training step, which later runs with the same options start from;
    runs may share it; CPU only"""
    tensorboard: bool = False
    """write event files for TensorBoard too, into tensorboard/ in the workspace (pip install tensorboardX)"""


@dataclasses.dataclass(frozen=True)
class Platform:
    """The machine."""

    device_target: Literal["auto", "Ascend", "GPU", "CPU"] = "auto"
    """auto: the first of Ascend, GPU and CPU that the machine and the installed MindSpore have"""
    device_ids: Tuple[int, ...] = ()
    """which accelerators of this machine to use, one per rank (default: 0, 1, 2, ...)"""
    launcher: Literal["auto", "runner", "msrun", "mpirun", "slurm", "rank-table", "none"] = "auto"
    """what started this process as a rank; auto: what the environment's variables say; a name demands that
    they say it; none: ignore them, this process is alone"""
    data_url: Optional[str] = None
    """as ModelArts gives it: a local folder to use as --data-root, or an obs:// address to copy it from"""
    train_url: Optional[str] = None
    """as ModelArts gives it: a local folder to use as --workspace, or an obs:// address to send results to"""
    scratch: Optional[Path] = None
    """folder for copies from obs://; unless given /cache where there is one, else the temporary folder"""


@dataclasses.dataclass(frozen=True)
class Launch:
    """Processes that runner starts."""

    num_devices: Annotated[Optional[int], alias("-n")] = None
    """devices to train on, one process each; on several nodes, on each of them (default: 1; on ModelArts the
    container's). Global batch, learning rate and the shares of the data follow nodes x devices"""
    nodes: Optional[int] = None
    """machines of the run; start runner on each of them, with the same options but --node-rank (default: 1;
    ModelArts, and Slurm or MPI with one runner per node, tell it and the next two)"""
    node_rank: Optional[int] = None
    """which of the machines this is; 0 has rank 0, which writes report and checkpoints"""
    master_addr: Optional[str] = None
    """address of node 0, by which the others reach it"""
    master_port: Optional[int] = None
    """port on node 0 through which the ranks find each other (default: 8118; on one node any free one)"""
    bind: Literal["none", "cores", "numa"] = "none"
    """cores: give each rank an equal share of neighbouring cores; numa: each share within a NUMA node. The
    number of threads follows, and with it the last bits of results"""
    grace: float = 60.0
    """seconds that ranks have to save and end after SIGTERM or Ctrl-C; a second signal ends at once"""
    hang_timeout: float = 1800.0
    """end the run when for so many seconds no rank has given a sign of life or kept a core busy; one that
    hangs in start-up ends it within 10 s. 0: wait for ever in both cases"""
    dry_run: bool = False
    """print the resolved configuration and the commands; start nothing"""
