"""What a run ran on, for its report."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from src.platform import environment, processor

PACKAGES = ("mindspore", "numpy", "pillow", "safetensors")


def versions() -> dict[str, str]:
    """Of Python, and of the packages that results depend on."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}


def describe(device: str) -> dict[str, Any]:
    """Versions, device, host, processor, and the commit of the suite where it is a git checkout."""
    return {
        **versions(),
        "device": device,
        "host": platform.node(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": environment.num_cores(),
        "git_commit": _git_commit(),
    }


def _processor() -> str:
    try:
        for line in processor.CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux: the platform module's answer has to do
    return platform.processor() or platform.machine()


def _git_commit() -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
