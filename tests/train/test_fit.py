"""Whole runs with what changes the update: accumulated batches, averaged weights, float16, divergence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from src.weights import checkpoint
from tests.support import command

# 136 images: 8 batches of 16 make 2 updates of 4 batches, and a rest that is left out.
SHORT = [
    *("--data-backend", "synthetic", "--num-classes", 10, "--image-shape", "3,32,32", "--num-layers", 18),
    *("-b", 16, "--num-examples", 136, "--warmup-epochs", 0, "--seed", 5, "--disp-batches", 3, "-e", 3),
]
ALL = ["--accumulation", 3, "--ema", 0.7, "--grad-clip", 1, "--dtype", "float16", "--optimizer", "lamb"]


def train(workspace: Path, *words: object):
    return command("train.py", *SHORT, *words, "--workspace", workspace)


def report(workspace: Path) -> dict:
    return json.loads((workspace / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    workspace = tmp_path_factory.mktemp("whole")
    done = train(workspace, *ALL, "--lr", 0.01)
    assert done.returncode == 0, done.stderr
    (workspace / "console.txt").write_text(done.stdout)
    return workspace


@pytest.mark.slow
def test_a_run_with_everything_is_told(whole):
    found = report(whole)
    metrics = found["metrics"]
    assert metrics["train.skipped_steps"] == [0, 0, 0]
    assert metrics["train.loss_scale"] == [65536, 65536, 65536]
    assert {"val.ema_top1", "val.ema_top5", "val.ema_loss"} <= set(metrics)
    assert metrics["val.ema_loss"] != metrics["val.loss"]
    assert found["best"]["top1"] == max(metrics["val.ema_top1"])
    assert found["best"]["weights"] == "ema"
    # The last of 2 updates of the last of 3 epochs.
    peak = 0.01 * 16 * 3 / 256
    assert metrics["train.lr"][-1] == pytest.approx(peak / 2 * (1 + np.cos(np.pi * 2.5 / 3)))
    text = (whole / "console.txt").read_text()
    for word in ("48 in all in 3 batches each", "6 steps each", "ema top1", "--use-ema"):
        assert word in text, word
    raw, averaged = (metrics[f"val.{kind}top1"][-1] for kind in ("", "ema_"))
    for word in (
        f"{max(metrics['val.ema_top1']):.2%} with averaged weights, in epoch",
        f"{averaged:.2%} with averaged weights, {raw:.2%} without",
    ):
        assert word in text, word


@pytest.mark.slow
def test_in_parts_it_is_the_same_bit_for_bit(whole, tmp_path):
    for part in (["--run-epochs", 1], []):
        done = train(tmp_path, *ALL, "--lr", 0.01, *part)
        assert done.returncode == 0, done.stderr
    assert "continuing" in done.stdout
    one, two = (checkpoint.read(place / "model_last.safetensors") for place in (whole, tmp_path))
    assert one.meta["best"]["top1"] == two.meta["best"]["top1"]
    assert {"ema.conv1.weight", "moment2.fc.weight", "loss_scale"} <= set(one.tensors)
    differing = [name for name in one.tensors if one.tensors[name].tobytes() != two.tensors[name].tobytes()]
    assert differing == []
    first, second = report(whole)["metrics"], report(tmp_path)["metrics"]
    for name in ("train.loss", "val.loss", "val.ema_loss", "train.lr", "train.skipped_steps"):
        assert first[name] == second[name], name


@pytest.mark.slow
def test_a_run_is_the_same_bit_for_bit_if_the_device_normalises(tmp_path):
    ended = []
    for words in ([], ["--normalize-on-device"]):
        workspace = tmp_path / f"run{len(words)}"
        done = train(workspace, "--mixup", 0.2, "-e", 1, *words)
        assert done.returncode == 0, done.stderr
        ended.append(checkpoint.read(workspace / "model_last.safetensors").tensors)
    one, other = ended
    assert [name for name in one if one[name].tobytes() != other[name].tobytes()] == []


@pytest.mark.slow
def test_the_averaged_weights_are_scored_as_in_training(whole, tmp_path):
    metrics = report(whole)["metrics"]
    scored = ["--data-backend", "synthetic", "--num-examples", 136, "-b", 3, "--dtype", "float16"]
    scored += ["--load", whole / "model_last.safetensors"]
    for words, name in (([], "val.loss"), (["--use-ema"], "val.ema_loss")):
        done = command("eval.py", *scored, *words, "--workspace", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert report(tmp_path / name)["metrics"]["val.loss"][0] == pytest.approx(metrics[name][-1], rel=1e-3)


@pytest.mark.slow
def test_a_checkpoint_without_averages_says_so(tmp_path):
    done = train(tmp_path, "--run-epochs", 1)
    assert done.returncode == 0, done.stderr
    again = command("eval.py", "--load", tmp_path / "model_last.safetensors", "--use-ema", "--workspace",
                    tmp_path / "score", "--data-backend", "synthetic", "--num-examples", 16)  # fmt: skip
    assert again.returncode == 5
    assert "--use-ema" in again.stderr


@pytest.mark.slow
def test_divergence_overwrites_nothing_good(tmp_path):
    """A good epoch, then a rate beyond reason: the last checkpoint stays that of the good epoch."""
    words = [
        "--lr-schedule",
        "multistep",
        "--lr-steps",
        "1",
        "--lr-factor",
        "1e12",
        "--max-nonfinite-steps",
        4,
    ]
    done = train(tmp_path, *words, "-e", 9)
    assert done.returncode == 4, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "--lr" in done.stderr
    found = report(tmp_path)
    assert found["status"] == "failed"
    for which in ("last", "best"):
        kept = checkpoint.read(tmp_path / f"model_{which}.safetensors")
        assert checkpoint.nonfinite(kept.tensors) == []
        assert kept.meta["epochs_done"] <= len(found["epochs"])


@pytest.mark.slow
def test_an_epoch_that_was_skipped_from_end_to_end_leaves_no_best(tmp_path):
    """A loss scale beyond all reason, and patience with it."""
    words = ["--dtype", "float16", "--loss-scale", 1e30, "--max-nonfinite-steps", 100]
    done = train(tmp_path, *words, "--run-epochs", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    found = report(tmp_path)
    assert found["metrics"]["train.skipped_steps"] == [8]
    assert found["metrics"]["val.top1"][0] > 0, "it was validated all the same"
    assert found["best"] is None
    assert "best" not in done.stdout
    assert (tmp_path / "model_last.safetensors").exists()
    assert not (tmp_path / "model_best.safetensors").exists()


def test_best_and_last_accuracy_say_which_weights_they_belong_to():
    from src.train.command import _accuracies

    best = {"epoch": 1, "top1": 0.75}
    raw = {"val.top1": [0.5, 0.75, 0.625]}
    assert _accuracies(raw, best) == {"best top-1": "75.00%, in epoch 2", "last top-1": "62.50%"}
    both = {**raw, "val.ema_top1": [0.25, 0.75, 0.5]}
    assert _accuracies(both, best) == {
        "best top-1": "75.00% with averaged weights, in epoch 2",
        "last top-1": "50.00% with averaged weights, 62.50% without",
    }
    assert _accuracies({}, None) == {}


def test_bfloat16_is_refused_in_one_sentence(tmp_path):
    for script in ("runner", "train.py"):
        done = command(script, *SHORT, "--dtype", "bfloat16", "--device-target", "CPU", cwd=tmp_path)
        assert done.returncode == 2
        assert "bfloat16" in done.stderr.strip().splitlines()[-1]
        assert not list(tmp_path.iterdir())


def test_an_epoch_without_a_whole_update_is_refused_with_the_arithmetic(tmp_path):
    done = train(tmp_path, "--accumulation", 9)
    assert done.returncode == 3
    assert "136 training images" in done.stderr
    assert "144" in done.stderr
    assert not list(tmp_path.iterdir())
