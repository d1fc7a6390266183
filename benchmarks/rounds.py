"""Contestants measured in turn: each is a process that stays, and is idle while another one's round runs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence, TextIO

from benchmarks.measuring import ROOT

REST_S = 0.5  # what a contestant does ahead after its round must not cost the next one


@dataclass
class Contestant:
    """A command that speaks as benchmarks/peers/serving.py does, and the figures of its rounds."""

    name: str
    command: Sequence[object]
    environment: Mapping[str, str] = field(default_factory=dict)  # beside this process's; "" removes a name
    cores: int | None = None  # it may use only the first so many
    versions: str = ""
    rounds: list[dict[str, Any]] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    answers: TextIO | None = None

    def start(self) -> None:
        """Begin the process and wait until it is ready. Raises RuntimeError if it fails."""
        own, theirs = os.pipe()
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "ANSWERS_FD": str(theirs), **self.environment}
        environment = {name: value for name, value in environment.items() if value}
        words = [str(word) for word in self.command]
        if self.cores is not None:
            some = sorted(os.sched_getaffinity(0))[: self.cores]
            words = ["taskset", "--cpu-list", ",".join(map(str, some)), *words]
        self.process = subprocess.Popen(
            words,
            cwd=ROOT,
            env=environment,
            text=True,
            pass_fds=[theirs],
            stdin=subprocess.PIPE,
            stdout=2,  # what libraries print
        )
        os.close(theirs)
        self.answers = os.fdopen(own, encoding="utf-8")
        self.versions = str(self._answer().get("versions", ""))

    def measure(self) -> dict[str, Any]:
        """One round. Raises RuntimeError if the process ends."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.rounds.append(self._answer())
        return self.rounds[-1]

    def stop(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            assert self.answers is not None
            self.process.stdin.close()
            self.process.wait()
            self.answers.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process is not None
        assert self.answers is not None
        line = self.answers.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {self.process.wait()}")
        return dict(json.loads(line))

    def rates(self, key: str = "images") -> list[float]:
        """Of each round, for a second."""
        return [r[key] / r["seconds"] for r in self.rounds]

    def cpu_ms(self) -> float:
        """Of the processor, for an image: the median round."""
        return statistics.median(1e3 * r["cpu_seconds"] / r["images"] for r in self.rounds)


def take_turns(contestants: Sequence[Contestant], rounds: int, limit_s: float = float("inf")) -> None:
    """`rounds` of each, in every round beginning with another one; no further round after `limit_s`."""
    begin = time.perf_counter()
    for number in range(rounds):
        if time.perf_counter() - begin > limit_s:
            print(f"only {number} rounds: {limit_s:.0f} s are over", file=sys.stderr)
            break
        turn = number % len(contestants)
        for contestant in [*contestants[turn:], *contestants[:turn]]:
            contestant.measure()
            rate = contestant.rates()[-1]
            print(f"round {number + 1}: {contestant.name}: {rate:.1f}/s", file=sys.stderr, flush=True)
            time.sleep(REST_S)


def spread(values: Sequence[float], form: str = ",.0f") -> str:
    """Median (lowest to highest)."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def photographs(given: Path | None, file: str = "imagenet-samples.tar") -> Path | None:
    """The archive to measure with: given, or in $SUITE_DATA_DIR; None if there is none."""
    folder = os.environ.get("SUITE_DATA_DIR")
    found = given or (Path(folder, file) if folder else None)
    return found if found is not None and found.exists() else None
