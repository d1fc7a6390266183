"""The nodes of a run, from options and platforms."""

import dataclasses
import socket
from typing import Dict

import pytest

from src.errors import OptionError
from src.platform import nodes
from src.platform.launchers import Place, recognise
from src.platform.nodes import Nodes, Wish, check_device_ids, check_place, given, resolve

MODELARTS = {
    "MA_NUM_HOSTS": "11", "MA_NUM_GPUS": "8", "VC_TASK_INDEX": "10",
    "VC_WORKER_HOSTS": ",".join(f"job-worker-{i}.job" for i in range(11)),
}  # fmt: skip
PER_NODE = {
    "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NODELIST": "gpu[3-4]",
}  # fmt: skip


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name is known, as the address that its last digits make."""
    monkeypatch.setattr(
        nodes.cluster, "address", lambda host, option, patience=0: {"gpu3": "10.0.0.3"}.get(host, host)
    )


def test_one_node_needs_nothing() -> None:
    assert resolve(Wish(), Wish()) == Nodes(1)
    assert resolve(Wish(4), Wish()) == Nodes(4)
    assert resolve(Wish(4, 1), Wish()).size == 4


def test_ranks_of_a_node_follow_those_before_it() -> None:
    found = resolve(Wish(2, 3, 1, "10.0.0.1", 99), Wish())
    assert found == Nodes(2, 3, 1, "10.0.0.1", 99)
    assert found.size == 6
    assert found.places() == [Place(2, 6, 0, 2, 0, "runner"), Place(3, 6, 1, 2, 1, "runner")]
    assert [place.device_id for place in dataclasses.replace(found, device_ids=(5, 4)).places()] == [5, 4]
    assert not found.is_first
    assert resolve(Wish(2, 3, 0, "10.0.0.1"), Wish()) == Nodes(2, 3, 0, "10.0.0.1", 8118)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (Wish(0), "-n/--num-devices is 0; it must be at least 1"),
        (Wish(1, 2, None, "10.0.0.1"), "--nodes 2 needs --node-rank, from 0 to 1"),
        (Wish(1, 2, 0), "--nodes 2 needs --master-addr"),
        (Wish(1, 2, 2, "10.0.0.1"), "--node-rank is 2; of --nodes 2 it can be 0 to 1"),
        (Wish(1, 2, -1, "10.0.0.1"), "--node-rank is -1"),
        (Wish(2, None, 0), "--node-rank has no effect without --nodes"),
        (Wish(2, 1, None, "10.0.0.1"), "--master-addr has no effect without --nodes"),
        (Wish(1, None, None, None, 8118), "--master-port has no effect with -n 1"),
    ],
)
def test_what_cannot_work_is_told_in_a_sentence(typed: Wish, sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        resolve(typed, Wish())


def test_a_name_that_is_this_machine_to_everybody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes.cluster, "address", lambda *_: "127.0.1.1")
    with pytest.raises(OptionError, match=r"node-a is 127.0.1.1 by this machine's files"):
        resolve(Wish(1, 2, 0, "node-a"), Wish())
    assert (
        resolve(Wish(1, 2, 0, "127.0.1.1"), Wish()).host == "127.0.1.1"
    )  # typed so: two nodes to try it on one


class TestPlatforms:
    def test_modelarts_knows_its_nodes(self) -> None:
        wish = given(MODELARTS, Place())
        assert wish == Wish(8, 11, 10, "job-worker-0.job", None, "ModelArts")
        assert resolve(Wish(), wish) == Nodes(8, 11, 10, "job-worker-0.job", 8118)

    def test_options_win_over_it(self) -> None:
        assert resolve(Wish(4, 2, 1, "10.0.0.9", 7), given(MODELARTS, Place())) == Nodes(
            4, 2, 1, "10.0.0.9", 7
        )
        assert resolve(Wish(None, 1), given(MODELARTS, Place())) == Nodes(8)

    @pytest.mark.parametrize(("devices", "n"), [("8", 8), ("0", 1)])
    def test_a_single_container(self, devices: str, n: int) -> None:
        alone = {"MA_NUM_HOSTS": "1", "MA_NUM_GPUS": devices, "VC_TASK_INDEX": "0", "VC_WORKER_HOSTS": "a"}
        assert resolve(Wish(), given(alone, Place())) == Nodes(n)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"VC_WORKER_HOSTS": "a,b"}, "MA_NUM_HOSTS is 11, but VC_WORKER_HOSTS names 2 hosts"),
            ({"VC_TASK_INDEX": "worker-1"}, "VC_TASK_INDEX is 'worker-1'"),
        ],
    )
    def test_contradictions_are_told(self, change: Dict[str, str], sentence: str) -> None:
        with pytest.raises(OptionError, match=sentence):
            given({**MODELARTS, **change}, Place())

    def test_slurm_with_one_runner_on_each_node(self) -> None:
        place = recognise(PER_NODE)
        assert resolve(Wish(8), given(PER_NODE, place)) == Nodes(8, 2, 1, "10.0.0.3", 8118)


class TestNeverNTimesN:
    @pytest.mark.parametrize(
        "place",
        [
            Place(1, 2, 1, 2, 1, "mpirun"),
            Place(3, 4, 1, 2, 1, "slurm"),
            Place(0, 1, 0, 1, 0, "msrun", is_scheduler=True),
            Place(3, 4, 3, 4, 3, "runner"),
        ],
    )
    def test_runner_is_no_rank(self, place: Place) -> None:
        with pytest.raises(
            OptionError, match=f"rank {place.rank} of .*started by {place.launcher}: start train.py"
        ):
            check_place(place, Nodes(8))

    def test_one_runner_per_node_must_be_that_node(self) -> None:
        place = recognise(PER_NODE)
        check_place(place, Nodes(8, 2, 1))
        check_place(Place(), Nodes(8))
        for wrong in (Nodes(8), Nodes(8, 2, 0), Nodes(8, 3, 1)):
            with pytest.raises(OptionError, match="process 1 of 2, which does not fit node"):
                check_place(place, wrong)


@pytest.mark.parametrize(
    ("ids", "device", "sentence"),
    [
        ((4, 5), "CPU", "--device-ids 4,5 has no effect on the CPU"),
        ((4, 5, 6), "GPU", "--device-ids 4,5,6 names 3, but -n/--num-devices is 2"),
        ((7, 8), "Ascend", "--device-ids 7,8: this machine shows 8 Ascend"),
    ],
)
def test_device_ids_must_fit(ids: "tuple[int, ...]", device: str, sentence: str) -> None:
    check_device_ids((), device, 8, 2)
    check_device_ids((7, 0), "GPU", 8, 2)
    with pytest.raises(OptionError, match=sentence):
        check_device_ids(ids, device, 8, 2)


class TestPort:
    def test_a_taken_port_is_named(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            with pytest.raises(OptionError, match=f"--master-port {port} cannot be used here .*in use"):
                nodes.reserve(Nodes(2, port=port))
            found, reservation = nodes.reserve(Nodes(2, 2, 1, "10.0.0.1", port))  # it is node 0's affair
            reservation.close()
            assert found == port

    def test_node_0_must_have_the_address(self) -> None:
        with pytest.raises(
            OptionError, match=r"--master-addr 192\.0\.2\.1 is not an address of this machine"
        ):
            nodes.reserve(Nodes(1, 2, 0, "192.0.2.1", 8118))
