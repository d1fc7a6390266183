"""What several tests need: running commands as a user would, and finding real images."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def command(
    *words: object, cwd: Path | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a command of the suite: its script's name, then arguments."""
    argv = [sys.executable, str(ROOT / str(words[0])), *map(str, words[1:])]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=timeout)


@contextlib.contextmanager
def files_of_at_most(num_bytes: int) -> Iterator[None]:
    """Let this process's writes beyond so many bytes of a file fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def shared_data(name: str) -> Path:
    """An archive of real images beside the checkout or in $SUITE_DATA_DIR; the test is skipped without it."""
    folder = Path(os.environ.get("SUITE_DATA_DIR", ROOT.parent / "shared" / "data"))
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not in {folder} (SUITE_DATA_DIR names another folder)")
    return folder / name


def report_schema() -> dict:
    """The schema of report.json."""
    return json.loads((ROOT / "src" / "report" / "report.schema.json").read_text(encoding="utf-8"))


def valid_report(document: dict) -> dict:
    """The document, if it is a report as docs/report.md has it."""
    import jsonschema

    jsonschema.validate(document, report_schema(), jsonschema.Draft202012Validator)
    lengths = {name: len(values) for name, values in document["metrics"].items()}
    assert set(lengths.values()) <= {len(document["epochs"])}, lengths
    return document
