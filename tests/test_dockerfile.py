"""The Dockerfile, without docker: what it copies exists, its arguments are used, and nobody runs as root."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess

import pytest

from src import bootstrap
from tests.support import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()


def instructions() -> list[tuple[str, str]]:
    """(INSTRUCTION, what follows it), comments left out and continued lines joined."""
    lines = [line for line in TEXT.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def all_of(name: str) -> list[str]:
    return [rest for word, rest in instructions() if word == name]


def arguments() -> dict[str, str]:
    """Name -> default."""
    return {name: value.strip('"') for name, _, value in (rest.partition("=") for rest in all_of("ARG"))}


def is_ignored(name: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern.removeprefix("**/")) for pattern in IGNORED)


def test_what_is_copied_exists_and_is_not_left_out():
    sources = [word for rest in all_of("COPY") for word in rest.split()[:-1] if not word.startswith("--")]
    assert "requirements.txt" in sources
    for name in sources:
        assert (ROOT / name).exists(), name
        assert name == "." or not is_ignored(name), name


def test_what_must_not_get_into_an_image_is_left_out():
    for name in (".git", ".venv", "work", "__pycache__", ".pytest_cache"):
        assert is_ignored(name), name
    needed = ["Makefile", "runner", "train.py", "eval.py", "src", "scripts", "configs", "requirements.txt"]
    assert not [name for name in needed if is_ignored(name)]


def test_every_argument_is_used_behind_it():
    for name in arguments():
        behind = TEXT.split(f"ARG {name}=", 1)[1]
        assert f"${{{name}}}" in behind, name
    before_from = TEXT.split("\nFROM ")[0]
    assert re.findall(r"^ARG (\w+)", before_from, re.MULTILINE) == ["BASE"]
    assert all_of("FROM") == ["${BASE}"]


def test_the_base_has_a_version_that_the_suite_runs_on():
    match = re.fullmatch(r"python:(\d+)\.(\d+)-slim", arguments()["BASE"])
    assert match
    assert bootstrap.OLDEST <= (int(match[1]), int(match[2])) <= bootstrap.NEWEST


def test_the_container_does_not_run_as_root_and_holds_no_secret():
    assert all_of("USER")[-1] == "${UID}"  # a number: whoever forbids root can tell
    assert int(arguments()["UID"]) > 0
    assert instructions()[-1][0] == "CMD"
    assert not re.search(r"(?i)(ARG|ENV) \w*(token|passw|secret|key)", TEXT)
    assert "--chown=suite" in all_of("COPY")[-1], "make demo writes below the suite"


def test_the_processor_of_the_builder_decides_nothing():
    """What the suite sets at its start is for the machine that it runs on."""
    assert not [rest for rest in all_of("ENV") if "ONEDNN" in rest or "OMP" in rest]


def test_no_caches_and_lists_stay_in_layers():
    runs = all_of("RUN")
    (apt,) = [run for run in runs if "apt-get" in run]
    assert "apt-get update" in apt
    assert "--no-install-recommends" in apt
    assert "rm -rf /var/lib/apt/lists/*" in apt
    (pip,) = [run for run in runs if "pip install" in run]
    assert "--no-cache-dir" in pip
    order = [word for word, _ in instructions()]
    assert order.index("COPY") < len(order) - 1 - order[::-1].index("COPY"), "requirements before the rest"


@pytest.mark.parametrize(("choice", "installed"), [("install", True), ("keep", False)])
def test_a_base_may_keep_its_own_mindspore(tmp_path, choice, installed):
    """The instruction itself, with a python3 that notes the requirements it was given."""
    (command,) = [run for run in all_of("RUN") if "pip install" in run]
    for name in ("requirements.txt", "requirements-demo.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\nfor word; do test -f "$word" && cat "$word" >> noted; done; true\n')
    python.chmod(0o755)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "MINDSPORE": choice}
    (shell,) = all_of("SHELL")
    subprocess.run([*json.loads(shell), command], cwd=tmp_path, env=variables, check=True)
    noted = (tmp_path / "noted").read_text(encoding="utf-8")
    assert ("\nmindspore==" in noted) == installed
    assert "\ntyro" in noted
    assert "scikit-learn" in noted


def test_what_it_starts_is_a_target_of_the_makefile():
    command = json.loads(all_of("CMD")[-1])
    assert command[0] == "make"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE)
    assert command[2] == "PY=python3"


def test_the_page_tells_every_argument_with_its_default_and_uses_no_other():
    page = (ROOT / "docs" / "docker.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", page, re.MULTILINE))
    assert told == arguments()
    assert set(re.findall(r"--build-arg (\w+)=", page)) <= set(told)
