"""Which checkpoint files there are, which stay, and which of them is whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from src.config import Config, Output
from src.errors import CheckpointError
from src.weights import checkpoint, keeping


def files(workspace: Path, **output) -> keeping.CheckpointFiles:
    return keeping.CheckpointFiles(Config(output=Output(workspace=workspace, **output)))


def tensors(value: float) -> dict:
    return {"a": np.full(3, value, np.float32)}


def held(path: Path) -> float:
    return float(checkpoint.read(path).tensors["a"][0])


def test_the_last_but_one_stays_as_the_previous(tmp_path):
    for value in (1, 2, 3):
        files(tmp_path).save(tensors(value), {})
    assert held(tmp_path / "model_last.safetensors") == 3
    assert held(tmp_path / "model_previous.safetensors") == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_one_checkpoint_has_all_its_names(tmp_path):
    files(tmp_path).save(tensors(1), {}, "best", "0001")
    files(tmp_path).save(tensors(2), {}, "0002")
    found = {path.name: held(path) for path in tmp_path.iterdir()}
    assert found == {
        "model_best.safetensors": 1, "model_0001.safetensors": 1, "model_previous.safetensors": 1,
        "model_last.safetensors": 2, "model_0002.safetensors": 2,
    }  # fmt: skip


def test_without_hard_links_it_is_a_copy(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError("Operation not permitted")

    monkeypatch.setattr(checkpoint.os, "link", refuse)
    files(tmp_path).save(tensors(1), {}, "best")
    files(tmp_path).save(tensors(2), {})
    assert held(tmp_path / "model_best.safetensors") == held(tmp_path / "model_previous.safetensors") == 1


def test_only_the_newest_numbers_are_kept_and_nothing_else_goes(tmp_path):
    (tmp_path / "model_0001.safetensors.mine").touch()
    (tmp_path / "mine_0001.safetensors").touch()
    for number in (1, 2, 9_999, 10_000):
        files(tmp_path, save_frequency=1, keep=2).save(tensors(number), {}, f"{number:04d}")
    assert {path.name for path in tmp_path.iterdir()} == {
        "model_0001.safetensors.mine", "mine_0001.safetensors", "model_last.safetensors",
        "model_previous.safetensors", "model_9999.safetensors", "model_10000.safetensors",
    }  # fmt: skip


def test_a_save_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    for value in (1, 2):
        files(tmp_path).save(tensors(value), {})

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(CheckpointError, match=r"model_last\.safetensors.*No space left"):
        files(tmp_path).save(tensors(3), {})
    assert held(tmp_path / "model_last.safetensors") == 2
    assert not list(tmp_path.glob(".*"))


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".model_last.safetensors.123.tmp").touch()
    (tmp_path / ".other.tmp").touch()
    files(tmp_path).clean()
    assert [path.name for path in tmp_path.iterdir()] == [".other.tmp"]


def test_a_checkpoint_whose_tensors_are_damaged_is_passed_over_with_a_warning(tmp_path):
    """A flipped byte: the head is whole, so it shows only when all is read."""
    for value in (1, 2):
        files(tmp_path).save(tensors(value), {})
    last, previous = tmp_path / "model_last.safetensors", tmp_path / "model_previous.safetensors"
    content = bytearray(last.read_bytes())
    content[-1] ^= 1
    last.write_bytes(content)
    warnings: list[str] = []
    assert keeping.read_newest([last, previous], warnings.append).path == previous
    assert len(warnings) == 1
    assert "model_last" in warnings[0]
    assert "model_previous" in warnings[0]
    with pytest.raises(CheckpointError, match="model_last"):
        keeping.read_newest([last], warnings.append)


def test_a_damaged_last_does_not_take_the_place_of_the_previous(tmp_path):
    """A run that went on from the previous may be killed while it saves again."""
    for value in (1, 2):
        files(tmp_path).save(tensors(value), {})
    (tmp_path / "model_last.safetensors").write_bytes(b"x")
    files(tmp_path).save(tensors(3), {})
    assert held(tmp_path / "model_last.safetensors") == 3
    assert held(tmp_path / "model_previous.safetensors") == 1
