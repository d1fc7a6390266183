"""What the runner would start on one of several nodes, under a platform, on chosen devices and cores."""

import os
import re
import socket
from typing import Dict, List, Optional, Tuple

import pytest

from src import launch
from src.platform import binding
from src.platform.launchers import LAUNCHER_VARIABLES

SMALL = ("--data-backend", "synthetic", "-b", "2")
MODELARTS = {
    "MA_NUM_HOSTS": "2", "MA_NUM_GPUS": "3", "VC_TASK_INDEX": "1", "VC_WORKER_HOSTS": "127.0.0.1,127.0.0.2",
}  # fmt: skip


@pytest.fixture(autouse=True)
def nobody_set_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {k: v for k, v in os.environ.items() if k not in LAUNCHER_VARIABLES})


@pytest.fixture
def accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 8 of Ascend."""
    monkeypatch.setattr(launch.environment, "detect_device", lambda requested: "Ascend")
    monkeypatch.setattr(launch.environment, "num_devices_present", lambda device: 8)


def dry_run(
    capsys: pytest.CaptureFixture[str], *options: str, variables: Optional[Dict[str, str]] = None
) -> Tuple[int, str, List[Tuple[str, Dict[str, str], str]]]:
    """Exit code, stderr, and name, variables and command of each process that would be started."""
    os.environ.update(variables or {})
    code = launch.main([*SMALL, *options, "--dry-run"])
    out, err = capsys.readouterr()
    lines = [line[2:] for line in out.splitlines() if line.startswith("# ")]
    plan = []
    for name, line in zip(lines[1::2], lines[2::2]):
        words = dict(re.findall(r"([A-Z][A-Z_a-z]+)=(\S+)", line))
        plan.append((name.split(",")[0], words, line))
    return code, err, plan


def test_node_0_starts_the_scheduler_and_the_first_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, plan = dry_run(
        capsys,
        "-n",
        "2",
        "--nodes",
        "2",
        "--node-rank",
        "0",
        "--master-addr",
        "127.0.0.1",
        "--master-port",
        "7000",
    )
    assert [name for name, _, _ in plan] == ["scheduler", "rank 0", "rank 1"]
    for _, variables, _ in plan:
        assert (variables["MS_SCHED_HOST"], variables["MS_SCHED_PORT"]) == ("127.0.0.1", "7000")
        assert variables["MS_WORKER_NUM"] == "4"


def test_another_node_has_the_ranks_that_follow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(12)))
    code, _, plan = dry_run(
        capsys, "-n", "3", "--nodes", "2", "--node-rank", "1", "--master-addr", "127.0.0.1"
    )
    assert code == 0
    assert [name for name, _, _ in plan] == ["rank 3", "rank 4", "rank 5"]
    assert [v["RANK_ID"] for _, v, _ in plan] == ["3", "4", "5"]
    assert (
        [v["DEVICE_ID"] for _, v, _ in plan] == [v["SUITE_LOCAL_RANK"] for _, v, _ in plan] == ["0", "1", "2"]
    )
    assert {v["RANK_SIZE"] for _, v, _ in plan} == {"6"}
    assert {v["MS_SCHED_PORT"] for _, v, _ in plan} == {"8118"}
    assert {v["OMP_NUM_THREADS"] for _, v, _ in plan} == {"4"}  # the other ranks have cores of their own


def test_modelarts_gives_what_is_not_typed(capsys: pytest.CaptureFixture[str], accelerators: None) -> None:
    _, _, plan = dry_run(capsys, variables=MODELARTS)
    assert [name for name, _, _ in plan] == ["rank 3", "rank 4", "rank 5"]
    assert {v["MS_SCHED_HOST"] for _, v, _ in plan} == {"127.0.0.1"}
    _, _, plan = dry_run(capsys, "-n", "1")
    assert [name for name, _, _ in plan] == ["rank 1"]


def test_another_nodes_workspace_is_not_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: "os.PathLike[str]"
) -> None:
    """On a shared disk, it holds what node 0 has just begun."""
    (tmp_path / "report.json").write_text('{"config": {"mode": "val"}}')  # type: ignore[operator]
    words = ("--workspace", str(tmp_path), "--nodes", "2", "--master-addr", "127.0.0.1", "--node-rank")
    code, err, _ = dry_run(capsys, *words, "0")
    assert (code, "holds another run" in err) == (2, True)
    assert dry_run(capsys, *words, "1")[0] == 0


def test_devices_by_number(capsys: pytest.CaptureFixture[str], accelerators: None) -> None:
    _, _, plan = dry_run(capsys, "-n", "2", "--device-ids", "6,3")
    assert [v.get("DEVICE_ID") for name, v, _ in plan if name != "scheduler"] == ["6", "3"]
    _, _, plan = dry_run(capsys, "--device-ids", "5")
    assert [v["DEVICE_ID"] for _, v, _ in plan] == ["5"]


def test_the_devices_number_in_the_environment_counts_for_a_single_rank(
    capsys: pytest.CaptureFixture[str], accelerators: None
) -> None:
    _, _, plan = dry_run(capsys, variables={"DEVICE_ID": "3"})
    assert [v["DEVICE_ID"] for _, v, _ in plan] == ["3"]


def test_ranks_do_not_see_what_was_around_runner(capsys: pytest.CaptureFixture[str]) -> None:
    around = {"RANK_TABLE_FILE": "/of/one/card", "RANK_ID": "0", "RANK_SIZE": "1"}
    assert dry_run(capsys, "-n", "2", variables=around)[0] == 0
    assert not around.keys() & os.environ.keys()


def test_bound_ranks_have_cores_and_threads_of_their_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    monkeypatch.setattr(binding, "numa_nodes", lambda: [set(range(0, 16, 2)), set(range(1, 16, 2))])
    _, _, plan = dry_run(capsys, "-n", "3", "--bind", "cores")
    assert [re.findall(r"binding.py (\S+)", line) for _, _, line in plan[1:]] == [
        ["0,1,2,3,4"],
        ["5,6,7,8,9"],
        ["10,11,12,13,14"],
    ]
    assert {v["OMP_NUM_THREADS"] for _, v, _ in plan[1:]} == {"5"}
    _, _, plan = dry_run(capsys, "--bind", "numa")
    assert "binding.py 0,2,4,6,8,10,12,14 " in plan[0][2]
    assert plan[0][1]["OMP_NUM_THREADS"] == "8"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--nodes", "0"), "--nodes is 0; it must be at least 1"),
        (("--nodes", "2"), "--nodes 2 needs --node-rank"),
        (("--nodes", "2", "--node-rank", "0"), "--nodes 2 needs --master-addr"),
        (("--nodes", "2", "--node-rank", "5", "--master-addr", "127.0.0.1"), "--node-rank is 5; of"),
        (("--nodes", "2", "--node-rank", "0", "--master-addr", "no.such.invalid"), "no such host"),
        (("--nodes", "2", "--node-rank", "0", "--master-addr", "192.0.2.1"), "not an address of this"),
        (("--node-rank", "0"), "--node-rank has no effect without --nodes"),
        (("--master-port", "8118"), "--master-port has no effect with -n 1"),
        (("-n", "2", "--master-port", "70000"), "--master-port is 70000; it must be in 1..65535"),
        (("--bind", "cores"), "--bind cores has no effect with -n 1"),
        (("-n", "100", "--bind", "cores"), "-n/--num-devices is 100, but"),
        (("--device-ids", "0"), "--device-ids 0 has no effect on the CPU"),
        (("--device-ids", "1,1"), "--device-ids 1,1 names a device twice"),
        (("--device-ids=-1",), "numbers of devices start at 0"),
        (("--launcher", "msrun"), "--launcher msrun is for train.py, started by it"),
        (("--launcher", "none", "-n", "2"), "--launcher none is for a single process"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_told_in_a_sentence(
    options: "tuple[str, ...]", sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err, _ = dry_run(capsys, *options)
    assert code == 2
    assert err.startswith("runner: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_more_ranks_than_cores_cannot_be_bound(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    _, err, _ = dry_run(capsys, "-n", "3", "--bind", "cores")
    assert err == "runner: --bind cores -n 3: 2 cores cannot be shared by 3 ranks\n"


def test_a_taken_port_is_told_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, err, _ = dry_run(capsys, "-n", "2", "--master-port", str(port))
        assert (code, f"--master-port {port} cannot be used here" in err) == (2, True)


class TestUnderALauncher:
    RANK = {"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "2", "RANK_ID": "1"}

    def test_runner_is_refused_by_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        for variables in (self.RANK, {"MS_ROLE": "MS_SCHED", "MS_WORKER_NUM": "2"}):
            code, err, _ = dry_run(capsys, "-n", "2", variables=variables)
            assert (code, "started by msrun: start train.py" in err) == (2, True)

    def test_none_ignores_it_and_hides_it_from_the_rank(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, plan = dry_run(capsys, "--launcher", "none", variables=self.RANK)
        assert (code, [name for name, _, _ in plan]) == (0, ["rank 0"])
        assert "MS_ROLE" not in os.environ  # which the rank inherits
        assert "--launcher none" in plan[0][2]

    def test_none_is_one_process_on_modelarts_too(self, capsys: pytest.CaptureFixture[str]) -> None:
        _, _, plan = dry_run(capsys, "--launcher", "none", variables=MODELARTS)
        assert [name for name, _, _ in plan] == ["rank 0"]
