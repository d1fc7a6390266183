"""Set before MindSpore is imported by any test: the suite's own choices for the CPU, and quiet logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from src.platform import environment, jpeg
from tests.support import ROOT, command

NOTICES = environment.prepare("CPU") + jpeg.choose(True)


def pytest_report_header() -> list[str]:
    return NOTICES


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is deep is slow, too: `-m "not slow"` leaves it out."""
    for item in items:
        if item.get_closest_marker("deep"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def golden() -> dict:
    """Values of an independent float64 implementation; tests/golden/spec.py makes its weights and inputs."""
    return json.loads((ROOT / "tests" / "golden" / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def graph_mode() -> None:
    """MindSpore on the CPU in graph mode, as the suite runs it."""
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_device("CPU")


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's data set as records: 1,437 training and 360 validation images of 10 classes."""
    pytest.importorskip("sklearn", reason="scikit-learn ships the digits")
    folder = tmp_path_factory.mktemp("digits")
    for words in (
        ("scripts/prepare_digits.py", folder / "images"),
        ("scripts/prepare_dataset.py", folder / "images", folder / "records"),
    ):
        done = command(*words)
        assert done.returncode == 0, done.stderr
    return folder
