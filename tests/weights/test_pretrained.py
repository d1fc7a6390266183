"""Weights to begin a new run with: all but a head of another size, by name, and nothing by accident."""

from __future__ import annotations

import json

import numpy as np
import pytest

from src import cli, preflight
from src.config import Config, Model, Output
from src.errors import CheckpointError, OptionError
from src.weights import checkpoint, pretrained
from src.weights.record import network_options
from tests.golden import spec
from tests.models.networks import build, torch_name
from tests.support import command

SYNTHETIC = "--data-backend synthetic --num-classes 10 --image-shape 3,64,64 --num-examples 64 -b 8"


def tiny(classes: int):
    """A network of the suite's parts, small enough for many tests."""
    from mindspore import nn

    from src.models.layers import ConvSpec, Norms, conv, head
    from src.models.resnet import Residual

    class Tiny(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            norms = Norms(1e-5, 0.9)
            self.conv1, self.bn1 = conv(ConvSpec(3, 4, 3)), norms.make(4)
            self.layer1 = nn.SequentialCell(Residual([ConvSpec(4, 8, 3, 2), ConvSpec(8, 8, 3)], norms))
            self.fc = head(8, classes)

    return Tiny()


@pytest.fixture(scope="module")
def source(graph_mode):
    """Tensors of a network of 7 classes, none of which is as a new one begins."""
    rng = np.random.RandomState(0)
    tensors = checkpoint.tensors_of(tiny(7).get_parameters())
    return {name: rng.standard_normal(value.shape).astype(np.float32) for name, value in tensors.items()}


def loaded(path, classes: int, use_ema: bool = False) -> tuple[dict, dict, str]:
    """The new network's tensors before and after, and what was told."""
    network = tiny(classes)
    before = checkpoint.tensors_of(network.get_parameters())
    model = Model(num_layers=18, num_classes=classes, pretrained=path)
    told = pretrained.load(network, Config(model=model, output=Output(use_ema=use_ema)))
    return before, checkpoint.tensors_of(network.get_parameters()), told


def check(tensors: dict, wanted: dict, but: tuple[str, ...] = ()) -> None:
    for name, value in tensors.items():
        if name not in but:
            np.testing.assert_array_equal(value, wanted[name], err_msg=name)


def test_the_same_classes_keep_the_head(tmp_path, source):
    checkpoint.save(tmp_path / "a.safetensors", source, {"network": list(source)})
    _, after, told = loaded(tmp_path / "a.safetensors", 7)
    check(after, source)
    assert told == f"{tmp_path}/a.safetensors, all of it"


def test_other_classes_get_the_new_head_that_was_drawn_and_are_told_what_was_left_out(tmp_path, source):
    checkpoint.save(tmp_path / "a.safetensors", source, {"network": list(source)})
    before, after, told = loaded(tmp_path / "a.safetensors", 10)
    check(after, source, but=pretrained.HEAD)
    for name in pretrained.HEAD:
        np.testing.assert_array_equal(after[name], before[name])
    assert told.endswith("all but fc.weight (7, 8) and fc.bias (7,); the head for 10 classes is drawn anew")


def test_weights_without_a_head_are_enough(tmp_path, source):
    body = {name: value for name, value in source.items() if name not in pretrained.HEAD}
    checkpoint.save(tmp_path / "a.safetensors", body, {})
    _, after, told = loaded(tmp_path / "a.safetensors", 7)
    check(after, source, but=pretrained.HEAD)
    assert "has no head" in told


def test_state_of_the_optimizer_is_left_aside(tmp_path, source):
    state = {"moments.conv1.weight": source["conv1.weight"], "a_name_yet_unknown": np.zeros(2, np.float32)}
    checkpoint.save(tmp_path / "a.safetensors", {**source, **state}, {"network": list(source)})
    check(loaded(tmp_path / "a.safetensors", 7)[1], source)


@pytest.fixture
def averaged(tmp_path, source):
    """A checkpoint of a run with --ema, and its averages under the weights' names."""
    averages = {name: value + 1 for name, value in source.items()}
    held = {**source, **{f"ema.{name}": value for name, value in averages.items()}}
    checkpoint.save(tmp_path / "a.safetensors", held, {"network": list(source)})
    return tmp_path / "a.safetensors", averages


@pytest.mark.parametrize("classes", [7, 10])
def test_averaged_weights_are_taken_where_they_are_asked_for(averaged, source, classes):
    path, averages = averaged
    head = pretrained.HEAD if classes == 10 else ()
    _, after, told = loaded(path, classes, use_ema=True)
    check(after, averages, but=head)
    assert told.startswith(f"{path}, averaged weights (--use-ema), all")
    _, after, told = loaded(path, classes)
    check(after, source, but=head)
    assert told.startswith(f"{path}, raw weights (--use-ema takes the averaged ones), all")


def test_averages_that_are_not_there_are_refused_before_the_start(tmp_path, source):
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, source, {"network": list(source)})
    refused = r"a\.safetensors holds no averaged weights \(--ema\); leave out --use-ema"
    with pytest.raises(CheckpointError, match=refused):
        prepare(f"{SYNTHETIC} --pretrained {path} --use-ema", tmp_path / "w")
    with pytest.raises(CheckpointError, match=refused):  # a .ckpt is only read here
        loaded(path, 7, use_ema=True)


