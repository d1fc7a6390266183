"""What a command does with what its workspace already holds."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from src.config import Config, Output, Training
from src.errors import CheckpointError, OptionError
from src.weights import checkpoint, keeping, resume


def plan(cfg: Config, world_size: int = 1) -> resume.Plan:
    return resume.plan(cfg, world_size)


def config(workspace: Path, output: dict | None = None, **training) -> Config:
    options = Training(num_epochs=10, **training)
    return Config(training=options, output=Output(workspace=workspace, **(output or {})))


def saved(cfg: Config, which: str, epochs: int, step: int = 0, **record) -> Path:
    """A checkpoint of `cfg` after so many epochs and steps."""
    path = keeping.checkpoint_path(cfg, which)
    progress = {"step": step} if step else None
    meta = {"config": cfg.plain(), "seed": 7, "world_size": 1, "epochs_done": epochs, "progress": progress}
    checkpoint.save(path, {"a": np.zeros(1, np.float32)}, {**meta, "steps_per_epoch": 50, **record})
    return path


def leave(workspace: Path, cfg: Config, epochs: int, status: str = "running", last: bool = True) -> None:
    """What a run of `cfg` leaves after so many epochs."""
    report = {"config": {**cfg.plain(), "seed": 7}, "epochs": list(range(epochs)), "status": status}
    report["ngpus"] = 1
    (workspace / cfg.output.report).write_text(json.dumps(report))
    if last:
        saved(cfg, "last", epochs)


def test_an_empty_workspace_is_a_start(tmp_path):
    assert plan(config(tmp_path)).action == "start"


def test_the_same_run_is_continued_with_its_seed(tmp_path):
    leave(tmp_path, config(tmp_path), 3)
    found = plan(config(tmp_path))
    assert found.action == "continue"
    assert found.seed == 7
    assert found.checkpoints == (tmp_path / "model_last.safetensors",)
    assert "model_last.safetensors, after epoch 3" in found.sentence


def test_the_place_within_an_epoch_is_told(tmp_path):
    cfg = config(tmp_path)
    leave(tmp_path, cfg, 3)
    saved(cfg, "last", 3, step=20)
    assert "step 20 of 50 of epoch 4" in plan(cfg).sentence
    saved(cfg, "last", 3, step=50)
    assert "the end of epoch 4, which is still to be validated" in plan(cfg).sentence


def test_the_last_comes_first_also_where_a_run_went_back(tmp_path):
    """Epoch 9 and the best are of what was given up when the run was continued from epoch 2."""
    cfg = config(tmp_path)
    leave(tmp_path, cfg, 3)
    saved(cfg, "previous", 2, step=20)
    saved(cfg, "0002", 2)
    saved(cfg, "0009", 9)
    saved(cfg, "best", 1)
    found = [path.name.split("_")[1].split(".")[0] for path in plan(cfg).checkpoints]
    assert found == ["last", "previous", "0009", "0002", "best"]


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_damaged_newest_is_told_and_the_one_before_is_taken(tmp_path, damage):
    cfg = config(tmp_path)
    leave(tmp_path, cfg, 3)
    before = saved(cfg, "previous", 2)
    last = keeping.checkpoint_path(cfg, "last")
    last.write_bytes(last.read_bytes()[:-3] if damage is None else damage)
    found = plan(cfg)
    assert found.checkpoints == (before,)
    assert f"{last} " in found.sentence
    assert "damaged" in found.sentence


def test_checkpoints_that_are_all_damaged_are_named(tmp_path):
    cfg = config(tmp_path)
    leave(tmp_path, cfg, 3)
    for which in ("last", "previous"):
        keeping.checkpoint_path(cfg, which).write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"model_last.*model_previous.*--overwrite"):
        plan(cfg)


def test_another_schedule_needs_the_checkpoint_by_name(tmp_path):
    """--lr 0.5 in the same folder may be a slip; with --resume it is meant."""
    cfg = config(tmp_path)
    leave(tmp_path, cfg, 3)
    last = str(keeping.checkpoint_path(cfg, "last"))
    with pytest.raises(OptionError, match=f"--resume {last} continues it so"):
        plan(config(tmp_path, lr=0.5))
    with pytest.raises(OptionError) as error:
        plan(config(tmp_path, wd=0.5, lr=0.5))
    assert "--resume" not in str(error.value)
    assert "--wd" in str(error.value), "what cannot be followed is told first"
    found = plan(config(tmp_path, {"resume": last}, lr=0.5, batch_size=64), world_size=2)
    assert (found.action, found.seed) == ("continue", 7)
    for told in ("--lr 0.256 there, 0.5 here", "--batch-size 192 there, 64 here", "1 devices there, 2 here"):
        assert told in found.sentence
    with pytest.raises(OptionError, match="--wd"):
        plan(config(tmp_path, {"resume": last}, wd=0.5, lr=0.5))


def test_a_finished_run_is_lengthened_by_name(tmp_path):
    leave(tmp_path, config(tmp_path), 10, "completed")
    longer = dataclasses.replace(config(tmp_path), training=Training(num_epochs=12))
    last = str(keeping.checkpoint_path(longer, "last"))
    with pytest.raises(OptionError, match="--num-epochs 10 there, 12 here"):
        plan(longer)
    found = plan(dataclasses.replace(longer, output=Output(workspace=tmp_path, resume=last)))
    assert found.action == "continue"


def test_options_that_do_not_change_the_result_do_not_make_another_run(tmp_path):
    leave(tmp_path, config(tmp_path), 3)
    assert plan(config(tmp_path, run_epochs=2, disp_batches=3)).action == "continue"


@pytest.mark.parametrize(("option", "value"), [("lr", 0.5), ("batch_size", 8), ("seed", 1), ("wd", 0.0)])
def test_another_run_is_refused_by_the_option_that_differs(tmp_path, option, value):
    leave(tmp_path, config(tmp_path), 3)
    with pytest.raises(OptionError, match=f"--{option.replace('_', '-')}") as error:
        plan(config(tmp_path, **{option: value}))
    assert "--overwrite" in str(error.value)


def test_another_number_of_devices_is_another_run(tmp_path):
    leave(tmp_path, config(tmp_path), 3)
    with pytest.raises(OptionError, match="1 devices there, 2 here"):
        plan(config(tmp_path), world_size=2)


def test_a_named_checkpoint_must_belong_to_the_run(tmp_path):
    cfg = config(tmp_path)
    path = tmp_path / "elsewhere.safetensors"
    record = {"config": cfg.plain(), "seed": 9, "world_size": 1}
    checkpoint.save(path, {"a": np.zeros(1, np.float32)}, record)
    found = plan(config(tmp_path / "new", {"resume": str(path)}))
    assert (found.action, found.checkpoints, found.seed) == ("continue", (path,), 9)
    with pytest.raises(OptionError, match="--wd"):
        plan(config(tmp_path / "new", {"resume": str(path)}, wd=0.5))


def test_resume_off_never_replaces_a_run(tmp_path):
    leave(tmp_path, config(tmp_path), 3)
    with pytest.raises(OptionError, match="--overwrite"):
        plan(config(tmp_path, {"resume": "off"}))


def test_a_finished_run_has_nothing_to_do(tmp_path):
    leave(tmp_path, config(tmp_path), 10, "completed")
    found = plan(config(tmp_path))
    assert found.action == "finished"
    assert "nothing to do" in found.sentence


def test_a_part_that_was_asked_for_is_not_the_end(tmp_path):
    leave(tmp_path, config(tmp_path), 4, "completed")
    assert plan(config(tmp_path)).action == "continue"


def test_a_run_that_died_before_its_first_checkpoint_starts_again(tmp_path):
    leave(tmp_path, config(tmp_path), 0, "failed", last=False)
    found = plan(config(tmp_path))
    assert (found.action, found.seed, found.move_aside) == ("start", 7, True)


def test_a_checkpoint_named_and_missing_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        plan(config(tmp_path, {"resume": "nowhere.safetensors"}))


def test_a_damaged_report_is_not_overwritten(tmp_path):
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(OptionError, match=r"report\.json"):
        plan(config(tmp_path))


def test_overwrite_moves_the_old_files_aside(tmp_path):
    cfg = config(tmp_path, {"overwrite": True})
    for number in (1, 2):
        leave(tmp_path, cfg, 3)
        (tmp_path / "ranks").mkdir()
        (tmp_path / "mine.txt").write_text("stays")
        assert plan(cfg).move_aside
        aside = resume.move_aside(cfg)
        assert aside == tmp_path / f"previous-{number}"
        assert {p.name for p in aside.iterdir()} == {"report.json", "model_last.safetensors", "ranks"}
    assert (tmp_path / "mine.txt").exists()
    assert plan(cfg) == resume.Plan("start")


def test_scoring_beside_a_training_run_writes_files_of_its_own(tmp_path):
    train = config(tmp_path)
    score = dataclasses.replace(train, training=dataclasses.replace(train.training, mode="val"))
    assert resume.output_file(score, "report.json").name == "report.json"
    leave(tmp_path, train, 3)
    assert resume.output_file(train, "report.json").name == "report.json"
    assert resume.output_file(score, "report.json").name == "report-val.json"


def test_scoring_does_not_replace_a_report_that_cannot_be_read(tmp_path):
    (tmp_path / "report.json").write_text("{")
    score = config(tmp_path, mode="val")
    assert resume.output_file(score, "report.json").name == "report-val.json"


def test_training_does_not_continue_where_only_a_score_was_taken(tmp_path):
    score = config(tmp_path, mode="val")
    leave(tmp_path, score, 1, last=False)
    with pytest.raises(OptionError, match="--mode val"):
        plan(config(tmp_path))
