"""Frozen stages stay as they are, bit for bit, and compute with the statistics they have."""

from __future__ import annotations

import numpy as np
import pytest

from src.config import Training
from src.train.schedule import Schedule, Segment
from tests.golden import spec
from tests.models.networks import build

STEM = {"resnetv15": ("conv1.", "bn1."), "xception": ("conv1.", "bn1.", "conv2.", "bn2.")}
FROZEN = [
    ("resnetv15", 18, 0, ()),
    ("resnetv15", 18, 3, (*STEM["resnetv15"], "layer1.", "layer2.")),
    ("xception", 50, 4, (*STEM["xception"], *(f"block{i}." for i in range(1, 12)))),
]
MORE_FROZEN = [
    ("resnetv15", 18, 1, STEM["resnetv15"]),
    ("resnextv1", 50, 5, (*STEM["resnetv15"], "layer")),
    ("xception", 50, 1, STEM["xception"]),
    ("xception", 50, 5, (*STEM["xception"], "block", "sep", "bn3.", "bn4.")),
]
FROZEN += [pytest.param(*case, marks=pytest.mark.slow) for case in MORE_FROZEN]


@pytest.mark.parametrize(("arch", "layers", "stages", "beginnings"), FROZEN)
def test_the_stages_that_the_help_names_do_not_train(graph_mode, arch, layers, stages, beginnings):
    network = build(arch, layers, 10, freeze=stages)
    for p in network.get_parameters():
        trains = not p.name.startswith(beginnings) and "moving_" not in p.name
        assert p.requires_grad == trains, p.name


def training_step(network, optimizer: str):
    from src.train.fit import training_step

    training = Training(optimizer=optimizer, wd=0.1, bn_weight_decay=True)
    rate = Schedule((Segment("constant", 0.0, 100.0, 0.05),))
    return training_step(network, training, rate, 1).set_train()


@pytest.mark.parametrize("optimizer", ["sgd", pytest.param("lamb", marks=pytest.mark.slow)])
def test_frozen_tensors_stay_bitwise_and_all_others_move(graph_mode, optimizer):
    import mindspore as ms

    network = build("resnetv15", 18, 10, freeze=3)
    for p in network.get_parameters():  # statistics unlike those of any batch
        p.set_data(ms.Tensor(spec.param_value(p.name, p.shape, "resnet18")))
        if p.name.endswith("moving_variance"):
            p.set_data(ms.Tensor(np.abs(p.asnumpy()) + 1))
    step = training_step(network, optimizer)
    before = {p.name: p.asnumpy().copy() for p in network.get_parameters()}
    for i in range(3):
        step.set_train(True)  # as Model.train does before every epoch
        images, labels = spec.step_batch(i, size=32)
        step(ms.Tensor(images), ms.Tensor(labels.astype(np.int32)))
    for p in network.get_parameters():
        frozen = p.name.startswith(("conv1.", "bn1.", "layer1.", "layer2."))
        same = p.asnumpy().tobytes() == before[p.name].tobytes()
        assert same == frozen, p.name
    state = [p.name for p in step.optimizer.get_parameters()]
    assert not [name for name in state if "layer1." in name]
    assert [name for name in state if "layer3." in name]


def test_frozen_batch_norms_compute_with_their_moving_statistics(graph_mode):
    import mindspore as ms

    network = build("resnetv15", 18, 10, freeze=1)
    network.bn1.moving_mean.set_data(ms.Tensor(np.full(64, 2, np.float32)))
    x = ms.Tensor(np.random.RandomState(0).standard_normal((2, 64, 4, 4)).astype(np.float32))
    network.set_train(True)
    np.testing.assert_allclose(
        network.bn1(x).asnumpy(), (x.asnumpy() - 2) / np.sqrt(1 + 1e-5), rtol=1e-5, atol=1e-6
    )
