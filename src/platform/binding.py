"""Cores for each rank of a node (--bind), and the program that keeps a rank on them.

As a program, `binding.py CORES COMMAND...` becomes the command, bound to these cores. Binding has to come
before the command starts: the threads of its libraries are made while they load, and inherit it.
"""

import os
import sys
from pathlib import Path
from typing import List, Sequence, Set

NODES = Path("/sys/devices/system/node")
PROGRAM = Path(__file__).resolve()


def shares(num_ranks: int, cores: Sequence[int], numa_nodes: Sequence[Set[int]] = ()) -> List[List[int]]:
    """The cores of each rank: equal numbers, neighbours, and with `numa_nodes` within one of them.

    With more NUMA nodes than ranks, or numbers that do not divide, a few cores stay unused rather than one
    rank having more than another: all wait for the slowest. Raises ValueError if there are not enough cores.
    """
    places = [sorted(node & set(cores)) for node in numa_nodes] or [sorted(cores)]
    places = [place for place in places if place]
    per_place = -(-num_ranks // len(places))
    width = min(len(place) for place in places[: -(-num_ranks // per_place)]) // per_place
    if width == 0:
        raise ValueError(f"{len(cores)} cores cannot be shared by {num_ranks} ranks")
    found = []
    for rank in range(num_ranks):
        place, index = places[rank // per_place], rank % per_place
        found.append(place[index * width : (index + 1) * width])
    return found


def numa_nodes() -> List[Set[int]]:
    """The cores of each NUMA node of this machine; none where the system does not tell."""
    files = sorted(NODES.glob("node[0-9]*/cpulist"), key=lambda path: int(path.parent.name[len("node") :]))
    return [parse(path.read_text(encoding="ascii")) for path in files]


def parse(text: str) -> Set[int]:
    """Linux's short form: `0-2,8` is 0, 1, 2 and 8."""
    found: Set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


def bound(command: Sequence[str], cores: Sequence[int]) -> List[str]:
    """The command line that runs `command` on these cores only."""
    return [sys.executable, str(PROGRAM), ",".join(map(str, cores)), *command]


def main(argv: Sequence[str]) -> None:
    """Become a command, on the given cores."""
    os.sched_setaffinity(0, parse(argv[0]))
    os.execvp(argv[1], list(argv[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
