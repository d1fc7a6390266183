"""Whole commands, as a user runs them: train, resume, score, predict, measure, and the ways they refuse."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from src.report.breakdown import breakdown
from src.report.dllog import read_lines
from src.weights import checkpoint
from tests.support import ROOT, command, report_schema, valid_report

SYNTHETIC = [
    "--data-backend",
    "synthetic",
    "--num-classes",
    "10",
    "--image-shape",
    "3,32,32",
    "--num-layers",
    "18",
    "-b",
    "16",
]
SHORT = [
    *SYNTHETIC,
    *[
        "--num-examples",
        "128",
        "-e",
        "2",
        "--warmup-epochs",
        "0",
        "--lr",
        "0.4",
        "--seed",
        "5",
        "--disp-batches",
        "4",
    ],
]
DIGITS = [
    "--config",
    str(ROOT / "configs" / "digits.yaml"),
    "-b",
    "16",
    "--num-examples",
    "64",
    "--seed",
    "0",
]


def report(workspace: Path, name: str = "report.json") -> dict:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not strict JSON")

    return valid_report(json.loads((workspace / name).read_text(encoding="utf-8"), parse_constant=refuse))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """The workspace of a short training run through runner."""
    workspace = tmp_path_factory.mktemp("trained")
    done = command("runner", *SHORT, "--workspace", workspace, cwd=tmp_path_factory.mktemp("elsewhere"))
    assert done.returncode == 0, done.stdout + done.stderr
    (workspace / "console.txt").write_text(done.stdout)
    return workspace


def test_a_run_leaves_what_is_promised_and_nothing_else(trained):
    names = {p.name for p in trained.iterdir()} - {"console.txt"}
    expected = {
        ".lock",
        "report.json",
        "report.html",
        "report.validation.json",
        "log.log",
        "dllogger_log.log",
        "model_best.safetensors",
        "model_last.safetensors",
        "model_previous.safetensors",
    }
    assert names - {"ranks"} == expected


def test_the_report_tells_the_run(trained):
    found = report(trained)
    assert found["status"] == "completed"
    assert (found["model"], found["ngpus"]) == ("resnetv15", 1)
    assert found["cmd"][0].endswith("runner")
    assert found["cmd"][1:] == [*SHORT, "--workspace", str(trained)]
    assert found["epochs"] == [0, 1]
    metrics = found["metrics"]
    names = {"loss", "top1", "top5", "total_ips", "latency_avg", "latency_50", "latency_99", "latency_100"}
    assert {f"train.{n}" for n in names} | {f"val.{n}" for n in names} <= set(metrics)
    assert all(len(values) == 2 for values in metrics.values())
    assert metrics["train.loss"][1] < metrics["train.loss"][0]
    assert all(math.isfinite(v) for v in metrics["train.total_ips"])
    assert found["num_samples"] == 5
    assert found["top5_k"] == 5
    assert found["config"]["seed"] == 5
    assert found["best"]["top1"] == max(metrics["val.top1"])
    assert found["environment"]["mindspore"].startswith("2.")


def test_the_report_is_complete(trained):
    """Every metric of the schema but those of --ema and of a loss scale, and the parts of the time."""
    found = report(trained)
    expected = set(report_schema()["properties"]["metrics"]["properties"])
    metrics = found["metrics"]
    assert expected - set(metrics) == {"val.ema_loss", "val.ema_top1", "val.ema_top5", "train.loss_scale"}
    assert metrics["train.compile_time"][0] > metrics["train.compile_time"][1] == 0
    for parts in zip(*(metrics[f"train.{n}_time"] for n in ("data", "compute", "other", "warmup"))):
        assert all(part >= 0 for part in parts)
    assert found["ranks"]["train.ips"] == [metrics["train.total_ips"][-1]]
    spent = breakdown(metrics)
    assert sum(spent.values()) == pytest.approx(sum(metrics["epoch_time"]), rel=0.01)
    assert spent["everything else"] < 0.2 * sum(metrics["epoch_time"]), spent


def test_the_dllogger_lines_tell_it_too(trained):
    lines = [line for line in read_lines(trained / "dllogger_log.log") if line["type"] == "LOG"]
    steps = [line["step"] for line in lines]
    assert steps == ["PARAMETER", [0, 3], [0, 7], [0], [1, 3], [1, 7], [1], []]
    assert lines[3]["data"]["val.accuracy"] == report(trained)["metrics"]["val.top1"][0]
    assert lines[1]["data"]["train.lr"] == pytest.approx(
        0.4 * 16 / 256 / 2 * (1 + math.cos(math.pi * 3 / 16))
    )


def test_the_page_shows_how_validation_answered(trained):
    details = json.loads((trained / "report.validation.json").read_text())
    right = sum(label["right"] for label in details["classes"])
    assert (details["epoch"], details["num_images"]) == (1, 5)
    assert right / 5 == report(trained)["metrics"]["val.top1"][-1]
    assert all(mistake["thumbnail"] for mistake in details["mistakes"])
    page = (trained / "report.html").read_text(encoding="utf-8")
    assert "Accuracy by class" in page
    assert page.count("<figure>") == 5 - right
    departed = report(trained)["recipe"]["differences"]
    assert departed["lr"] == {"recipe": 0.256, "run": 0.4}


def test_the_console_speaks_to_a_person(trained):
    text = (trained / "console.txt").read_text()
    for word in (
        "11,181,642 parameters",
        "8 steps each",
        "compiling",
        "epoch 2/2",
        "best top-1",
        "report.json",
        "bound by",
        "of the time of steady steps is waiting for data",
    ):
        assert word in text, word
    assert "\x1b[" not in text


def test_the_summary_fits_a_screen_and_names_the_files(trained):
    text = (trained / "console.txt").read_text()
    lines = text[text.rindex("\ndone\n") :].strip().splitlines()
    rows = sum(max(1, -(-len(line) // 80)) for line in lines)
    assert rows < 24, lines
    for name in ("report.json", "report.html", "log.log", "model_best.safetensors"):
        assert any(str(trained / name) in line for line in lines), name


def test_the_same_command_again_has_nothing_to_do(trained):
    before = (trained / "report.json").read_bytes()
    again = command("train.py", *SHORT, "--workspace", trained)
    assert again.returncode == 0
    assert "nothing to do" in again.stdout
    assert (trained / "report.json").read_bytes() == before


@pytest.mark.slow
def test_the_same_seed_gives_the_same_losses(trained, tmp_path):
    again = command("train.py", *SHORT, "--workspace", tmp_path)
    assert again.returncode == 0, again.stderr
    assert report(tmp_path)["metrics"]["train.loss"] == report(trained)["metrics"]["train.loss"]
    first = checkpoint.read(trained / "model_last.safetensors").tensors
    second = checkpoint.read(tmp_path / "model_last.safetensors").tensors
    assert all((first[name] == second[name]).all() for name in first)


def test_a_checkpoint_is_scored_as_in_training(trained, tmp_path):
    words = [
        "--load",
        trained / "model_last.safetensors",
        "--workspace",
        tmp_path,
        "--data-backend",
        "synthetic",
    ]
    done = command("eval.py", *words, "--num-examples", 128, "-b", 3)
    assert done.returncode == 0, done.stderr
    found, then = report(tmp_path), report(trained)
    assert found["num_samples"] == 5
    assert found["metrics"]["val.top1"][0] == then["metrics"]["val.top1"][-1]
    assert found["metrics"]["val.loss"][0] == pytest.approx(then["metrics"]["val.loss"][-1], rel=1e-5)


@pytest.mark.slow
def test_a_profile_says_where_the_time_of_some_steps_goes(tmp_path):
    words = [*SHORT, "-e", 1, "-b", 8, "--profile", 4, "--workspace", tmp_path]
    done = command("runner", *words)
    assert done.returncode == 0, done.stderr
    found = report(tmp_path)["profile"]
    assert (found["epoch"], found["steps"]) == (0, 4)
    operators = {row["name"]: row for row in found["operators"]}
    convolutions = 20  # of a ResNet-18, projections included
    assert operators["Conv2D"]["calls"] == 4 * convolutions
    assert 0 < found["operators_s"] < 2 * found["compute_s"]
    for word in ("profile of 4 steps of epoch 1", "waiting for data", "Conv2DBackpropFilter", "calls"):
        assert word in done.stdout, word


def test_the_pipeline_is_measured_alone(tmp_path):
    done = command("train.py", *SHORT, "--test-io", "--workspace", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "images/s" in done.stdout
    assert report(tmp_path)["metrics"]["train.total_ips"][0] > 0
    assert not list(tmp_path.glob("*.safetensors"))


@pytest.fixture(scope="module")
def digits_run(digits, tmp_path_factory) -> Path:
    """Three epochs on digits without a stop."""
    workspace = tmp_path_factory.mktemp("digits-run")
    words = [*DIGITS, "--data-root", digits / "records", "-e", 3, "--workspace", workspace]
    done = command("train.py", *words)
    assert done.returncode == 0, done.stderr
    return workspace


@pytest.mark.slow
def test_stopping_and_resuming_equals_never_having_stopped(digits, digits_run, tmp_path):
    words = [*DIGITS, "--data-root", digits / "records", "-e", 3, "--workspace", tmp_path]
    for part in (["--run-epochs", 1], []):
        done = command("train.py", *words, *part)
        assert done.returncode == 0, done.stderr
    assert "continuing" in done.stdout
    whole, parts = report(digits_run)["metrics"], report(tmp_path)["metrics"]
    for name in ("train.loss", "train.lr", "train.top1", "val.loss", "val.top1"):
        assert parts[name] == whole[name], name
    one = checkpoint.read(digits_run / "model_last.safetensors")
    two = checkpoint.read(tmp_path / "model_last.safetensors")
    assert one.meta["best"]["top1"] == two.meta["best"]["top1"]
    differing = [name for name in one.tensors if (one.tensors[name] != two.tensors[name]).any()]
    assert differing == []


@pytest.mark.slow
def test_single_images_are_classified_with_names_and_bad_ones_told(digits, digits_run, tmp_path):
    images = sorted((digits / "images" / "val" / "3").iterdir())[:2]
    for image in images:
        (tmp_path / image.name).write_bytes(image.read_bytes())
    (tmp_path / "bad.png").write_bytes(images[0].read_bytes()[:100])
    words = ["--mode", "pred", "--load", digits_run / "model_best.safetensors", "--workspace", tmp_path / "w"]
    done = command("train.py", *words, "--data-pred", tmp_path)
    assert done.returncode == 3
    assert "bad.png" in done.stderr
    found = json.loads((tmp_path / "w" / "predictions.json").read_text(encoding="utf-8"))
    assert [Path(p["file"]).name for p in found["predictions"]] == [image.name for image in images]
    for prediction in found["predictions"]:
        probabilities = [row["probability"] for row in prediction["classes"]]
        assert len(probabilities) == 10
        assert sum(probabilities) == pytest.approx(1, abs=1e-5)
        assert probabilities == sorted(probabilities, reverse=True)
        assert {row["name"] for row in prediction["classes"]} == {str(digit) for digit in range(10)}
    alone = command("train.py", *words, "--data-pred", images[1])
    assert alone.returncode == 0, alone.stderr
    single = json.loads((tmp_path / "w" / "predictions.json").read_text(encoding="utf-8"))["predictions"][0]
    by_class = {row["index"]: row["probability"] for row in found["predictions"][1]["classes"]}
    for row in single["classes"]:
        assert row["probability"] == pytest.approx(by_class[row["index"]], abs=1e-5)


@pytest.mark.slow
def test_folders_are_read_as_their_records(digits, digits_run, tmp_path):
    """The image folder backend scores the same pixels as the records made from it."""
    words = ["--load", digits_run / "model_best.safetensors", "--workspace", tmp_path]
    folder = ["--data-backend", "imagefolder", "--data-root", digits / "images"]
    assert command("eval.py", *words, *folder).returncode == 0
    best = checkpoint.read(digits_run / "model_best.safetensors").meta["best"]
    assert report(tmp_path)["metrics"]["val.top1"][0] == best["top1"]


def test_divergence_ends_with_its_code_and_keeps_the_report_strict(tmp_path):
    words = [*SHORT, "--lr", "1e9", "--workspace", tmp_path]
    done = command("train.py", *words)
    assert done.returncode == 4
    assert "--lr" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert report(tmp_path)["status"] == "failed"
    assert not (tmp_path / "model_best.safetensors").exists()


@pytest.mark.slow
@pytest.mark.parametrize("script", ["runner", "train.py"])
def test_a_stop_request_leaves_a_run_that_continues(script, tmp_path):
    words = [*SHORT, "-e", "40", "--workspace", str(tmp_path)]
    process = subprocess.Popen([sys.executable, str(ROOT / script), *words], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (tmp_path / "model_last.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    found = report(tmp_path)
    assert found["status"] == "interrupted"
    assert "SIGTERM" in found["status_reason"]
    assert 1 <= len(found["epochs"]) < 40
    again = command(script, *words, "--run-epochs", "1")
    assert again.returncode == 0, again.stderr
    assert report(tmp_path)["epochs"] == list(range(len(found["epochs"]) + 1))


@pytest.mark.slow
def test_two_devices_train_one_network_and_count_every_image_once(tmp_path):
    """5 validation images on 2 devices: the set does not divide."""
    words = [*SYNTHETIC, *["--num-examples", "130", "-e", "1", "--warmup-epochs", "0", "--seed", "5"]]
    done = command("runner", "-n", "2", *words, "--workspace", tmp_path / "two")
    assert done.returncode == 0, done.stdout + done.stderr
    found = report(tmp_path / "two")
    assert (found["ngpus"], found["status"], found["num_samples"]) == (2, "completed", 5)
    assert (tmp_path / "two" / "ranks" / "rank_1.log").exists()
    load = ["--load", tmp_path / "two" / "model_last.safetensors", "--data-backend", "synthetic"]
    load += ["--num-examples", 130, "-b", 2, "--mode", "val"]
    for n, extra in ((1, []), (2, []), (2, ["--separ-val"])):
        workspace = tmp_path / f"score{n}{len(extra)}"
        done = command("runner", "-n", n, *load, "--workspace", workspace, *extra)
        assert done.returncode == 0, done.stdout + done.stderr
        score = report(workspace)
        assert (score["ngpus"], score["num_samples"]) == (n, 5)
        for name in ("val.top1", "val.top5"):
            assert score["metrics"][name] == found["metrics"][name]
        assert np.isclose(score["metrics"]["val.loss"][0], found["metrics"]["val.loss"][0], rtol=1e-5)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--data-root", "/nowhere"], 3, "/nowhere"),
        (["--data-root", "{empty}"], 3, "{empty}"),
        (["--data-root", "{empty}", "--data-backend", "imagefolder"], 3, "{empty}"),
        (["--load", "nowhere.safetensors", "--mode", "val"], 5, "nowhere.safetensors"),
        (["--no-such-option", "1"], 2, "--no-such-option"),
        ([*SYNTHETIC, "--num-examples", "5", "-b", "8"], 3, "5 training images"),
        ([*SYNTHETIC, "--workspace", "/proc/nowhere"], 2, "/proc/nowhere"),
    ],
)
@pytest.mark.parametrize("script", ["runner", "train.py"])
def test_mistakes_end_in_one_sentence_and_their_code(script, words, code, told, tmp_path):
    words = [word.format(empty=tmp_path) for word in words]
    done = command(script, *words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert told.format(empty=tmp_path) in lines[-1]
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_devices_is_refused(tmp_path):
    for count in ("0", "two"):
        done = command("runner", *SYNTHETIC, "-n", count, cwd=tmp_path)
        assert done.returncode == 2
        assert "--num-devices" in done.stderr


@pytest.mark.parametrize("script", ["runner", "train.py", "eval.py"])
def test_help_shows_all_options_with_defaults(script):
    done = command(script, "--help")
    assert done.returncode == 0
    for word in ("--batch-size", "192", "--lr-schedule", "--data-root", "--workspace", "--device-target"):
        assert word in done.stdout
    assert ("--num-devices" in done.stdout) == (script == "runner")


def test_a_dry_run_starts_nothing_and_prints_a_recipe(tmp_path):
    done = command("runner", "-n", "2", *SHORT, "--workspace", tmp_path / "w", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
    recipe = tmp_path / "saved.yaml"
    recipe.write_text(done.stdout)
    again = command("runner", "-n", "2", "--config", recipe, "--dry-run", cwd=tmp_path)
    options = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert [line for line in again.stdout.splitlines() if not line.startswith("#")] == options
    assert "train.py" in done.stdout
    assert "MS_SCHED_PORT" in done.stdout
