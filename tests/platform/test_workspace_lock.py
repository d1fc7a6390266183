"""A workspace is one run's at a time, for as long as a process of that run lives, and not a moment longer."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from src.errors import OptionError
from src.platform import environment, workspace_lock
from src.platform.supervisor import Process, supervise
from src.platform.workspace_lock import FILE, WorkspaceLock
from tests.support import ROOT

HOLDS = """
import sys, time
from pathlib import Path
from src.platform.workspace_lock import WorkspaceLock
lock = WorkspaceLock()
assert lock.take(Path(sys.argv[1]))
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkspaceLock, "wait_s", 0.0)


@pytest.fixture
def locks() -> Iterator[list[WorkspaceLock]]:
    """Locks to be given up after the test."""
    taken: list[WorkspaceLock] = []
    yield taken
    for lock in taken:
        lock._drop()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Another process that has the workspace."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


def test_another_run_is_told_who_has_it_and_what_to_do(
    other: subprocess.Popen, tmp_path: Path, locks: list[WorkspaceLock]
) -> None:
    (tmp_path / "report.json").write_text("the other's")
    noted = (tmp_path / FILE).read_bytes()
    with pytest.raises(OptionError) as refusal:
        WorkspaceLock().take(tmp_path)
    told = str(refusal.value)
    assert f"--workspace {tmp_path} is in use by another run (process {other.pid} on " in told
    assert os.uname().nodename in told
    assert told.endswith("give this one another --workspace, or wait until that one has ended")
    assert "\n" not in told
    assert refusal.value.exit_code == 2
    assert (tmp_path / "report.json").read_text() == "the other's"
    assert (tmp_path / FILE).read_bytes() == noted

    other.kill()
    other.wait()
    locks.append(WorkspaceLock())
    assert locks[0].take(tmp_path), "what a killed process leaves locks nothing"
    assert json.loads((tmp_path / FILE).read_text())["pid"] == os.getpid()
    assert not locks[0].take(tmp_path), "it has it already"


def test_one_that_is_about_to_end_is_waited_for(
    other: subprocess.Popen, tmp_path: Path, locks: list[WorkspaceLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkspaceLock, "wait_s", 20.0)
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.4; kill -9 {other.pid}"])
    locks.append(WorkspaceLock())
    begin = time.monotonic()
    assert locks[0].take(tmp_path)
    assert time.monotonic() - begin > 0.3
    killer.wait()


def test_nodes_that_share_a_workspace_do_not_refuse_each_other(
    tmp_path: Path, locks: list[WorkspaceLock]
) -> None:
    for node in (0, 1, 11):
        locks.append(WorkspaceLock(node))
        assert locks[-1].take(tmp_path)
    for node in (0, 1, 11):
        with pytest.raises(OptionError):
            WorkspaceLock(node).take(tmp_path)


def test_commands_that_do_not_train_neither_take_nor_need_it(tmp_path: Path) -> None:
    unwanted = WorkspaceLock(wanted=False)
    assert not unwanted.take(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()
    assert not workspace_lock.of_rank(0, trains=False).take(tmp_path / "absent")
    assert not workspace_lock.of_rank(1, trains=True).take(tmp_path / "absent")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_locks_a_run_goes_on_and_says_so_once(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock = WorkspaceLock()
    assert not lock.take(tmp_path)
    assert not lock.take(tmp_path)
    (notice,) = lock.notices
    assert f"--workspace {tmp_path} has no locks ({os.strerror(number)})" in notice
    process = Process("rank 0", ["true"])
    assert lock.handed_to([process]) == [process]


def test_another_error_is_no_leave_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int, operation: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="broken"):
        WorkspaceLock().take(tmp_path)


def test_a_workspace_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match=r"--workspace .*file/run cannot be written: Not a directory"):
        WorkspaceLock().take(tmp_path / "file" / "run")


ALONE = """
import sys
from src import run
from src.platform.workspace_lock import WorkspaceLock
WorkspaceLock.wait_s = 0.0
code = run.main(sys.argv[1:], "train.py")
print("mindspore" in sys.modules)
sys.exit(code)
"""


def test_a_process_that_no_runner_started_takes_it_itself(other: subprocess.Popen, tmp_path: Path) -> None:
    words = ["--data-backend", "synthetic", "--workspace", str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", ALONE, *words], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "False\n")
    assert done.stderr.startswith(f"train.py: --workspace {tmp_path} is in use by another run (process")
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


RANK = """
import os, subprocess, sys, time
from pathlib import Path
from src.platform import workspace_lock
lock = workspace_lock.of_rank(0, trains=True)
assert lock.fd >= 0, "handed by runner"
assert not lock.take(Path("absent")), "nothing to take any more"
# Processes further down must not keep the lock when the rank has ended, whichever way they are started.
started = subprocess.Popen(["sleep", "60"], close_fds=False, start_new_session=True).pid
ready, told = os.pipe()
forked = os.fork()
if forked == 0:
    os.setsid()
    os.write(told, b"!")
    time.sleep(60)
os.read(ready, 1)
Path(sys.argv[1]).write_text(f"{started} {forked}")
"""


def test_ranks_hold_it_with_runner_but_not_what_they_start(
    tmp_path: Path, locks: list[WorkspaceLock]
) -> None:
    lock = WorkspaceLock()
    locks.append(lock)
    assert lock.take(tmp_path)
    mark = tmp_path / "mark"
    command = [sys.executable, "-c", RANK, str(mark)]
    service = Process("scheduler", ["true"], service=True)
    plan = lock.handed_to([service, Process("rank 0", command, {environment.COMMAND: "[]"}, cwd=ROOT)])
    assert plan[0] == service
    outcome = supervise(plan)
    assert (outcome.code, outcome.message) == (0, "")
    lock._drop()  # the only one left that has it
    below = [int(pid) for pid in mark.read_text().split()]
    try:
        assert all(Path(f"/proc/{pid}").exists() for pid in below)
        locks.append(WorkspaceLock())
        assert locks[-1].take(tmp_path)
    finally:
        for pid in below:
            os.kill(pid, 9)
