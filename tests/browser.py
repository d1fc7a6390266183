"""A page as headless Chromium shows it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def opened(page: Path, *, width: int = 1280, screenshot: Path | None = None) -> tuple[str, list[str]]:
    """The document after its scripts ran, and what they wrote to the console. Skips without a browser."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    words += [f"--user-data-dir={page.parent / 'profile'}", f"--window-size={width},1200", "--dump-dom"]
    words += ["--virtual-time-budget=3000", *([f"--screenshot={screenshot}"] if screenshot else [])]
    done = subprocess.run([*words, page.as_uri()], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
