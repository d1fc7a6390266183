"""Devices, cores and the variables that MindSpore reads, on machines made of files."""

import json
import os
import sys
from pathlib import Path

import pytest

from src.errors import OptionError
from src.platform import environment, processor
from src.platform.launchers import LAUNCHER_VARIABLES, Place

VARIABLES = (
    "GLOG_v", "MS_RETRY_INTERVAL_LOWER", "MS_RETRY_INTERVAL_UPPER", "MS_TOPO_TIMEOUT", "OMP_NUM_THREADS",
    "MS_CPU_COMM_OP_TIMEOUT", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MS_COMPILER_CACHE_ENABLE",
    "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", environment.COMMAND, environment.CHOSEN,
    *LAUNCHER_VARIABLES,
)  # fmt: skip


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without accelerators, with 4 cores and AVX-512, on which nobody set a variable."""
    monkeypatch.setattr(os, "environ", {k: v for k, v in os.environ.items() if k not in VARIABLES})
    monkeypatch.setattr(environment, "DEV", tmp_path / "dev")
    monkeypatch.setattr(processor, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr(environment, "has_plugin", lambda pattern: True)
    monkeypatch.setattr(environment, "loads", lambda library: True)
    (tmp_path / "dev").mkdir()
    (tmp_path / "cpuinfo").write_text("processor: 0\nflags\t\t: fpu avx2 avx512f avx512bw\n")
    return tmp_path


def plug_in(machine: Path, *names: str) -> None:
    for name in names:
        (machine / "dev" / name).touch()


class TestDevices:
    def test_auto_is_the_cpu_where_nothing_else_is(self, machine: Path) -> None:
        plug_in(machine, "nvidiactl", "davinci_manager")  # drivers' own nodes, not devices
        assert environment.detect_device("auto") == "CPU"

    def test_auto_takes_the_accelerator(self, machine: Path) -> None:
        plug_in(machine, "nvidia0", "nvidia1", "nvidiactl")
        assert environment.detect_device("auto") == "GPU"
        assert environment.num_devices_present("GPU") == 2
        plug_in(machine, "davinci0", "davinci1", "davinci10", "davinci_manager")
        assert environment.detect_device("auto") == "Ascend"
        assert environment.num_devices_present("Ascend") == 3

    def test_an_absent_device_is_refused(self) -> None:
        with pytest.raises(OptionError, match=r"--device-target GPU: there is none .*nvidia"):
            environment.detect_device("GPU")

    @pytest.mark.parametrize(
        ("lacking", "sentence"),
        [("has_plugin", "has no part for it"), ("loads", "libcudart.so.11.0 of CUDA 11 cannot be loaded")],
    )
    def test_a_device_that_mindspore_cannot_use_is_told(
        self, machine: Path, monkeypatch: pytest.MonkeyPatch, lacking: str, sentence: str
    ) -> None:
        plug_in(machine, "nvidia0")
        monkeypatch.setattr(environment, lacking, lambda name: False)
        with pytest.raises(OptionError, match=sentence):
            environment.detect_device("GPU")
        assert environment.detect_device("auto") == "CPU"
        assert any(line.startswith("GPU is not used:") for line in environment.prepare("CPU"))

    def test_hidden_devices_do_not_count(self, machine: Path) -> None:
        plug_in(machine, "nvidia0", "nvidia1", "nvidia2")
        os.environ["CUDA_VISIBLE_DEVICES"] = "2,0"
        assert environment.num_devices_present("GPU") == 2
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        assert environment.detect_device("auto") == "CPU"


class TestPrepare:
    def test_sets_and_tells(self) -> None:
        told = environment.prepare("CPU", processes=2)
        assert os.environ["ONEDNN_MAX_CPU_ISA"] == "AVX2"
        assert os.environ["OMP_NUM_THREADS"] == "2"
        assert os.environ["GLOG_v"] == "3"  # noqa: SIM112 - MindSpore's spelling
        assert [line.split(":")[0] for line in told] == ["OMP_NUM_THREADS=2", "ONEDNN_MAX_CPU_ISA=AVX2"]

    def test_what_the_user_set_stays(self) -> None:
        users = {"ONEDNN_MAX_CPU_ISA": "ALL", "OMP_NUM_THREADS": "7", "GLOG_v": "0", "MS_TOPO_TIMEOUT": "20"}
        os.environ.update(users)
        assert environment.prepare("CPU", processes=2) == []
        assert {name: os.environ[name] for name in users} == users

    def test_the_older_name_of_the_isa_counts_too(self) -> None:
        os.environ["DNNL_MAX_CPU_ISA"] = "AVX512_CORE"
        environment.prepare("CPU")
        assert "ONEDNN_MAX_CPU_ISA" not in os.environ

    def test_no_isa_cap_where_it_is_of_no_use(self, machine: Path) -> None:
        environment.prepare("Ascend")
        assert "ONEDNN_MAX_CPU_ISA" not in os.environ
        (machine / "cpuinfo").write_text("flags\t\t: fpu avx2\n")
        environment.prepare("CPU")
        assert "ONEDNN_MAX_CPU_ISA" not in os.environ

    def test_a_single_process_keeps_all_cores(self) -> None:
        environment.prepare("CPU", processes=1)
        assert "OMP_NUM_THREADS" not in os.environ

    def test_the_compile_cache_is_refused(self) -> None:
        os.environ["MS_COMPILER_CACHE_ENABLE"] = "1"
        with pytest.raises(OptionError, match="compile cache does not notice"):
            environment.prepare("CPU")


class TestRanks:
    def test_a_rank_finds_its_place_in_what_runner_set(self) -> None:
        os.environ.update(environment.rank_environment("CPU", 1, 2, port=1234))
        assert environment.this_rank() == Place(1, 2, 1, 2, 1, "runner")

    def test_a_single_process_is_no_part_of_a_cluster(self) -> None:
        alone = environment.rank_environment("CPU", 0, 1)
        assert not {"MS_ROLE", "RANK_SIZE", "MS_SCHED_PORT"} & set(alone)
        os.environ.update(alone)
        assert environment.this_rank() == Place(launcher="runner")

    def test_ranks_share_the_cores(self) -> None:
        assert environment.rank_environment("CPU", 0, 2, 1)["OMP_NUM_THREADS"] == "2"
        assert environment.rank_environment("CPU", 0, 16, 1)["OMP_NUM_THREADS"] == "1"
        assert "OMP_NUM_THREADS" not in environment.rank_environment("Ascend", 0, 2, 1)
        waits_s = int(environment.rank_environment("CPU", 0, 2, 1)["MS_CPU_COMM_OP_TIMEOUT"])
        assert waits_s >= 600, "rank 0 may take long to save while the others wait in a collective"

    def test_a_rank_tells_what_runner_chose_for_it(self) -> None:
        os.environ.update(environment.rank_environment("CPU", 0, 2, 1))
        told = environment.prepare("CPU", processes=2)
        assert any(line.startswith("ONEDNN_MAX_CPU_ISA=AVX2:") for line in told)

    def test_the_scheduler_and_all_ranks_meet_at_one_place(self) -> None:
        parts = [environment.scheduler_environment(2, 99)]
        parts += [environment.rank_environment("CPU", rank, 2, 99) for rank in (0, 1)]
        assert [part["MS_ROLE"] for part in parts] == ["MS_SCHED", "MS_WORKER", "MS_WORKER"]
        for name in ("MS_SCHED_HOST", "MS_SCHED_PORT", "MS_WORKER_NUM"):
            assert len({part[name] for part in parts}) == 1

    def test_the_typed_command_is_runners_or_ones_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "argv", ["train.py", "-b", "8"])
        assert environment.typed_command() == ["train.py", "-b", "8"]
        os.environ.update(environment.hand_down(["runner", "--data-root", "a b", "ü"]))
        assert environment.typed_command() == ["runner", "--data-root", "a b", "ü"]
        assert json.loads(os.environ[environment.COMMAND])


class TestEnter:
    """What train.py does with what its launcher set."""

    MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}

    def test_mpi_is_translated_for_mindspore_and_known_from_then_on(self) -> None:
        os.environ.update(self.MPI)
        place = environment.enter("mpirun", "CPU")
        assert place == environment.this_rank() == Place(1, 2, 1, 2, 1, "mpirun")
        assert (os.environ["MS_ROLE"], os.environ["MS_WORKER_NUM"]) == ("MS_WORKER", "2")
        assert environment.meeting_point() == ("127.0.0.1", 8118)

    def test_none_hides_it_from_mindspore_too(self) -> None:
        os.environ.update({**self.MPI, "MS_ROLE": "MS_WORKER", "RANK_TABLE_FILE": "x"})
        assert environment.enter("none", "Ascend", (4,)) == Place(device_id=4)
        assert {name for name in LAUNCHER_VARIABLES if name in os.environ} == {"DEVICE_ID"}

    def test_the_scheduler_keeps_what_msrun_set(self) -> None:
        os.environ.update({"MS_ROLE": "MS_SCHED", "MS_WORKER_NUM": "2"})
        before = dict(os.environ)
        assert environment.enter("auto", "CPU").is_scheduler
        assert os.environ == before

    def test_who_cannot_tell_has_met_nobody(self) -> None:
        assert environment.is_alone()
        os.environ["RANK_SIZE"] = "many"
        assert environment.is_alone()
        os.environ.update({**self.MPI, "RANK_SIZE": "2"})
        assert not environment.is_alone()


def test_seeds_are_drawn_anew() -> None:
    drawn = {environment.draw_seed() for _ in range(20)}
    assert len(drawn) == 20
    assert all(0 <= seed < 2**32 for seed in drawn)


def test_no_process_asks_the_scheduler_without_pause():
    """MindSpore reads the upper bound as whole seconds; with 0 a thread of each process never pauses."""
    for variables in (
        environment.scheduler_environment(2, 8118),
        environment.rank_environment("CPU", 0, 2, 8118),
    ):
        assert (
            int(float(variables["MS_RETRY_INTERVAL_UPPER"])) > float(variables["MS_RETRY_INTERVAL_LOWER"]) > 0
        )
