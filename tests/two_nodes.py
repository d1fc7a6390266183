"""Two machines on one: network namespaces joined by a wire, with addresses and host names of their own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ADDRESSES = ("10.77.31.1", "10.77.31.2")
PREFIX = "suite"
# A second network card, to nowhere, which comes first: the ranks must find each other by the other one.
DECOYS = ("10.1.31.1", "10.1.31.2")


class TwoNodes:
    """The namespaces, until the context ends; processes in them are the tests' own to end."""

    def __init__(self, name: str) -> None:
        self.names = [f"{name}a", f"{name}b"]

    def command(self, node: int, *words: str) -> list[str]:
        """The command line that runs `words` on a node."""
        rename = f'hostname {self.names[node]} && exec "$@"'
        return ["ip", "netns", "exec", self.names[node], "unshare", "-u", "sh", "-c", rename, "sh", *words]


@contextlib.contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    """Make them, or skip the test where that is not allowed; always remove them."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "hostname"))):
        pytest.skip("network namespaces need root, iproute2 and util-linux")
    _sweep()
    nodes = TwoNodes(f"{PREFIX}{os.getpid()}")
    try:
        _make(nodes.names)
        yield nodes
    finally:
        for name in nodes.names:
            _delete(name)


def _sweep() -> None:
    """Remove what tests left that were killed."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    for pid in set(re.findall(rf"^{PREFIX}(\d+)[ab]\b", listed, re.MULTILINE)):
        if not Path(f"/proc/{pid}").exists():
            _delete(f"{PREFIX}{pid}a")
            _delete(f"{PREFIX}{pid}b")


def _delete(name: str) -> None:
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)  # its end of the wire goes with it


def _make(names: list[str]) -> None:
    ends = ["wire0", "wire1"]
    words = [["netns", "add", name] for name in names]
    for name, decoy in zip(names, DECOYS):
        words += [
            ["-n", name, "link", "add", "decoy", "type", "veth", "peer", "name", "nowhere"],
            ["-n", name, "addr", "add", f"{decoy}/24", "dev", "decoy"],
            ["-n", name, "link", "set", "decoy", "up"],
            ["-n", name, "link", "set", "nowhere", "up"],
        ]
    words += [["link", "add", ends[0], "netns", names[0], "type", "veth",
               "peer", "name", ends[1], "netns", names[1]]]  # fmt: skip
    for name, end, address in zip(names, ends, ADDRESSES):
        words += [
            ["-n", name, "addr", "add", f"{address}/24", "dev", end],
            ["-n", name, "link", "set", end, "up"],
            ["-n", name, "link", "set", "lo", "up"],
        ]
    for command in words:
        done = subprocess.run(["ip", *command], capture_output=True, text=True)
        if done.returncode != 0:
            told = done.stderr.strip()
            pytest.skip(f"network namespaces cannot be made here: ip {' '.join(command)}: {told}")
