"""What is written, and the processes."""

import importlib.util
import math

from src.config import Config
from src.option_checks.refusing import refuse


def files(config: Config) -> None:
    """Names of what is written."""
    out = config.output
    refuse(
        not out.model_prefix or "/" in out.model_prefix,
        f"--model-prefix {out.model_prefix!r} is a name, not a path; the folder is --workspace",
    )
    for name in ("log", "dllogger_log", "report"):
        value = getattr(out, name)
        refuse(
            not value or "/" in value,
            f"--{name.replace('_', '-')} {value!r} is the name of a file in --workspace",
        )
    refuse(
        out.report.endswith(".html"),
        f"--report {out.report} would be overwritten by its own page; call it {out.report[:-5]}.json",
    )
    for name in ("tensorboard", "profile", "compile_cache"):
        refuse(
            bool(getattr(out, name)) and not config.trains,
            f"--{name.replace('_', '-')} is about training, and nothing is trained here "
            f"(--mode {config.training.mode}{' --test-io' if config.training.test_io else ''})",
        )
    refuse(out.profile < 0, f"--profile is {out.profile}; it must be 0 or more")
    refuse(
        out.tensorboard and importlib.util.find_spec("tensorboardX") is None,
        "--tensorboard needs tensorboardX, which is not installed: pip install tensorboardX",
    )


def saving(config: Config) -> None:
    """When checkpoints are made, and how many stay."""
    out = config.output
    refuse(
        out.keep is not None and out.save_frequency < 1,
        f"--keep {out.keep} is about the checkpoints of every K epochs; set --save-frequency K too",
    )
    for name in ("save_every_steps", "save_every_minutes"):
        value = getattr(out, name)
        refuse(
            value is not None and out.save_frequency == 0,
            f"--{name.replace('_', '-')} {value} contradicts --save-frequency 0, which saves nothing",
        )
    refuse(
        out.save_every_minutes is not None and not 0 < out.save_every_minutes < math.inf,
        f"--save-every-minutes is {out.save_every_minutes}; it must be > 0",
    )
