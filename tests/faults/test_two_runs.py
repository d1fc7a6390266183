"""Two runs in one workspace at once, and one after the other when the first was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.runs import INJECTED, TIME_LIMIT_S, WORDS, run
from tests.support import ROOT


def contents(workspace: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_second_is_refused_and_the_first_untouched(tmp_path: Path) -> None:
    workspace, struck = tmp_path / "run", tmp_path / "struck"
    options = ["-n", "2", "--workspace", str(workspace), "--save-every-steps", "2"]
    first = subprocess.Popen(
        [sys.executable, str(ROOT / "runner"), *WORDS, *options],
        env={
            **os.environ,
            **{"PYTHONPATH": str(INJECTED), "SMALL_NETWORK": "1", "FAULT_FILE": str(struck)},
            "FAULT": "rank=1 phase=training kind=SIGSTOP step=3",  # it stands still, so its files do too
        },
        stdout=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + TIME_LIMIT_S
        while not struck.exists():
            assert first.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        time.sleep(1)  # rank 0 is done with what it can do alone
        before = contents(workspace)
        assert str(workspace / "model_last.safetensors") in before
        for more in ([], ["--overwrite"]):
            begin = time.monotonic()
            second = run(tmp_path, "", *options, *more)
            assert (second.code, second.left, second.out) == (2, [], "")
            assert second.err.startswith(f"runner: --workspace {workspace} is in use by another run (process")
            assert f"(process {first.pid} on " in second.err
            assert second.err.count("\n") == 1
            assert time.monotonic() - begin < 10
        assert contents(workspace) == before
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()
    third = run(tmp_path, "", *options)
    assert third.code == 0, third.err
    assert "model_last.safetensors, step 2 of 12 of epoch 1" in third.out
    assert (third.report["status"], third.report["epochs"]) == ("completed", [0, 1])
