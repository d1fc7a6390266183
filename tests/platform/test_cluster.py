"""Where ranks meet, and what their launchers leave to be said."""

import socket
from typing import Dict, Tuple

import pytest

from src.errors import OptionError
from src.platform import cluster
from src.platform.launchers import Place, recognise

HERE = Place(1, 2, 1, 2, 1, "mpirun")
SPREAD = Place(3, 4, 1, 2, 1, "slurm")


@pytest.mark.parametrize(
    ("variables", "place", "point"),
    [
        ({}, HERE, ("127.0.0.1", 8118)),
        ({"MASTER_ADDR": "a", "MASTER_PORT": "1"}, HERE, ("a", 1)),
        ({"MS_SCHED_HOST": "b", "MS_SCHED_PORT": "2", "MASTER_ADDR": "a"}, HERE, ("b", 2)),
        ({"SLURM_JOB_NODELIST": "gpu[07-12,30],login"}, SPREAD, ("gpu07", 8118)),
        ({"SLURM_STEP_NODELIST": "n3,n4", "SLURM_JOB_NODELIST": "n[1-4]"}, SPREAD, ("n3", 8118)),
    ],
)  # fmt: skip
def test_the_meeting_point(variables: Dict[str, str], place: Place, point: Tuple[str, int]) -> None:
    assert cluster.meeting_point(variables, place) == point


def test_ranks_on_several_nodes_must_be_told_where_to_meet() -> None:
    with pytest.raises(OptionError, match=r"mpirun started 4 ranks on several nodes.*set MS_SCHED_HOST"):
        cluster.meeting_point({}, Place(3, 4, 1, 2, 1, "mpirun"))


@pytest.mark.parametrize(
    ("node_list", "first"),
    [("n1", "n1"), ("n[1-3]-ib", "n1-ib"), ("a[001,7],b", "a001"), ("x,y", "x"), ("", "")],
)
def test_the_first_host_of_slurms_short_form(node_list: str, first: str) -> None:
    assert cluster.first_host(node_list) == first


class TestTranslate:
    def test_a_rank_of_mpi_becomes_one_of_the_cluster(self) -> None:
        found = cluster.translate({"MS_SCHED_PORT": "77"}, HERE, "CPU")
        wanted = {"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "2", "MS_SCHED_PORT": "77", "RANK_ID": "1"}
        assert wanted.items() <= found.items()
        assert recognise(found) == HERE  # for whatever asks later

    def test_what_msrun_set_stays(self) -> None:
        place = Place(1, 2, 1, 2, 1, "msrun")
        found = cluster.translate({}, place, "GPU")
        assert not [name for name in found if name.startswith("MS_")]
        assert recognise({"MS_ROLE": "MS_WORKER", **found}) == place

    def test_runner_has_said_everything(self) -> None:
        assert cluster.translate({}, Place(1, 2, 1, 2, 5, "runner"), "Ascend", (4, 5)) == {}

    def test_a_rank_table_is_for_ascend(self) -> None:
        place = Place(1, 2, 1, 2, 1, "rank-table")
        assert cluster.translate({}, place, "Ascend")["RANK_ID"] == "1"
        with pytest.raises(OptionError, match="lists Ascend devices and this runs on CPU"):
            cluster.translate({}, place, "CPU")

    def test_devices_of_a_single_process(self) -> None:
        assert cluster.translate({}, Place(), "GPU", (5,)) == {"DEVICE_ID": "5"}
        with pytest.raises(OptionError, match="no effect on the CPU"):
            cluster.translate({}, Place(), "CPU", (5,))
        with pytest.raises(OptionError, match="names 2 devices, but this is one process"):
            cluster.translate({}, Place(), "GPU", (5, 6))
        with pytest.raises(OptionError, match="--device-ids has no effect under mpirun"):
            cluster.translate({}, HERE, "GPU", (5,))


def test_an_unknown_host_is_told() -> None:
    assert cluster.address("127.0.0.1", "--master-addr") == "127.0.0.1"
    with pytest.raises(OptionError, match=r"--master-addr no.such.host.invalid: no such host"):
        cluster.address("no.such.host.invalid", "--master-addr")


def test_a_name_may_appear_later(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [OSError("not yet"), OSError("not yet"), [(0, 0, 0, "", ("10.0.0.7", 0))]]

    def resolve(*_: object) -> object:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(cluster, "RESOLVE_PAUSE_S", 0.0)
    assert cluster.address("worker-0", "--master-addr", patience_s=60) == "10.0.0.7"


def test_a_port_is_kept_from_others_but_not_from_the_scheduler() -> None:
    port, reservation = cluster.reserve_port()
    with reservation, socket.socket() as other, socket.socket() as scheduler:
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        scheduler.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        scheduler.bind(("127.0.0.1", port))
        scheduler.listen()
        with pytest.raises(OSError, match="in use"):
            cluster.reserve_port("127.0.0.1", port)
