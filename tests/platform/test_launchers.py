"""Which launcher started a process, from the variables that each of them sets."""

import json
from pathlib import Path
from typing import Dict, Optional

import pytest

from src.errors import OptionError
from src.platform.launchers import LAUNCHERS, Place, recognise

MSRUN = {
    "MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "4", "MS_NODE_ID": "3", "RANK_ID": "3", "RANK_SIZE": "4",
    "DEVICE_ID": "1", "MS_SCHED_HOST": "10.0.0.1", "MS_SCHED_PORT": "8118",
}  # fmt: skip
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
}  # fmt: skip
MPICH = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
SLURM = {
    "SLURM_PROCID": "9", "SLURM_STEP_NUM_TASKS": "16", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_NODES": "2",
}  # fmt: skip
RUNNER = {"SUITE_LOCAL_RANK": "1", "SUITE_LOCAL_SIZE": "2", "RANK_ID": "3", "RANK_SIZE": "4",
          "DEVICE_ID": "7"}  # fmt: skip


def table(folder: Path, **changes: object) -> Dict[str, str]:
    """Variables of rank 2, and a table of two servers with devices 4 and 5 each."""
    servers = [
        {
            "server_id": f"10.0.0.{i}",
            "device": [
                {"device_id": str(4 + k), "device_ip": f"10.1.{i}.{k}", "rank_id": str(2 * i + k)}
                for k in (0, 1)
            ],
        }
        for i in (0, 1)
    ]
    content = {"version": "1.0", "server_list": servers, "status": "completed", **changes}
    path = folder / "hccl.json"
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    return {"RANK_TABLE_FILE": str(path), "RANK_ID": "2", "RANK_SIZE": "4"}


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, Place()),
        ({"DEVICE_ID": "3"}, Place(device_id=3)),
        ({"ASCEND_DEVICE_ID": "6", "RANK_SIZE": "1", "RANK_ID": "0"}, Place(device_id=6)),
        (MSRUN, Place(3, 4, 1, 4, 1, "msrun")),
        ({**MSRUN, "MS_ROLE": "MS_SCHED", "RANK_ID": "0"}, Place(0, 4, 0, 1, 0, "msrun", is_scheduler=True)),
        (OPEN_MPI, Place(5, 8, 1, 4, 1, "mpirun")),
        (MPICH, Place(2, 4, 0, 2, 0, "mpirun")),
        (SLURM, Place(9, 16, 1, 8, 1, "slurm")),
        ({**SLURM, "PMI_RANK": "9", "PMI_SIZE": "16"}, Place(9, 16, 1, 8, 1, "slurm")),  # srun --mpi=pmi2
        (RUNNER, Place(3, 4, 1, 2, 7, "runner")),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "16"}, Place()),  # a batch script, which is no step
        ({"RANK_TABLE_FILE": "/nowhere", "RANK_SIZE": "1", "RANK_ID": "0"}, Place(launcher="rank-table")),
        ({"RANK_TABLE_FILE": "/nowhere"}, Place()),
    ],
)
def test_each_is_recognised(variables: Dict[str, str], place: Place) -> None:
    assert recognise(variables) == place


def test_a_rank_table_gives_what_the_variables_leave_out(tmp_path: Path) -> None:
    variables = table(tmp_path)
    assert recognise(variables) == Place(2, 4, 0, 2, 4, "rank-table")
    del variables["RANK_SIZE"]
    assert recognise({**variables, "RANK_ID": "3"}) == Place(3, 4, 1, 2, 5, "rank-table")
    assert recognise({**variables, "DEVICE_ID": "0"}).device_id == 0


@pytest.mark.parametrize(
    ("changes", "variables", "sentence"),
    [
        ({"status": "initializing"}, {}, "has the status 'initializing'; it must be 'completed'"),
        ({"server_list": None}, {}, "has no server_list"),
        ({"server_list": None, "group_list": []}, {}, "the platform's own form"),
        ({}, {"RANK_SIZE": "8"}, "lists 4 devices, but RANK_SIZE is 8"),
        ({"server_list": [{"device": [{"device_id": "0"}]}]}, {}, "every device a number `device_id` and"),
        ({"server_list": [{"device": [{"device_id": "0", "rank_id": "1"}]}]}, {}, r"the ranks are \[1\]"),
        ({"server_list": [{"device": [{"device_id": i, "rank_id": 0} for i in "01"]}]}, {}, "rank 0 occurs"),
        ({"server_list": []}, {}, r"the ranks are \[\]"),
        ({}, {"RANK_ID": "4", "RANK_SIZE": "4"}, "has no rank 4"),
        ({}, {"RANK_TABLE_FILE": "/nowhere.json"}, "/nowhere.json cannot be read: No such file"),
    ],
)  # fmt: skip
def test_an_unusable_rank_table_is_refused(
    changes: Dict[str, object], variables: Dict[str, str], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match=sentence):
        recognise({**table(tmp_path, **changes), **variables})


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({**MSRUN, "RANK_ID": "4"}, "by the variables of msrun this would be rank 4 of 4"),
        ({**MSRUN, "MS_WORKER_NUM": "four"}, "the variable MS_WORKER_NUM is 'four'; a number was expected"),
        ({**MSRUN, "MS_ROLE": "MS_SERVER"}, "MS_ROLE is 'MS_SERVER'"),
        ({"MS_ROLE": "MS_WORKER"}, "MS_WORKER_NUM is not set, although"),
        ({"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "2"}, "no rank .* give msrun a --node_rank"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "-8"}, "OMPI_COMM_WORLD_SIZE is '-8'"),
        ({**MSRUN, **OPEN_MPI}, "of msrun this is rank 3 of 4, by those of mpirun rank 5 of 8"),
        ({"RANK_ID": "3", "RANK_SIZE": "8"}, "already rank 3 of 8 .* nothing says how"),
        ({"RANK_SIZE": "8"}, r"already rank \? of 8"),
    ],
)
def test_what_cannot_be_is_a_sentence(variables: Dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        recognise(variables)


def test_one_launcher_inside_another_is_its_own() -> None:
    per_node = {**SLURM, "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0"}
    assert recognise(per_node) == Place(1, 2, 0, 1, 0, "slurm")
    assert recognise({**per_node, **MSRUN}).launcher == "msrun"
    assert recognise({**per_node, **RUNNER}) == recognise(RUNNER)
    assert recognise({**OPEN_MPI, **RUNNER}) == recognise(RUNNER)  # runner would have refused what disagrees
    with pytest.raises(OptionError, match="slurm"):
        recognise({**SLURM, **MSRUN})


def test_msrun_may_bring_a_rank_table_too(tmp_path: Path) -> None:
    for variables in (table(tmp_path), {"RANK_TABLE_FILE": "/nowhere"}):  # which is between it and MindSpore
        assert recognise({**variables, **MSRUN}) == recognise(MSRUN)


@pytest.mark.parametrize(
    ("variables", "name"),
    [(MSRUN, "msrun"), (OPEN_MPI, "mpirun"), (SLURM, "slurm"), (RUNNER, "runner"), (None, "rank-table")],
)
def test_a_name_demands_its_variables(variables: Optional[Dict[str, str]], name: str, tmp_path: Path) -> None:
    variables = variables or table(tmp_path)
    assert recognise(variables, name).launcher == name
    for other in LAUNCHERS:
        if other != name:
            with pytest.raises(OptionError, match=f"--launcher {other}, but nothing here is from it"):
                recognise(variables, other)
    assert recognise(variables, "none") == Place()
