"""Which Python the suite runs in: the active one, its .venv, or a sentence on what to do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).resolve().parent.parent
SHOW = """
import sys
from src.bootstrap import ensure_interpreter
ensure_interpreter(__file__)
print("ran", *sys.argv)
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A copy of the suite's bootstrap with an entry point that prints its arguments."""
    (tmp_path / "suite" / "src").mkdir(parents=True)
    shutil.copy(SUITE / "src" / "bootstrap.py", tmp_path / "suite" / "src")
    (tmp_path / "suite" / "entry").write_text(SHOW)
    return tmp_path / "suite"


def bare_python(tmp_path: Path) -> str:
    """The interpreter of an environment without any package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    return str(tmp_path / "bare" / "bin" / "python")


def make_venv(suite: Path, *modules: str) -> None:
    """The suite's .venv, with stand-ins for packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(suite / ".venv")], check=True)
    packages = next((suite / ".venv" / "lib").glob("python*")) / "site-packages"
    for name in modules:
        (packages / f"{name}.py").write_text("")


def run(*command: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)


def test_an_environment_that_has_mindspore_wins(suite: Path, tmp_path: Path) -> None:
    make_venv(suite)  # would fail: it lacks everything
    done = run(sys.executable, suite / "entry", "-n", "2", cwd=tmp_path)
    assert done.stdout.split() == ["ran", str(suite / "entry"), "-n", "2"], done.stderr


def test_a_bare_python_moves_to_the_venv_with_its_arguments(suite: Path, tmp_path: Path) -> None:
    make_venv(suite, "mindspore", "tyro", "yaml")
    os.symlink(suite / "entry", tmp_path / "link")
    done = run(bare_python(tmp_path), tmp_path / "link", "--lr-steps", "30 60", cwd=tmp_path)
    assert done.stdout == f"ran {tmp_path / 'link'} --lr-steps 30 60\n", done.stderr


def test_without_any_environment_it_says_what_to_do(suite: Path, tmp_path: Path) -> None:
    done = run(bare_python(tmp_path), suite / "entry", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("entry: this Python (")
    assert "lacks mindspore and tyro and yaml: run `make venv`" in done.stderr


def test_a_half_made_venv_does_not_loop(suite: Path, tmp_path: Path) -> None:
    make_venv(suite, "mindspore")
    done = run(bare_python(tmp_path), suite / "entry", cwd=tmp_path)
    assert done.returncode == 1
    assert "lacks tyro and yaml" in done.stderr


def test_a_folder_called_mindspore_is_no_package(suite: Path, tmp_path: Path) -> None:
    (suite / "mindspore").mkdir()
    done = run(bare_python(tmp_path), suite / "entry", cwd=tmp_path)
    assert "lacks mindspore" in done.stderr


def test_a_python_without_wheels_is_told_so(suite: Path, tmp_path: Path) -> None:
    script = (
        "import sys; sys.version_info = (3, 13, 0); import src.bootstrap; sys.exit(src.bootstrap.problem())"
    )
    done = run(bare_python(tmp_path), "-c", script, cwd=suite)
    assert done.returncode == 1
    assert "MindSpore has wheels for Python 3.9 to 3.12; this is 3.13" in done.stderr


def test_check_answers_by_its_exit_code(suite: Path, tmp_path: Path) -> None:
    bootstrap = suite / "src" / "bootstrap.py"
    assert run(sys.executable, bootstrap, "--check", cwd=tmp_path).returncode == 0
    done = run(bare_python(tmp_path), bootstrap, "--check", cwd=tmp_path)
    assert done.returncode == 1
    assert "make venv" in done.stderr


@pytest.mark.parametrize("python", ["python3.6", "python3.8", "python3.13"])
def test_other_pythons_can_read_it(python: str, suite: Path, tmp_path: Path) -> None:
    path = shutil.which(python)
    if path is None or run(path, "-c", "", cwd=tmp_path).returncode:
        pytest.skip(f"no {python} here")
    done = run(path, suite / "src" / "bootstrap.py", "--check", cwd=tmp_path)
    assert done.stderr.startswith("MindSpore has wheels for Python"), done.stderr


def test_the_file_stays_readable_for_old_pythons() -> None:
    text = (SUITE / "src" / "bootstrap.py").read_text()
    compile(text, "bootstrap.py", "exec", dont_inherit=True)
    import ast

    ast.parse(text, feature_version=(3, 6))
    assert "__future__" not in text  # `annotations` is unknown to 3.6
