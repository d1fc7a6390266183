"""Which Python runs the suite: the active one, else the suite's own .venv, else one sentence on what to do.

This file must be readable by any Python 3 (no annotations, no walrus, no third-party import): it is what
tells a user of a wrong one. `python src/bootstrap.py --check` answers with its exit code, for the Makefile.
"""

import importlib.util
import os
import sys

NEEDED = ("mindspore", "tyro", "yaml")
OLDEST, NEWEST = (3, 9), (3, 12)  # MindSpore has wheels for these: 2.10 from 3.10 on, 2.9 for 3.9
SUITE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
VENV = os.path.join(SUITE, ".venv")


def ensure_interpreter(script):
    """Return if this Python can run the suite; else go on in .venv with the same arguments, or exit 1."""
    complaint = problem()
    if complaint is None:
        return
    python = os.path.join(VENV, "bin", "python")
    # A venv's python is a link to its base's, so the prefix tells them apart, not the executable.
    if os.path.exists(python) and os.path.realpath(sys.prefix) != os.path.realpath(VENV):
        os.execv(python, [python, script, *sys.argv[1:]])
    sys.exit(f"{os.path.basename(script)}: {complaint}")


def problem():
    """What keeps this Python from running the suite, in a sentence; None if nothing does."""
    missing = [name for name in NEEDED if not _has(name)]
    if not missing:
        return None  # whatever its version: an environment that has MindSpore wins
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        wanted = "MindSpore has wheels for Python {}.{} to {}.{}; ".format(*(OLDEST + NEWEST))
        found = "this is {}.{} ({}): ".format(*sys.version_info[:2], sys.executable)
        return wanted + found + "run `make venv`, which looks for one, or activate such an environment"
    found = "this Python ({}) lacks {}: ".format(sys.executable, " and ".join(missing))
    requirements = os.path.join(SUITE, "requirements.txt")
    return found + f"run `make venv`, or `pip install -r {requirements}` in the active environment"


def _has(name):
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None  # no origin: merely a folder of that name


if __name__ == "__main__":
    sys.exit(problem() if sys.argv[1:] == ["--check"] else "usage: bootstrap.py --check")
