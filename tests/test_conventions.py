"""The house's rules that a machine can keep: layers, single doors, sizes, names, fresh documents."""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from src.config import RunnerConfig
from src.config.benchmark import BenchmarkConfig
from tests.support import ROOT

SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROGRAMS = [
    *SOURCES,
    *sorted((ROOT / "scripts").rglob("*.py")),
    ROOT / "train.py",
    ROOT / "eval.py",
    ROOT / "benchmark.py",
    ROOT / "runner",
]
# About 250 and 40, with a little room.
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_CALLBACK_LINES = 260, 45, 35

# What each room may import besides itself: downwards only.
LAYERS = {
    "errors": set(),
    "bootstrap": set(),
    "config": set(),
    "option_checks": {"config", "errors"},
    "cli": {"config", "errors", "option_checks"},
    "report": {"errors"},
    "platform": {"errors"},
    "data": {"config", "errors", "platform", "report"},
    "models": {"config", "errors"},
    "weights": {"config", "errors"},
    "evaluate": {"config", "data", "errors", "job", "models", "platform", "report", "weights"},
    "train": {
        "cli",
        "config",
        "data",
        "errors",
        "evaluate",
        "job",
        "models",
        "platform",
        "report",
        "weights",
    },
    "benchmark": {"cli", "config", "errors", "option_checks", "platform", "report"},
    "preflight": {"config", "data", "errors", "weights"},
    "staging": {"config", "data", "errors", "platform"},
    "job": {"config", "data", "platform", "report", "weights"},
    "launch": {"ending", "cli", "config", "errors", "platform", "preflight", "report", "staging", "weights"},
    "ending": {"config", "data", "errors", "platform", "preflight", "report", "weights"},
    "recipes": {"cli", "config", "errors", "weights"},
    "run": {
        "recipes",
        "cli",
        "config",
        "errors",
        "evaluate",
        "job",
        "platform",
        "preflight",
        "report",
        "staging",
        "train",
        "weights",
    },
}
WITHOUT_MINDSPORE = [
    "src.launch", "src.benchmark.command", "src.preflight", "src.cli", "src.report.journal",
    "src.weights.checkpoint",
]  # fmt: skip


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> set[str]:
    """Dotted names of all modules that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def room(path: Path) -> str:
    return path.relative_to(ROOT / "src").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_downwards(path):
    if path == ROOT / "src" / "__init__.py":
        return
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("src.")}
    wrong = rooms - LAYERS[room(path)] - {room(path)}
    assert not wrong, f"{path.name} must not import {wrong}"


def test_what_answers_at_once_does_not_import_mindspore():
    code = f"import sys, {', '.join(WITHOUT_MINDSPORE)}; sys.exit('mindspore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def uses(pattern: str) -> set[str]:
    """Files of the suite (scripts stand alone) in whose code, comments aside, a pattern occurs."""
    found = set()
    for path in [*SOURCES, *(ROOT / name for name in ("train.py", "eval.py", "benchmark.py", "runner"))]:
        code = ast.unparse(tree(path))
        if re.search(pattern, code):
            found.add(str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize(
    ("pattern", "doors"),
    [
        (r"os\.(environ|getenv|putenv)", {"src/platform/environment.py"}),
        (r"import dllogger|import_module\('dllogger'\)", {"src/report/dllog.py"}),
        (
            r"sys\.argv",
            {
                "src/platform/environment.py",
                "src/platform/binding.py",  # a program of its own
                "src/bootstrap.py",
                "train.py",
                "eval.py",
                "benchmark.py",
                "runner",
            },
        ),
        (r"tensorboardX import|import tensorboardX", {"src/report/tensorboard.py"}),
        # The tools that read what runs left behind have commands of their own.
        (r"\btyro\.cli\b|argparse", {"src/cli.py", "src/report/html.py", "src/report/compare.py"}),
        (r"sys\.path", set()),
        (r"import moxing|import_module\('moxing'\)", {"src/platform/object_storage.py"}),
        (
            r"communication\.init\(|set_auto_parallel_context",
            {"src/platform/distributed.py", "src/platform/scheduler.py"},
        ),
    ],
)
def test_a_foreign_system_has_one_door(pattern, doors):
    assert uses(pattern) <= doors


def options() -> list[str]:
    hints = [f.type for config in (RunnerConfig, BenchmarkConfig) for f in dataclasses.fields(config)]
    return [field.name for section in hints for field in dataclasses.fields(section)]


def test_every_option_is_read_by_the_code_that_does_its_work():
    declared = {path for path in SOURCES if room(path) in ("config", "option_checks")}
    code = "\n".join(ast.unparse(tree(path)) for path in SOURCES if path not in declared)
    derived = ast.unparse(tree(ROOT / "src" / "config" / "__init__.py"))
    for name in options():
        if name == "config":  # read by the command line itself, by its name
            assert "'--config'" in code
            continue
        read = re.search(rf"\.{name}\b", code) or re.search(rf"self\.\w+\.{name}\b", derived)
        assert read, f"nothing reads --{name.replace('_', '-')}"


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)]


def lines(node: ast.AST) -> int:
    return node.end_lineno - node.lineno + 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_are_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES
    long = {f.name: lines(f) for f in functions(path) if lines(f) > MAX_FUNCTION_LINES}
    assert not long


def test_callbacks_are_small_and_use_the_current_hook_names():
    found = 0
    for path in sorted((ROOT / "src" / "train" / "callbacks").glob("*.py")):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                found += 1
                assert lines(node) <= MAX_CALLBACK_LINES, node.name
                hooks = [f.name for f in node.body if isinstance(f, ast.FunctionDef) and f.name != "__init__"]
                assert all(name.startswith(("on_train_", "_")) for name in hooks), node.name
    assert found > 5


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_are_the_fields_words(path):
    vague = re.compile(r"\b\w*(utils?|helpers?|common|manager|misc)\b", re.IGNORECASE)
    assert not vague.search(path.stem), path
    names = [n.name for n in ast.walk(tree(path)) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    assert not [name for name in names if vague.search(name) or name.startswith(("process_", "handle_"))]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_say_what_they_are_for_and_swallow_nothing(path):
    module = tree(path)
    if module.body:
        assert ast.get_docstring(module), f"{path} has no docstring"
    for node in ast.walk(module):
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), (
            f"bare except, line {node.lineno}"
        )


def test_tests_mirror_what_they_test():
    broad = {
        "test_end_to_end",
        "test_conventions",
        "test_config",
        "test_contestants",
        "test_exact_resume",
        "test_faults",
        "test_faults_around_ranks",
        "test_two_processes",
        "test_two_runs",
        "test_recipes",
        "test_several_nodes",
        "test_mutations",
        "test_dockerfile",
        "test_shown_commands",
        "test_documents",
    }
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = path.parent.relative_to(ROOT / "tests")
        subject = path.stem.removeprefix("test_")
        homes = [
            ROOT / "src" / folder,
            ROOT / folder,
            ROOT / "scripts",
            ROOT / "scripts" / "convert_to_mindrecord",
        ]
        known = {p.stem for home in homes for p in home.glob("*") if home.is_dir()}
        assert path.stem in broad or any(subject.startswith(name) for name in known), (
            f"{path} tests nothing known"
        )


def test_the_option_table_is_fresh():
    from scripts.make_docs import TARGET, render

    assert TARGET.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_the_report_table_is_fresh():
    from scripts.report_docs import TARGET, render

    assert TARGET.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_the_project_names_no_machine():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    if not files:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"(?<![\w.])/(work|root|home/\w+)/[a-z]")
    for name in files:
        if (
            name.endswith((".py", ".md", ".yaml", ".sh", ".toml", "Makefile", "Dockerfile"))
            and "tests/" not in name
        ):
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not pattern.search(text), name
