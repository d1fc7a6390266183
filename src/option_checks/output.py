"""What is written, and the processes."""

import math

from src.config import Config, RunnerConfig
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


def processes(config: Config) -> None:
    """Runner's own options; those of a rank have none of them."""
    if isinstance(config, RunnerConfig):
        grace = config.launch.grace
        refuse(not 0 < grace < math.inf, f"--grace is {grace}; it must be > 0 (seconds)")
