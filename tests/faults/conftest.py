"""Lets the runs of the selected tests go on side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Callable

import pytest

from tests.faults.runs import End

# MindSpore's ranks keep half a core busy each while they wait.
SIDE_BY_SIDE = max(2, len(os.sched_getaffinity(0)) // 2)


@pytest.fixture(scope="module")
def ends(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[object], End]]:
    """What came of a case of the module's table; all those that were selected are begun at once."""
    start = request.module.start
    cases = [
        item.callspec.params["case"]
        for item in request.session.items
        if item.module is request.module and "case" in item.fixturenames
    ]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        begun: dict[object, Future[End]] = {
            case: pool.submit(start, case, tmp_path_factory.mktemp("run")) for case in cases
        }
        yield lambda case: begun[case].result()
