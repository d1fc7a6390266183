"""Checkpoints are whole or not there, and never fit by accident."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from src.errors import CheckpointError
from src.weights import checkpoint
from src.weights.record import network_options
from tests.support import files_of_at_most


def tensors() -> dict:
    rng = np.random.RandomState(0)
    return {
        "fc.weight": rng.standard_normal((3, 4)).astype(np.float32),
        "global_step": np.array([7], np.int32),
        "momentum": np.array(0.5, np.float32),
    }


def test_what_was_saved_is_read(tmp_path):
    path = tmp_path / "model_last.safetensors"
    meta = {"epochs_done": 3, "best": {"top1": 1 / 3}, "classes": [["n1", "tench, ü"]]}
    checkpoint.save(path, tensors(), meta)
    found = checkpoint.read(path)
    assert set(found.tensors) == set(tensors())
    for name, value in tensors().items():
        assert found.tensors[name].shape == value.shape, name
        assert found.tensors[name].dtype == value.dtype, name
        assert (found.tensors[name] == value).all(), name
    assert meta.items() <= found.meta.items()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_files_follow_the_umask(tmp_path):
    path = tmp_path / "a.safetensors"
    old = os.umask(0o022)
    try:
        checkpoint.save(path, tensors(), {})
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, tensors(), {"epochs_done": 1})

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        checkpoint.save(path, tensors(), {"epochs_done": 2})
    monkeypatch.undo()
    assert checkpoint.read(path).meta["epochs_done"] == 1
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_damage_is_noticed_and_named(tmp_path, damage):
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, tensors(), {})
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-3] ^= 1
    path.write_bytes({"flip": content, "cut": content[: len(content) // 2], "empty": b""}[damage])
    with pytest.raises(CheckpointError, match=r"a\.safetensors"):
        checkpoint.read(path)


def test_a_disk_that_fills_up_while_the_tensors_are_written_is_told_in_a_sentence(tmp_path):
    path = tmp_path / "model.safetensors"
    checkpoint.save(path, tensors(), {"epochs_done": 1})
    with files_of_at_most(200), pytest.raises(CheckpointError, match=r"could not be written: .*too large"):
        checkpoint.save(path, tensors(), {"epochs_done": 2})
    assert checkpoint.read(path).meta["epochs_done"] == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        checkpoint.read(tmp_path / "nowhere.safetensors")


def test_the_record_is_read_without_the_tensors(tmp_path):
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, tensors(), {"config": {"num-layers": 18, "lr": 0.1, "num-classes": None}})
    assert network_options(path) == {"num-layers": 18}


@pytest.fixture
def network(graph_mode):
    from mindspore import nn

    class Two(nn.Cell):
        def __init__(self, features: int) -> None:
            super().__init__()
            self.first = nn.Dense(4, features)
            self.fc = nn.Dense(features, 3)

    return Two


def test_weights_are_loaded_by_name_completely(tmp_path, network):
    source, target = network(5), network(5)
    checkpoint.save(tmp_path / "a.safetensors", checkpoint.tensors_of(source.get_parameters()), {})
    checkpoint.load_network(target, checkpoint.read(tmp_path / "a.safetensors"))
    for a, b in zip(source.get_parameters(), target.get_parameters()):
        assert (a.asnumpy() == b.asnumpy()).all()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.pop("fc.weight"), "fc.weight"),
        (lambda t: t.update({"layer9.weight": np.zeros(2, np.float32)}), "layer9.weight"),
        (lambda t: t.update({"fc.weight": np.zeros((3, 6), np.float32)}), "fc.weight"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path, network, change, told):
    saved = checkpoint.tensors_of(network(5).get_parameters())
    change(saved)
    checkpoint.save(tmp_path / "a.safetensors", saved, {})
    with pytest.raises(CheckpointError, match=told):
        checkpoint.load_network(network(5), checkpoint.read(tmp_path / "a.safetensors"))


def test_optimizer_state_beside_the_weights_is_no_obstacle(tmp_path, network):
    saved = checkpoint.tensors_of(network(5).get_parameters())
    saved.update({"moments.fc.weight": np.zeros((3, 5), np.float32), "global_step": np.zeros(1, np.int32)})
    checkpoint.save(tmp_path / "a.safetensors", saved, {})
    checkpoint.load_network(network(5), checkpoint.read(tmp_path / "a.safetensors"))


def test_mindspores_own_files_are_read(tmp_path, network):
    import mindspore as ms

    source, target = network(5), network(5)
    ms.save_checkpoint(source, str(tmp_path / "a.ckpt"))
    checkpoint.load_network(target, checkpoint.read(tmp_path / "a.ckpt"))
    assert (source.fc.weight.asnumpy() == target.fc.weight.asnumpy()).all()
    (tmp_path / "b.ckpt").write_bytes((tmp_path / "a.ckpt").read_bytes()[:40])
    with pytest.raises(CheckpointError, match=r"b\.ckpt"):
        checkpoint.read(tmp_path / "b.ckpt")


def test_mindspore_reads_our_files(tmp_path, network):
    import mindspore as ms

    source = network(5)
    checkpoint.save(tmp_path / "a.safetensors", checkpoint.tensors_of(source.get_parameters()), {})
    loaded = ms.load_checkpoint(str(tmp_path / "a.safetensors"), format="safetensors")
    assert (loaded["fc.weight"].asnumpy() == source.fc.weight.asnumpy()).all()


def test_v1_weights_are_refused_by_v15_although_all_shapes_fit(tmp_path):
    from src.config import Config

    found = checkpoint.Checkpoint(tmp_path / "x", {}, {"config": {"arch": "resnetv1", "num-layers": 50}})
    with pytest.raises(CheckpointError, match="--arch resnetv1"):
        checkpoint.check_model(found, Config())