def test_a_run_that_began_with_the_averages_is_not_one_that_began_with_the_weights(tmp_path, averaged):
    words = f"{SYNTHETIC} --pretrained {averaged[0]}"
    held = cli.parse([*words.split(), "--workspace", str(tmp_path / "w")], "train.py").plain()
    (tmp_path / "w").mkdir()
    report = {"config": held, "ngpus": 1, "epochs": [0], "status": "interrupted"}
    (tmp_path / "w" / "report.json").write_text(json.dumps(report))
    with pytest.raises(OptionError, match="--use-ema False there, True here"):
        prepare(f"{words} --use-ema", tmp_path / "w")


def test_mindspores_own_files_are_read(tmp_path, source):
    import mindspore as ms

    listed = [{"name": name, "data": ms.Tensor(value)} for name, value in source.items()]
    ms.save_checkpoint(listed, str(tmp_path / "a.ckpt"))
    check(loaded(tmp_path / "a.ckpt", 7)[1], source)


def test_pytorchs_names_are_understood(tmp_path, source):
    from safetensors.numpy import save_file

    theirs = {torch_name(name): value for name, value in source.items()}
    theirs["bn1.num_batches_tracked"] = np.array(5, np.int64)
    assert "layer1.0.downsample.1.running_var" in theirs
    assert "fc.bias" in theirs
    save_file(theirs, str(tmp_path / "a.safetensors"))
    check(loaded(tmp_path / "a.safetensors", 7)[1], source)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.pop("layer1.0.bn2.moving_mean"), r"lacks: layer1\.0\.bn2\.moving_mean"),
        (lambda t: t.update({"layer9.weight": np.zeros(2, np.float32)}), r"does not have: layer9\.weight"),
        (
            lambda t: t.update({"conv1.weight": np.zeros((64, 3, 3, 3), np.float32)}),
            r"conv1\.weight \(64, 3, 3",
        ),
    ],
)
@pytest.mark.parametrize("classes", [7, 10])
def test_anything_else_that_does_not_fit_is_refused_by_name(tmp_path, source, change, told, classes):
    tensors = dict(source)
    change(tensors)
    checkpoint.save(tmp_path / "a.safetensors", tensors, {})
    with pytest.raises(CheckpointError, match=told):
        loaded(tmp_path / "a.safetensors", classes)


def prepare(words: str, workspace) -> preflight.Prepared:
    return preflight.prepare(cli.parse([*words.split(), "--workspace", str(workspace)], "train.py"), 1)


