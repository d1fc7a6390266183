"""Which cores a rank gets, and that it stays on them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import List, Sequence, Set

import pytest

from src.platform import binding

TWO_NODES = ({0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15})


@pytest.mark.parametrize(
    ("num_ranks", "cores", "numa", "wanted"),
    [
        (2, range(4), (), [[0, 1], [2, 3]]),
        (3, range(8), (), [[0, 1], [2, 3], [4, 5]]),  # equal shares, and two cores unused
        (2, [7, 3, 5, 1], (), [[1, 3], [5, 7]]),
        (2, range(16), TWO_NODES, [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]),
        (4, range(16), TWO_NODES, [[0, 1, 2, 3], [8, 9, 10, 11], [4, 5, 6, 7], [12, 13, 14, 15]]),
        (3, range(16), TWO_NODES, [[0, 1, 2, 3], [8, 9, 10, 11], [4, 5, 6, 7]]),
        (1, range(16), TWO_NODES, [[0, 1, 2, 3, 8, 9, 10, 11]]),
        (2, [0, 1, 2, 3], TWO_NODES, [[0, 1], [2, 3]]),  # the other node is not ours
    ],
)
def test_shares(
    num_ranks: int, cores: Sequence[int], numa: Sequence[Set[int]], wanted: List[List[int]]
) -> None:
    assert binding.shares(num_ranks, cores, numa) == wanted


def test_fewer_cores_than_ranks() -> None:
    with pytest.raises(ValueError, match="2 cores cannot be shared by 3 ranks"):
        binding.shares(3, [0, 1])


def test_the_machines_numa_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, cores in (("node0", "0-1,8\n"), ("node10", "3\n"), ("node2", "2\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpulist").write_text(cores)
    monkeypatch.setattr(binding, "NODES", tmp_path)
    assert binding.numa_nodes() == [{0, 1, 8}, {2}, {3}]
    monkeypatch.setattr(binding, "NODES", tmp_path / "nothing")
    assert binding.numa_nodes() == []


def test_a_bound_command_keeps_to_its_cores_and_so_do_its_children() -> None:
    core = max(os.sched_getaffinity(0))
    show = "import os, subprocess, sys; print(os.sched_getaffinity(0), sys.argv[1:], flush=True)"
    code = f"{show}; subprocess.run([sys.executable, '-c', 'import os; print(os.sched_getaffinity(0))'])"
    command = binding.bound([sys.executable, "-c", code, "a b"], [core])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{{{core}}} ['a b']", f"{{{core}}}"]
