"""What is written."""

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
