"""From a folder of images to a data root, in one command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from src.data.manifest import read_manifest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def run(*words):
    line = [sys.executable, str(SCRIPTS / "prepare_dataset.py"), *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (len(names), 20, 200)).save(path, "PNG")
    return folder


def test_val_gets_the_labels_of_train(tmp_path):
    """Through the shell script, with spaces in every path; val lacks train's first class."""
    source = make(
        tmp_path / "my images", "train/a/1.JPEG", "train/b/1.JPEG", "train/c/1.JPEG", "val/c/9.JPEG"
    )
    target = tmp_path / "my records"
    line = [
        "bash",
        str(SCRIPTS / "prepare_imagenet.sh"),
        str(source),
        str(target),
        "--seed",
        "3",
        "--workers",
        "1",
    ]
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={**os.environ, "PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    train, val = read_manifest(target / "train"), read_manifest(target / "val")
    assert train.class_names == val.class_names == ["a", "b", "c"]
    assert [item.num_images for item in val.classes] == [0, 0, 1]
    assert (train.split, val.split) == ("train", "val")
    assert (train.num_images, train.seed) == (3, 3)
    assert sorted(path.name for path in target.iterdir()) == ["train", "val"]


def test_mapping_file_and_train_alone(tmp_path):
    source = make(tmp_path / "images", "train/a/1.JPEG", "train/b/1.JPEG")
    (tmp_path / "map.txt").write_text("b 0 big bear\na 1 ant\n", "utf-8")
    done = run(source, tmp_path / "out", "--map-file", tmp_path / "map.txt")
    assert done.returncode == 0, done.stderr
    assert "no folder val" in done.stderr
    assert read_manifest(tmp_path / "out/train").class_names == ["big bear", "ant"]
    assert not (tmp_path / "out/val").exists()


def test_both_targets_are_checked_before_the_work_on_the_first(tmp_path):
    source = make(tmp_path / "images", "train/a/1.JPEG", "val/a/1.JPEG")
    (tmp_path / "out/val").mkdir(parents=True)
    (tmp_path / "out/val/manifest.json").write_text("old", "utf-8")
    done = run(source, tmp_path / "out")
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert os.listdir(tmp_path / "out") == ["val"]


@pytest.mark.parametrize(("given", "meant"), [("data", "data/images"), ("data/images/train", "data/images")])
def test_a_source_of_the_wrong_level_is_refused_with_a_hint(given, meant, tmp_path):
    make(tmp_path / "data/images", "train/a/1.JPEG")
    done = run(tmp_path / given, tmp_path / "out")
    assert done.returncode == 3
    assert f"did you mean {tmp_path / meant}?" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_exit_code_of_the_converter_is_passed_on(tmp_path):
    source = make(tmp_path / "images", "train/a/1.JPEG")
    done = run(source, tmp_path / "out", "--workers", "none")
    assert done.returncode == 2
    assert "'none'" in done.stderr


@pytest.mark.parametrize(
    "script",
    ["prepare_imagenet.sh", "convert_to_mindrecord/run_imagenet.sh", "convert_to_mindrecord/run_template.sh"],
)
def test_shell_scripts_explain_themselves(script):
    for words, code in ((["--help"], 0), ([], 2)):
        done = subprocess.run(["bash", str(SCRIPTS / script), *words], capture_output=True, text=True)
        assert done.returncode == code
        assert "Usage:" in done.stdout + done.stderr


def test_without_an_active_environment_the_suites_own_is_used(tmp_path, monkeypatch):
    import importlib.util

    from scripts import prepare_dataset

    monkeypatch.setattr(prepare_dataset, "VENV", tmp_path)
    assert prepare_dataset.interpreter() == sys.executable
    own = tmp_path / "bin" / "python"
    own.parent.mkdir()
    own.touch()
    assert prepare_dataset.interpreter() == sys.executable
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert prepare_dataset.interpreter() == str(own)
