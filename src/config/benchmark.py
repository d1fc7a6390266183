"""Options of benchmark.py, which runs `runner` for each number of devices and each batch size."""

import dataclasses
import re
from pathlib import Path
from typing import Literal, Optional, Tuple

import tyro
from typing_extensions import Annotated

from src.config.spelling import alias

DURATION = re.compile(r"(?P<number>\d+\.?\d*|\.\d+)(?P<unit>[smhd]?)")
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What is measured. Every option of runner can be given too, and is passed on to each run."""

    num_devices: Annotated[Tuple[int, ...], alias("-n", "--ngpus"), tyro.conf.arg(metavar="N1,N2,...")] = (1,)
    """numbers of devices to measure; speed-up and efficiency are told against the smallest"""
    batch_size: Annotated[
        Tuple[int, ...], alias("-b", "--batch-sizes"), tyro.conf.arg(metavar="B1,B2,...")
    ] = (192,)
    """images per device and step: the sizes to measure, each with every number of devices"""
    benchmark_iters: Annotated[int, alias("-i")] = 100
    """steps of each epoch, and of each validation (less where the data set has less)"""
    epochs: Annotated[int, alias("-e")] = 1
    """epochs of each run, the first ones included that --warmup leaves out"""
    warmup: Annotated[int, alias("-w")] = 0
    """leave the first so many epochs out of the figures (--warmup-epochs is of the learning rate)"""
    mode: Literal["train_val", "train", "val"] = "train_val"
    """what is measured; val needs no checkpoint, for speed does not depend on the weights"""
    timeout: Annotated[Optional[str], tyro.conf.arg(metavar="DURATION")] = None
    """end a run, with all its processes, after so long: 90 (seconds), 30m, 2h; never unless given"""
    output: Annotated[Path, alias("-o"), tyro.conf.arg(metavar="FILE.json")] = Path("benchmark.json")
    """the report; FILE.md and FILE.csv beside it hold the tables, FILE_runs/ what each run left"""
    dry_run: bool = False
    """check everything and print the commands of the runs; start nothing"""

    @property
    def timeout_s(self) -> Optional[float]:
        """None for no limit. The check has been made that it can be read (option_checks/benchmark.py)."""
        found = DURATION.fullmatch(self.timeout or "")
        return float(found["number"]) * _UNIT_S[found["unit"]] if found else None

    @property
    def phases(self) -> Tuple[str, ...]:
        """Prefixes of the metrics that are measured."""
        return {"train_val": ("train", "val"), "train": ("train",), "val": ("val",)}[self.mode]


@dataclasses.dataclass(frozen=True)
class BenchmarkConfig:
    """Measure speed: one run of `runner` for each number of devices and each batch size."""

    benchmark: Benchmark = dataclasses.field(default_factory=Benchmark)