def test_a_file_that_cannot_serve_is_refused_before_the_start(tmp_path):
    with pytest.raises(CheckpointError, match=r"--pretrained nowhere\.ckpt: no such checkpoint"):
        prepare(f"{SYNTHETIC} --pretrained nowhere.ckpt", tmp_path / "w")
    path, cut = tmp_path / "a.safetensors", tmp_path / "cut.safetensors"
    options = {"arch": "resnetv1", "num-layers": 50, "num-groups": 32, "width-per-group": 4}
    checkpoint.save(path, {"fc.bias": np.zeros(3, np.float32)}, {"config": options})
    cut.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"cut\.safetensors .* damaged"):
        prepare(f"{SYNTHETIC} --pretrained {cut}", tmp_path / "w")
    with pytest.raises(CheckpointError, match="--arch resnetv1, not resnetv15"):
        prepare(f"{SYNTHETIC} --pretrained {path}", tmp_path / "w")
    with pytest.raises(CheckpointError, match="--num-layers 50, not 101"):
        prepare(f"{SYNTHETIC} --pretrained {path} --arch resnetv1 --num-layers 101", tmp_path / "w")
    assert prepare(f"{SYNTHETIC} --pretrained {path} --arch resnetv1", tmp_path / "w").plan.action == "start"


def test_another_cardinality_is_told(tmp_path):
    options = {"arch": "resnextv15", "num-layers": 50, "num-groups": 64, "width-per-group": 4}
    checkpoint.save(tmp_path / "a.safetensors", {"fc.bias": np.zeros(3, np.float32)}, {"config": options})
    with pytest.raises(CheckpointError, match="--num-groups 64, not 32"):
        prepare(f"{SYNTHETIC} --arch resnextv15 --pretrained {tmp_path}/a.safetensors", tmp_path / "w")
    assert network_options(tmp_path / "a.safetensors") == options  # which scoring it takes from the file


def test_a_run_that_goes_on_says_that_it_does_not_read_the_file_again(tmp_path):
    words = f"{SYNTHETIC} --pretrained gone.safetensors"
    held = cli.parse([*words.split(), "--workspace", str(tmp_path)], "train.py").plain()
    report = {"config": held, "ngpus": 1, "epochs": [0], "status": "interrupted"}
    (tmp_path / "report.json").write_text(json.dumps(report))
    checkpoint.save(tmp_path / "model_last.safetensors", {"a": np.zeros(1, np.float32)}, {"epochs_done": 1})
    plan = prepare(words, tmp_path).plan
    assert plan.action == "continue"
    assert "--pretrained gone.safetensors was its beginning and is not read again" in plan.sentence
    with pytest.raises(OptionError, match="--pretrained"):
        prepare(SYNTHETIC, tmp_path)  # without it, it is another run


@pytest.mark.slow
def test_a_run_begins_with_the_weights_keeps_the_frozen_ones_and_can_be_continued(tmp_path, graph_mode):
    path, workspace = tmp_path / "a.safetensors", tmp_path / "w"
    fresh = checkpoint.tensors_of(build("resnetv15", 18, 7).get_parameters())
    # Weights of a network that works, or the run would diverge.
    tensors = {name: spec.param_value(torch_name(name), v.shape, "resnet18") for name, v in fresh.items()}
    checkpoint.save(path, tensors, {"network": list(tensors)})
    words = [*SYNTHETIC.split(), "--num-layers", 18, "--pretrained", path, "--freeze", 5, "--lr", 0.05,
             "-e", 2, "--warmup-epochs", 0, "--mode", "train", "--workspace", workspace]  # fmt: skip
    begun = command("train.py", *words, "--run-epochs", 1)
    assert begun.returncode == 0, begun.stderr
    assert (
        "all but fc.weight (7, 512) and fc.bias (7,); the head for 10 classes is drawn anew" in begun.stdout
    )
    assert "5,130 parameters to train, the first 5 of 5 stages frozen" in begun.stdout
    path.unlink()
    continued = command("train.py", *words)
    assert continued.returncode == 0, continued.stderr
    assert "was its beginning and is not read again" in continued.stdout
    last = checkpoint.read(workspace / "model_last.safetensors")
    assert last.meta["epochs_done"] == 2
    check({name: last.tensors[name] for name in tensors}, tensors, but=pretrained.HEAD)
    assert last.tensors["fc.weight"].shape == (10, 512)
    assert not [name for name in last.tensors if name.startswith("moments.") and "fc." not in name]
