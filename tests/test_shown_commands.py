"""Every command that README and docs show has options that exist, and runs, or it is said why not."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from src import cli
from src.config import Config, RunnerConfig
from src.config.benchmark import BenchmarkConfig
from tests import shown_world
from tests.shown import ALL, LANGUAGES, PAGES, Shown, languages, programs, words_of
from tests.support import ROOT

# The whole of a command -> why it cannot be run here.
CANNOT = {
    r"docker (build|run).*": "needs docker, and downloads its base (see tests/test_dockerfile.py)",
    r"make (venv|demo|test|test-fast|test-deep|check)": "makes an environment, or is the tests",
    r"make (bench|docs)": "makes an environment, which downloads",
    r"pip install .*": "downloads",
    r"python -m benchmarks\..*": "measures for minutes, and wants a machine to itself",
    r"python benchmark\.py .*": "makes many runs (tests/benchmark makes small ones)",
    r"\./runner -n 8 --nodes 2 .*": "needs two machines (tests/test_several_nodes.py makes two)",
    r"(msrun|mpirun|srun) .*": "needs that launcher, or machines (see tests/test_several_nodes.py)",
    r"runner -n 8 -b 192 \.\.\.": "is for ModelArts",
    r"tensorboard .*": "serves until it is stopped",
    r"kill -USR1 PID": "needs a process to send it to (tests/faults does)",
    r"(python )?records\.py( verify| merge| COMMAND --help)?": "is a name in a sentence, not a whole command",
    r"python -m scripts\.show_batch": "is a name in a sentence, not a whole command",
}
# Those of the MXNet example, in docs/migration.md.
THEIRS = "|".join(
    (
        r"docker build \. -t nvidia_rn50_mx",
        r"im2rec\.py .*",
        r"\./runner -n 8 -b 192",
        r"\./runner -n N -b B --load MODEL .*",
        r"\./runner --load MODEL .*",
    )
)
LAUNCHERS = {"msrun", "mpirun", "srun"}
COMMANDS = [(each, command) for each in ALL for command in each.commands]
OURS = [(each, command) for each, command in COMMANDS if not re.fullmatch(THEIRS, command)]


def reason(command: str) -> str | None:
    """Why a command is not run; None if it is."""
    if re.fullmatch(THEIRS, command):
        return "is a command of the MXNet example"
    return next((why for pattern, why in CANNOT.items() if re.fullmatch(pattern, command)), None)


def runnable(each: Shown) -> list[str]:
    return [command for command in each.commands if reason(command) is None]


def to_run() -> list[Shown]:
    """Each set of commands once, wherever it is shown."""
    found = {}
    for each in ALL:
        if runnable(each):
            found.setdefault((each.folder, *runnable(each)), each)
    return list(found.values())


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is_so_that_no_command_hides(page):
    assert set(languages(page)) <= LANGUAGES, "```sh for commands, ```text for other things"


def test_no_reason_is_out_of_date():
    for pattern in (*CANNOT, *THEIRS.split("|")):
        assert any(re.fullmatch(pattern, command) for _, command in COMMANDS), pattern
    assert len(to_run()) > 30


def scripts_options() -> set[str]:
    """Every `--option` of a script, a benchmark (by its usage) or a report's tool, with `_` for `-`."""
    usages = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py"))
    found = {word.replace("-", "_") for word in re.findall(r"(?<=\[)--[a-z-]+", usages)}
    for folder in ("scripts", "benchmarks", "src/report"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and str(node.value).startswith("--"):
                    found.add(str(node.value).replace("-", "_"))
    return found


OPTIONS = scripts_options()


def check(words: list[str]) -> None:
    """Raises OptionError, or AssertionError, for an option or a target that there is not."""
    names = [Path(word).name for word in words]
    entries = {"runner", "train.py", "eval.py", "scripts.show_batch"}
    place = next((i for i, name in enumerate(names) if name in entries), None)
    if place is not None:
        check_entry(names[place], [word for word in words[place + 1 :] if word != "..."])
    elif "benchmark.py" in names:
        given = [word for word in words[names.index("benchmark.py") + 1 :] if word != "--help"]
        _, others = cli.parse_own(given, "benchmark.py", BenchmarkConfig)
        cli.parse(others, "runner", RunnerConfig)
    elif names[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets), words
    elif names[0] == "python" or names[0].endswith((".py", ".sh")):
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        unknown = {word for word in given if word.replace("-", "_") not in OPTIONS and word != "--help"}
        assert not unknown, words
    else:
        assert names[0] in {"docker", "cp", "true", "kill", "pip", "tensorboard", "$EDITOR", *LAUNCHERS}, (
            words
        )


def check_entry(program: str, words: list[str]) -> None:
    if "--help" in words:
        return
    if program == "scripts.show_batch":
        words = " ".join(words).replace("--output batch.png", "").split()
    if program == "eval.py":
        words = ["--mode", "val", *words]
    cli.parse(words, program, RunnerConfig if program == "runner" else Config)


@pytest.fixture
def in_suite(monkeypatch):
    monkeypatch.chdir(ROOT)  # where recipes are found


@pytest.mark.parametrize(("each", "command"), OURS, ids=[f"{each}" for each, _ in OURS])
def test_the_options_of_a_shown_command_exist(each, command, in_suite):
    for words in words_of(command):
        check(words)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """The world before any command of the docs."""
    folder = tmp_path_factory.mktemp("shown") / "world"
    folder.mkdir()
    shown_world.build(folder)
    return folder


def marked(each: Shown):
    """The README's are run by `make test`, the others by `make test-deep`."""
    level = pytest.mark.slow if each.page == "README.md" else pytest.mark.deep
    return pytest.param(each, marks=level, id=str(each))


@pytest.mark.parametrize("each", [marked(each) for each in to_run()])
def test_a_shown_command_runs_as_it_stands_there(each, template, tmp_path):
    commands = runnable(each)
    if any("--bind" in command for command in commands) and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core, and nobody to share it with")
    folder = tmp_path / "world"
    shown_world.prepare(template, folder, commands)
    done = shown_world.bash("\n".join(commands), folder / each.folder)
    assert done.returncode == 0, f"{commands}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    missing = shown_world.what_is_missing(each, commands, folder)
    assert not missing, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("page", "program"), [(page, program) for page in PAGES for program in programs(page)]
)
def test_a_shown_program_runs(page, program, template):
    """A Python source is a program, too, which only defines things; commands above have read it."""
    script = f"python - <<'END'\n{program}\nEND"
    done = shown_world.bash(script, template)
    assert done.returncode == 0, done.stderr
