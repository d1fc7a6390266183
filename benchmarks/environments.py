"""The peers' environments: each has its own, with pinned versions, made when it is first needed."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path
from typing import Sequence

from benchmarks.measuring import ROOT

CACHE = ROOT / "work" / "peers"  # which git ignores
PACKAGES: dict[str, list[str]] = {
    "dali": ["nvidia-dali-cuda120==2.4.0", "numpy==1.26.4"],  # its CPU operators need no driver
    "mxnet": ["mxnet==1.9.1", "numpy==1.23.5"],  # the last release, and the last NumPy that it works with
    "torch": ["torch==2.13.0", "torchvision==0.28.0", "pillow==13.0.0", "numpy==1.26.4"],
    "jpeg": ["simplejpeg==1.9.0", "numpy==1.26.4"],  # libjpeg-turbo, in the wheel
}


class Unavailable(RuntimeError):
    """A peer cannot be had on this machine, and why."""


def interpreter(name: str, cache: Path = CACHE) -> Path:
    """The Python of a peer's environment, made or renewed if it is not what PACKAGES says.

    Raises Unavailable with the installer's last words.
    """
    folder, pins = cache / name, json.dumps(PACKAGES[name])
    python, stamp = folder / "bin" / "python", folder / "packages.json"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == pins:
        return python
    venv.create(folder, clear=True, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[name]]
    run(install)
    stamp.write_text(pins, encoding="utf-8")
    return python


def run(words: Sequence[object]) -> None:
    """Raises Unavailable if a command fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise Unavailable((done.stderr.strip().splitlines() or [f"{words[0]} failed"])[-1])
