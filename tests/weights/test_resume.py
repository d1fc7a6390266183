"""What a command does with what its workspace already holds."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from src.config import Config, Output, Training
from src.errors import CheckpointError, OptionError
from src.weights import resume


def config(workspace: Path, output: dict | None = None, **training) -> Config:
    options = Training(num_epochs=10, **training)
    return Config(training=options, output=Output(workspace=workspace, **(output or {})))


def leave(workspace: Path, cfg: Config, epochs: int, status: str = "running", last: bool = True) -> None:
    """What a run of `cfg` leaves after so many epochs."""
    report = {"config": {**cfg.plain(), "seed": 7}, "epochs": list(range(epochs)), "status": status}
    (workspace / cfg.output.report).write_text(json.dumps(report))
    if last:
        resume.checkpoint_path(cfg, "last").write_bytes(b"x")


def test_an_empty_workspace_is_a_start(tmp_path):
    assert resume.plan(config(tmp_path)).action == "start"


def test_the_same_run_is_continued_with_its_seed(tmp_path):
    leave(tmp_path, config(tmp_path), 3)
    plan = resume.plan(config(tmp_path))
    assert plan.action == "continue"
    assert plan.seed == 7
    assert plan.checkpoint == tmp_path / "model_last.safetensors"
    assert "model_last" in plan.sentence


def test_options_that_do_not_change_the_result_do_not_make_another_run(tmp_path):
    leave(tmp_path, config(tmp_path), 3)
    assert resume.plan(config(tmp_path, run_epochs=2, disp_batches=3)).action == "continue"


@pytest.mark.parametrize(("option", "value"), [("lr", 0.5), ("batch_size", 8), ("seed", 1), ("wd", 0.0)])
def test_another_run_is_refused_by_the_option_that_differs(tmp_path, option, value):
    leave(tmp_path, config(tmp_path), 3)
    with pytest.raises(OptionError, match=f"--{option.replace('_', '-')}") as error:
        resume.plan(config(tmp_path, **{option: value}))
    assert "--overwrite" in str(error.value)


def test_resume_off_never_replaces_a_run(tmp_path):
    leave(tmp_path, config(tmp_path), 3)
    with pytest.raises(OptionError, match="--overwrite"):
        resume.plan(config(tmp_path, {"resume": "off"}))


def test_a_finished_run_has_nothing_to_do(tmp_path):
    leave(tmp_path, config(tmp_path), 10, "completed")
    plan = resume.plan(config(tmp_path))
    assert plan.action == "finished"
    assert "nothing to do" in plan.sentence


def test_a_part_that_was_asked_for_is_not_the_end(tmp_path):
    leave(tmp_path, config(tmp_path), 4, "completed")
    assert resume.plan(config(tmp_path)).action == "continue"


def test_a_run_that_died_before_its_first_checkpoint_starts_again(tmp_path):
    leave(tmp_path, config(tmp_path), 0, "failed", last=False)
    plan = resume.plan(config(tmp_path))
    assert (plan.action, plan.seed, plan.move_aside) == ("start", 7, True)


def test_a_checkpoint_named_and_missing_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        resume.plan(config(tmp_path, {"resume": "nowhere.safetensors"}))


def test_a_damaged_report_is_not_overwritten(tmp_path):
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(OptionError, match=r"report\.json"):
        resume.plan(config(tmp_path))


def test_overwrite_moves_the_old_files_aside(tmp_path):
    cfg = config(tmp_path, {"overwrite": True})
    for number in (1, 2):
        leave(tmp_path, cfg, 3)
        (tmp_path / "ranks").mkdir()
        (tmp_path / "mine.txt").write_text("stays")
        assert resume.plan(cfg).move_aside
        aside = resume.move_aside(cfg)
        assert aside == tmp_path / f"previous-{number}"
        assert {p.name for p in aside.iterdir()} == {"report.json", "model_last.safetensors", "ranks"}
    assert (tmp_path / "mine.txt").exists()
    assert resume.plan(cfg) == resume.Plan("start")


def test_scoring_beside_a_training_run_writes_files_of_its_own(tmp_path):
    train = config(tmp_path)
    score = dataclasses.replace(train, training=dataclasses.replace(train.training, mode="val"))
    assert resume.output_file(score, "report.json").name == "report.json"
    leave(tmp_path, train, 3)
    assert resume.output_file(train, "report.json").name == "report.json"
    assert resume.output_file(score, "report.json").name == "report-val.json"


def test_training_does_not_continue_where_only_a_score_was_taken(tmp_path):
    score = config(tmp_path, mode="val")
    leave(tmp_path, score, 1, last=False)
    with pytest.raises(OptionError, match="--mode val"):
        resume.plan(config(tmp_path))
