"""Runs whose ranks are on two nodes, or were started by another launcher than runner."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from src.platform import cluster
from tests.support import ROOT
from tests.two_nodes import ADDRESSES, TwoNodes, two_nodes

pytestmark = pytest.mark.deep

SMALL = (
    "--data-backend", "synthetic", "--num-examples", "64", "--num-classes", "4", "--image-shape", "3,32,32",
    "--num-layers", "18", "-b", "4", "--warmup-epochs", "0", "--seed", "3",
)  # fmt: skip
TIMEOUT_S = 300


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    with two_nodes() as made:
        yield made


class Run:
    """The same command on both nodes, but for the node's number and the folder."""

    def __init__(self, nodes: TwoNodes, folder: Path, *options: str) -> None:
        self.folder, self.started = folder, []
        for node in (0, 1):
            words = [
                "--nodes",
                "2",
                "--node-rank",
                str(node),
                "--master-addr",
                ADDRESSES[0],
                *SMALL,
                *options,
            ]
            words += ["--workspace", str(folder / f"node_{node}")]
            argv = nodes.command(node, sys.executable, str(ROOT / "runner"), *words)
            pipe = subprocess.PIPE
            self.started.append(subprocess.Popen(argv, text=True, stdout=pipe, stderr=pipe))

    def end(self) -> list[tuple[int, str, str]]:
        """Exit code, stdout and stderr of each node."""
        try:
            texts = [process.communicate(timeout=TIMEOUT_S) for process in self.started]
        finally:
            for process in self.started:
                process.kill()  # nothing happens to what has ended; its ranks die with a runner
        return [(process.returncode, *text) for process, text in zip(self.started, texts)]


def report(workspace: Path) -> dict:
    return json.loads((workspace / "report.json").read_text(encoding="utf-8"))


def test_two_nodes_are_one_run_and_go_on_as_one(nodes: TwoNodes, tmp_path: Path) -> None:
    """Each with a disk of its own, on the second of which another run has left a report."""
    (tmp_path / "node_1").mkdir()
    (tmp_path / "node_1" / "report.json").write_text('{"status": "completed", "config": {"mode": "val"}}')
    (code, told, _), other = Run(nodes, tmp_path, "-e", "2", "--run-epochs", "1").end()
    assert (code, other[0]) == (0, 0), (told, other)
    assert f"node 0 of 2: rank 0 of 2; waiting for the ranks of the other nodes at {ADDRESSES[0]}:" in told
    assert "node 1 of 2: rank 1 of 2, output in" in other[1]
    assert sorted(path.name for path in (tmp_path / "node_1").rglob("*")) == [
        ".lock-node-1",
        "rank_1.log",
        "ranks",
        "report.json",
    ]
    found = report(tmp_path / "node_0")
    assert (found["ngpus"], found["epochs"], found["num_samples"]) == (2, [0], 2)

    # node 1 cannot read the checkpoint: both say so, and nobody begins anew
    ends = Run(nodes, tmp_path, "-e", "2").end()
    assert [code for code, _, _ in ends] == [5, 5], ends
    assert "rank 1 cannot read" in ends[0][2]
    assert "model_last.safetensors, from which rank 0 continues" in ends[1][2]  # the end of its rank's log
    after = report(tmp_path / "node_0")
    assert (after["status"], after["epochs"], after["metrics"]) == ("failed", [0], found["metrics"])

    place = tmp_path / "shared"  # a disk of both
    for node in (0, 1):
        os.replace(tmp_path / f"node_{node}", tmp_path / f"own_{node}")
        os.symlink(place, tmp_path / f"node_{node}")
    os.replace(tmp_path / "own_0", place)
    ends = Run(nodes, tmp_path, "-e", "2").end()
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert (report(place)["epochs"], report(place)["status"]) == ([0, 1], "completed")
    assert (place / "ranks" / "rank_1.log").exists()

    ends = Run(nodes, tmp_path, "-e", "2").end()
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert "all 2 epochs are done" in ends[0][1]


def test_the_death_of_a_rank_reaches_the_other_node(
    nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the scheduler, which misses its signs of life: within half a minute by default, sooner here."""
    monkeypatch.setenv("MS_NODE_TIMEOUT", "10")
    run = Run(nodes, tmp_path, "-e", "500", "--mode", "train", "--save-frequency", "0")
    end = time.monotonic() + TIMEOUT_S
    try:
        while not (tmp_path / "node_0" / "report.json").exists() or not report(tmp_path / "node_0")["epochs"]:
            assert time.monotonic() < end, "no epoch was finished"
            assert run.started[0].poll() is None, run.end()
            time.sleep(0.1)
        os.kill(only_child(run.started[1].pid), signal.SIGKILL)
    finally:
        begin = time.monotonic()
        ends = run.end()
    assert time.monotonic() - begin < 60
    assert ends[1][0] == 128 + signal.SIGKILL
    assert "rank 1 was killed by SIGKILL" in ends[1][2]
    assert ends[0][0] == 1
    assert "scheduler ended with code 1" in ends[0][2]
    assert "timed out node" in ends[0][2]
    assert report(tmp_path / "node_0")["status"] == "failed"


def only_child(pid: int) -> int:
    """The rank of a runner that is not node 0's."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def train(*prefix: str, workspace: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """One epoch of train.py under another launcher."""
    words = [str(ROOT / "train.py"), *SMALL, "-e", "1", "--workspace", str(workspace)]
    return subprocess.run(
        [*prefix, *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def free_port() -> int:
    port, reservation = cluster.reserve_port()
    reservation.close()
    return port


def assert_one_run_of_two_ranks(workspace: Path) -> None:
    found = report(workspace)
    assert (found["ngpus"], found["epochs"], found["num_samples"]) == (2, [0], 2)
    assert found["status"] == "completed"


def test_msrun(tmp_path: Path) -> None:
    """Its scheduler process runs train.py too, and must leave nothing behind."""
    program = Path(sys.executable).with_name("msrun")
    if not program.exists():
        pytest.skip("the installed MindSpore has no msrun")
    words = ["--worker_num=2", "--local_worker_num=2", "--join=True", f"--master_port={free_port()}"]
    done = train(
        str(program), *words, f"--log_dir={tmp_path / 'logs'}", workspace=tmp_path / "ws",
        variables={"MS_NODE_TIMEOUT": "10"},  # its scheduler waits so long after the ranks have left
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert_one_run_of_two_ranks(tmp_path / "ws")
    assert "the ranks have left" in (tmp_path / "logs" / "scheduler.log").read_text()


def test_mpirun(tmp_path: Path) -> None:
    program = shutil.which("mpirun")
    if program is None:
        pytest.skip("mpirun is not installed")
    allow = {  # Open MPI's, as root and on fewer cores; MPICH has no such doubts
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    variables = {**allow, "MS_SCHED_PORT": str(free_port())}
    done = train(program, "-n", "2", sys.executable, workspace=tmp_path, variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_one_run_of_two_ranks(tmp_path)


def test_the_variables_of_mpi_are_enough(tmp_path: Path) -> None:
    """Two processes with what Open MPI 5 sets, where it is not installed."""
    common = {
        **os.environ,
        "MS_SCHED_PORT": str(free_port()),
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    }
    argv = [sys.executable, str(ROOT / "train.py"), *SMALL, "-e", "1", "--workspace", str(tmp_path)]
    ranks = [
        subprocess.Popen(
            argv,
            env={**common, "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank in "01"
    ]
    try:
        told = [rank.communicate(timeout=TIMEOUT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], told
    assert_one_run_of_two_ranks(tmp_path)
