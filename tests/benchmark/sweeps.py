"""A stand-in for `runner`, and benchmark.py on it: what a run does is a few lines of Python."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support import ROOT

# benchmark.py with another program in runner's place.
DRIVER = """
import sys
from src.benchmark import command, running
command.RUNNER = [sys.executable, sys.argv[1]]
running.STOP_GRACE_S = running.KILL_GRACE_S = float(sys.argv[2])
sys.exit(command.main(sys.argv[3:]))
"""
STAND_IN = """
import json, os, signal, subprocess, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
given = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--") and "=" in word)
n, b, workspace = int(given["num-devices"]), int(given["batch-size"]), given["workspace"]
epochs = list(range(int(given["run-epochs"])))

def note(name):
    with open(os.path.join(folder, name + ".tmp"), "w") as file:
        json.dump({"pid": os.getpid(), "argv": sys.argv[1:]}, file)
    os.replace(os.path.join(folder, name + ".tmp"), os.path.join(folder, name))

def leave(metrics, **changes):
    # What a run leaves: a report with these lists, one value per epoch.
    document = dict(
        schema_version=1, status="completed", model="resnetv15", ngpus=n, total_duration=1.0, cmd=[],
        metrics=metrics, epochs=epochs, config={"batch-size": b},
        environment=dict(
            device="CPU", host="here", cores=2, processor="a processor", python="3.11.0",
            mindspore="2.10.0", numpy="1.26.4", git_commit="0123456789abcdef",
        ),
        dataset={"train": {"path": "synthetic"}},
    )
    document.update(changes)
    with open(os.path.join(workspace, "report.json"), "w") as file:
        json.dump(document, file)

def measured(rate, phases=("train", "val")):
    # Figures of a run that makes `rate` images/s in its first epoch, and three times as many in all others.
    rates = [rate * (3 if epoch else 1) for epoch in epochs]
    found = {}
    for phase in phases:
        found[phase + ".total_ips"] = rates
        for which in ("avg", "50", "90", "95", "99", "100"):
            found[phase + ".latency_" + which] = [n * b / r for r in rates]
    return found

if "--dry-run" in sys.argv:
    exec(open(os.path.join(folder, "checks")).read())
    sys.exit(0)
note(f"started_{n}_{b}.json")
exec(open(os.path.join(folder, "program")).read())
"""
MEASURES = "leave(measured(100.0 * n))"


class Sweeps:
    """A folder for the stand-in, and another for what benchmark.py writes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.output = folder / "suite", folder / "out" / "bench.json"
        self.grace_s = 5.0
        self.folder.mkdir()

    def prepare(self, program: str = MEASURES, checks: str = "") -> str:
        """Write the stand-in, and what it does as a run and as a dry run; returns its path."""
        (self.folder / "program").write_text(program)
        (self.folder / "checks").write_text(checks)
        (self.folder / "runner").write_text(STAND_IN)
        return str(self.folder / "runner")

    def start(self, *options: object, program: str = MEASURES, checks: str = "") -> subprocess.Popen[str]:
        driver = [sys.executable, "-c", DRIVER, self.prepare(program, checks), str(self.grace_s)]
        words = ["-o", self.output, "--data-backend", "synthetic", *options]
        command = [*driver, *map(str, words)]
        return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(
        self, *options: object, program: str = MEASURES, checks: str = "", timeout: float = 60
    ) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        started = self.start(*options, program=program, checks=checks)
        out, err = started.communicate(timeout=timeout)
        return started.returncode, out, err

    def report(self) -> dict[str, Any]:
        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not strict JSON")

        found: dict[str, Any] = json.loads(self.output.read_text(), parse_constant=refuse)
        return found

    def started(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("started_*.json"))

    def argv(self, name: str) -> list[str]:
        words: list[str] = json.loads((self.folder / f"{name}.json").read_text())["argv"]
        return words

    def await_file(self, name: str) -> int:
        """The process id that the file tells, once it is there."""
        end = time.monotonic() + 30
        while not (self.folder / name).exists():
            assert time.monotonic() < end, f"no {name}"
            time.sleep(0.02)
        return int(json.loads((self.folder / name).read_text())["pid"])


def runs(pid: int) -> bool:
    """Whether the process still runs, or does within two seconds from now."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True
