"""The networks: published sizes, the published start, and the values of an independent implementation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden import spec

PARAMETERS = {18: 11_689_512, 34: 21_797_672, 50: 25_557_032, 101: 44_549_160, 152: 60_192_808}
TORCH = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
STATIC = [
    "resnet18_v1.5@64",
    pytest.param("resnet50_v1@64", marks=pytest.mark.slow),
    "resnet50_v1.5@64",
]


def build(arch: str, layers: int, classes: int):
    from src import models
    from src.config import Model

    return models.build(Model(arch=arch, num_layers=layers), classes)


def golden_network(key: str, classes: int):
    """The network of a golden entry with the golden weights."""
    import mindspore as ms

    name, version = key.split("@")[0].rsplit("_", 1)
    network = build({"v1": "resnetv1", "v1.5": "resnetv15"}[version], int(name[len("resnet") :]), classes)
    for p in network.get_parameters():
        head, tail = p.name.rsplit(".", 1)
        value = spec.param_value(f"{head}.{TORCH.get(tail, tail)}", p.shape, key.split("@")[0])
        p.set_data(ms.Tensor(value))
    return network


@pytest.mark.parametrize("layers", PARAMETERS)
def test_parameter_counts_are_the_published_ones(graph_mode, layers):
    network = build("resnetv15", layers, 1000)
    assert sum(p.size for p in network.trainable_params()) == PARAMETERS[layers]


def test_num_classes_is_respected(graph_mode):
    assert build("resnetv15", 18, 7).fc.weight.shape == (7, 512)


def test_v1_and_v15_stride_in_different_convolutions(graph_mode):
    def strides(arch):
        block = build(arch, 50, 10).layer2[0]
        return [getattr(block, f"conv{i}").stride[0] for i in (1, 2, 3)]

    assert strides("resnetv1") == [2, 1, 1]
    assert strides("resnetv15") == [1, 2, 1]


def test_the_start_is_he_normal_with_silent_branches(graph_mode):
    import mindspore as ms

    ms.set_seed(3)
    network = build("resnetv15", 50, 1000)
    weights = {p.name: p.asnumpy() for p in network.get_parameters()}
    for name in ("conv1.weight", "layer3.0.conv2.weight", "layer4.2.conv3.weight", "fc.weight"):
        fan_in = np.prod(weights[name].shape[1:])
        assert weights[name].std() == pytest.approx((2 / fan_in) ** 0.5, rel=0.03), name
        assert abs(weights[name].mean()) < 0.03 * (2 / fan_in) ** 0.5 + 1e-4, name
    assert (weights["fc.bias"] == 0).all()
    assert (weights["layer1.0.bn3.gamma"] == 0).all()
    assert (weights["layer1.0.bn2.gamma"] == 1).all()
    assert (weights["layer1.0.downsample.1.gamma"] == 1).all()
    assert (weights["bn1.beta"] == 0).all()
    assert (weights["bn1.moving_variance"] == 1).all()


def test_the_same_seed_gives_the_same_weights(graph_mode):
    import mindspore as ms

    drawn = []
    for seed in (1, 1, 2):
        ms.set_seed(seed)
        drawn.append(build("resnetv15", 18, 10).conv1.weight.asnumpy())
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] != drawn[2]).any()


@pytest.mark.parametrize("key", STATIC)
def test_logits_losses_gradients_and_statistics_equal_the_independent_ones(graph_mode, golden, key):
    import mindspore as ms

    from src.train.loss import WithLossCell, training_loss

    wanted = golden["static"][key]
    images, labels = spec.static_batch(wanted["batch"], wanted["size"], wanted["classes"])
    assert spec.crc(images) == wanted["input_crc32"]
    network = golden_network(key, wanted["classes"])
    x, y = ms.Tensor(images), ms.Tensor(labels.astype(np.int32))

    logits = network.set_train(False)(x).asnumpy()
    scale = wanted["eval_logits"]["max_abs"]
    assert logits[:, :5] == pytest.approx(np.array(wanted["eval_logits"]["first5"]), abs=5e-6 * scale)

    network.set_train(True)
    cell = WithLossCell(network, training_loss(0.1))
    weights = ms.ParameterTuple(network.trainable_params())
    (loss, _), gradients = ms.value_and_grad(cell, None, weights, has_aux=True)(x, y)
    assert float(loss.asnumpy()) == pytest.approx(wanted["train_loss_smooth"], rel=3e-5)
    assert float(loss.asnumpy()) != pytest.approx(wanted["trap_train_loss_smooth_k_minus_1"], rel=3e-5)

    squares = {}
    for p, g in zip(weights, gradients):
        head, tail = p.name.rsplit(".", 1)
        squares[f"{head}.{TORCH.get(tail, tail)}"] = float((g.asnumpy().astype(np.float64) ** 2).sum())
    squares["ALL"] = sum(squares.values())
    for name, norm in wanted["grad_norms"].items():
        assert squares[name] ** 0.5 == pytest.approx(norm, rel=3e-3), name

    statistics = wanted["bn_after_one_forward"]
    for suffix, name in (("moving_mean", "running_mean_norm"), ("moving_variance", "running_var_norm")):
        total = sum(
            float((p.asnumpy().astype(np.float64) ** 2).sum())
            for p in network.get_parameters()
            if p.name.endswith(suffix)
        )
        assert total**0.5 == pytest.approx(statistics[name], rel=2e-6), name
