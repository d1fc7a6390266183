"""From a folder of images to a data root, in one command."""

from __future__ import annotations

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from converting import contents, rows_of
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


@pytest.fixture
def prepare_dataset(monkeypatch):
    """The module, as it is when it runs as a program."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import prepare_dataset

    return prepare_dataset


def test_val_gets_the_labels_of_train(tmp_path):
    """With spaces in every path; val lacks train's first class."""
    source = make(
        tmp_path / "my images", "train/a/1.JPEG", "train/b/1.JPEG", "train/c/1.JPEG", "val/c/9.JPEG"
    )
    target = tmp_path / "my records"
    done = run(source, target, "--seed", "3", "--workers", "1")
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
    assert "no folder val, and none is made of it (no class has two images)" in done.stderr
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
        environment = {**os.environ, "PYTHON": sys.executable}
        line = ["bash", str(SCRIPTS / script), *words]
        done = subprocess.run(line, capture_output=True, text=True, env=environment)
        assert done.returncode == code
        assert "usage:" in (done.stdout + done.stderr).lower()


def test_without_an_active_environment_the_suites_own_is_used(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import conversion

    monkeypatch.setattr(conversion, "VENV", tmp_path)
    assert conversion.interpreter() == sys.executable
    own = tmp_path / "bin" / "python"
    own.parent.mkdir()
    own.touch()
    assert conversion.interpreter() == sys.executable
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert conversion.interpreter() == str(own)


@pytest.mark.slow
def test_a_share_is_held_out_of_class_folders(tmp_path):
    files = [
        f"{name}/{number}.JPEG" for name, count in {"a": 9, "b": 2, "c": 1}.items() for number in range(count)
    ]
    source = make(tmp_path / "images", *files)
    done = run(source, tmp_path / "one", "--val-share", "0.3", "--seed", "4", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "held out 4 of 12 images (33.3 %)" in done.stderr
    assert "stays in train: 1 (c)" in done.stderr
    sets = {split: read_manifest(tmp_path / "one" / split) for split in ("train", "val")}
    for split, counts in {"train": [6, 1, 1], "val": [3, 1, 0]}.items():
        assert sets[split].class_names == ["a", "b", "c"]
        assert [item.num_images for item in sets[split].classes] == counts
        assert (sets[split].options["val_share"], sets[split].options["part"]) == (0.3, split)
        assert sets[split].seed == 4
    names = [str(row["file_name"]) for split in sets for row in rows_of(tmp_path / "one" / split)]
    assert sorted(names) == sorted(files)
    done = run(source, tmp_path / "two", "--val-share", "0.3", "--seed", "4", "--workers", "3")
    for split in sets:
        assert contents(tmp_path / "two" / split) == contents(tmp_path / "one" / split)


def test_a_share_is_held_out_of_train_where_there_is_no_val(prepare_dataset, tmp_path):
    source = make(tmp_path, "train/a/1.JPEG", "train/b/1.JPEG", "train/b/2.JPEG")
    train, val = prepare_dataset.find_splits(source, None)
    assert (train.name, train.images) == ("train", source / "train")
    assert (val.name, val.images) == ("val", source / "train")
    assert train.options == ["--val_share=0.1", "--part=train"]
    assert val.options == ["--val_share=0.1", "--part=val"]


def test_no_share_means_training_data_only(tmp_path):
    source = make(tmp_path / "images", "a/1.JPEG", "a/2.JPEG", "b/1.JPEG")
    done = run(source, tmp_path / "out", "--val-share", "0")
    assert done.returncode == 0, done.stderr
    assert "training data only" in done.stderr
    assert os.listdir(tmp_path / "out") == ["train"]
    assert read_manifest(tmp_path / "out/train").num_images == 3


MISFITS = {
    "val and a share": (["train/a/1.JPEG", "val/a/1.JPEG"], ["--val-share", "0.2"], 2, "without one"),
    "val by another name": (["train/a/1.JPEG", "valid/a/1.JPEG"], [], 3, "images/valid to val"),
    "val alone": (["val/a/1.JPEG", "val/b/1.JPEG"], [], 3, "expected"),
    "one folder too high": (["x/a/1.JPEG", "x/b/1.JPEG"], [], 3, "did you mean {}/x?"),
    "images alone": (["1.JPEG", "2.JPEG"], [], 3, "did you mean {}/..?"),
    "a share above 1": (["a/1.JPEG", "b/1.JPEG"], ["--val-share", "2"], 2, "'2' is no share"),
    "a class only in val": (["train/a/1.JPEG", "val/a/1.JPEG", "val/new/1.JPEG"], [], 3, "not have: new"),
    "a flat val": (["train/a/1.JPEG", "val/1.JPEG"], [], 3, "images/val is a flat folder"),
    "an empty val": (["train/a/1.JPEG", "val/x/y.txt"], [], 3, "not have: x"),
    "an unknown option": (["a/1.JPEG", "b/1.JPEG"], ["--colour", "red"], 2, "--colour"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_refused(name, tmp_path):
    files, words, code, expected = MISFITS[name]
    source = make(tmp_path / "images", *files)
    done = run(source, tmp_path / "out", *words)
    assert done.returncode == code
    assert expected.format(source).replace("/images/..", "") in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_target_among_the_classes_is_refused(tmp_path):
    source = make(tmp_path / "images", "a/1.JPEG", "a/2.JPEG", "b/1.JPEG")
    done = run(source, source / "records")
    assert done.returncode == 2
    assert "whose folders are classes" in done.stderr
    assert sorted(os.listdir(source)) == ["a", "b"]


@pytest.mark.slow
def test_what_a_killed_run_left_out_can_be_made_alone(tmp_path):
    """With the classes of the train that is there, and never with images that are in it."""
    source = make(tmp_path / "images", *(f"{name}/{number}.JPEG" for name in "ab" for number in range(4)))
    out = tmp_path / "out"
    assert run(source, out, "--only", "val").returncode == 3
    assert run(source, out, "--only", "train", "--seed", "2").returncode == 0
    done = run(source, out, "--seed", "2")
    assert done.returncode == 2
    assert "or --only val to make what is missing" in done.stderr
    for words in (("--seed", "3"), ("--seed", "2", "--val-share", "0.5")):
        done = run(source, out, "--only", "val", *words)
        assert done.returncode == 2
        assert "made with --val-share=0.1 and --seed 2" in done.stderr
    done = run(source, out, "--only", "val", "--seed", "2")
    assert done.returncode == 0, done.stderr
    names = [str(row["file_name"]) for split in ("train", "val") for row in rows_of(out / split)]
    assert len(names) == len(set(names)) == 8


def dry_run(source, target, *words):
    done = run(source, target, "--dry-run", *words)
    assert done.returncode == 0, done.stderr
    assert not target.exists()
    return [line.strip() for line in done.stdout.splitlines()]


def test_a_dry_run_tells_what_would_be_held_out_and_writes_nothing(tmp_path):
    """The very same images are held out if it is then done."""
    names = [f"{name}/{n}.JPEG" for name, count in {"a": 9, "b": 4, "c": 1}.items() for n in range(count)]
    source, out = make(tmp_path / "images", *names), tmp_path / "out"
    lines = dry_run(source, out, "--val-share", "0.3", "--seed", "4", "--workers", "1")
    assert lines[0] == f"{source} holds class folders, and no val:"
    assert "held out 4 of 14 images (28.6 %) for validation" in lines[1]
    assert "by seed 4" in lines[1]
    num_bytes = sum((source / name).stat().st_size for name in names)
    assert any(line.startswith("train: 10 images of 3 classes, ") for line in lines)
    assert any(line.startswith("val: 4 images of 2 classes, ") for line in lines)
    assert any(f"It would be about {num_bytes / 1e3:,.1f} kB" in line for line in lines)
    assert f"{out}/val/val.mindrecord*, {out}/val/manifest.json" in lines
    commands = [shlex.split(line) for line in lines if "--mindrecord_script=imagenet" in line]
    assert len(commands) == 2
    for command in commands:
        assert subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    assert [read_manifest(out / split).num_images for split in ("train", "val")] == [10, 4]


def test_a_dry_run_gives_val_the_classes_of_train(tmp_path):
    source = make(tmp_path / "images", "train/a/1.JPEG", "train/b c/1.JPEG", "val/b c/9.JPEG")
    lines = dry_run(source, tmp_path / "out")
    assert lines[0] == f"{source} holds folders of class folders:"
    assert any(line.startswith("val: 1 images of 1 classes") for line in lines)
    assert any("keep their labels: 1 (a)" in line for line in lines)
    assert sum(f"--classes_from={tmp_path}/out/train/manifest.json" in line for line in lines) == 1
    (tmp_path / "map.txt").write_text("b c\t0\tbig cat\na\t1\tant\n", "utf-8")
    lines = dry_run(source, tmp_path / "out", "--map-file", tmp_path / "map.txt", "--only", "val")
    assert [line for line in lines if line.startswith("train")] == []
    assert f"--map_file={tmp_path}/map.txt" in lines[-1]


def test_a_dry_run_refuses_what_the_run_would_refuse(tmp_path):
    source = make(tmp_path / "images", "train/a/1.JPEG", "val/new/1.JPEG")
    done = run(source, tmp_path / "out", "--dry-run")
    assert (done.returncode, "not have: new" in done.stderr) == (3, True)
    done = run(make(tmp_path / "two", "a/1.JPEG", "b/1.JPEG"), tmp_path / "out", "--dry-run", "--seed", "x")
    assert (done.returncode, "--seed x: a whole number" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_what_is_ended_publishes_nothing_and_says_so(name, tmp_path):
    """Ctrl-C reaches the converter as well; SIGTERM is passed on to it."""
    source = make(tmp_path / "images", "train/a/1.JPEG", "val/a/1.JPEG")
    os.mkfifo(source / "train/a/2.JPEG")  # whoever reads it waits for ever
    line = [sys.executable, str(SCRIPTS / "prepare_dataset.py"), str(source), str(tmp_path / "out")]
    child = subprocess.Popen(
        line,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "out/.train.converting/set/convert.log").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    number = getattr(signal, name)
    os.killpg(child.pid, number) if name == "SIGINT" else child.send_signal(number)
    told = child.communicate(timeout=30)[1]
    assert child.returncode == 128 + number
    assert told.splitlines()[-1] == f"writer.py: ended by {name}; nothing was published"
    assert "Traceback" not in told
    assert not (tmp_path / "out").exists()
