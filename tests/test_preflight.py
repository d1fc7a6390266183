"""What is refused before MindSpore is even imported."""

from __future__ import annotations

import json

import pytest

from src import cli, preflight
from src.errors import CheckpointError, DataError, OptionError

SYNTHETIC = "--data-backend synthetic --num-classes 10 --image-shape 3,64,64"


def prepare(words: str, tmp_path, devices: int = 1) -> preflight.Prepared:
    config = cli.parse([*words.split(), "--workspace", str(tmp_path)], "train.py")
    return preflight.prepare(config, devices)


def test_a_start_opens_what_its_mode_needs(tmp_path):
    both = prepare(f"{SYNTHETIC} --num-examples 64 -b 8", tmp_path).splits
    assert (len(both.train), len(both.val), len(both.classes)) == (64, 2, 10)
    alone = prepare(f"{SYNTHETIC} --num-examples 64 -b 8 --mode train", tmp_path).splits
    assert alone.val is None
    scored = prepare(f"{SYNTHETIC} --num-examples 64 --test-io --test-io-mode val", tmp_path).splits
    assert scored.train is None


def test_a_batch_larger_than_the_set_is_refused_with_all_devices_counted(tmp_path):
    prepare(f"{SYNTHETIC} --num-examples 16 -b 8", tmp_path, devices=2)
    with pytest.raises(DataError, match=r"16 training images .* 24"):
        prepare(f"{SYNTHETIC} --num-examples 16 -b 8", tmp_path, devices=3)


def test_a_batch_of_one_tiny_image_would_poison_batch_norm(tmp_path):
    with pytest.raises(DataError, match="-b 2"):
        prepare("--data-backend synthetic --num-classes 10 --image-shape 3,32,32 -b 1", tmp_path)


@pytest.mark.parametrize("mode", ["val", "pred --data-pred x.png", "train"])
def test_a_missing_checkpoint_is_named(tmp_path, mode):
    with pytest.raises(CheckpointError, match="nowhere"):
        prepare(f"{SYNTHETIC} --load nowhere.safetensors --mode {mode}", tmp_path)


def test_images_to_classify_are_looked_for(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"x")
    with pytest.raises(DataError, match=r"x\.png"):
        prepare(f"--load {tmp_path}/a.safetensors --mode pred --data-pred {tmp_path}/x.png", tmp_path)


def test_fewer_classes_than_the_data_has_are_refused(tmp_path):
    for split in ("train", "val"):
        for name in "abc":
            (tmp_path / split / name).mkdir(parents=True)
            (tmp_path / split / name / "1.png").write_bytes(b"x")
    words = f"--data-backend imagefolder --data-root {tmp_path} -b 1"
    assert len(prepare(words, tmp_path / "w").splits.classes) == 3
    with pytest.raises(DataError, match="3 classes"):
        prepare(f"{words} --num-classes 2", tmp_path / "w")


def test_another_runs_workspace_is_refused(tmp_path):
    words = f"{SYNTHETIC} --num-examples 64 -b 8"
    config = cli.parse(words.split(), "train.py")
    held = {"config": config.plain(), "ngpus": 1, "epochs": [0], "status": "running"}
    (tmp_path / "report.json").write_text(json.dumps(held))
    with pytest.raises(OptionError, match="--batch-size"):
        prepare(f"{SYNTHETIC} --num-examples 64 -b 16", tmp_path)
