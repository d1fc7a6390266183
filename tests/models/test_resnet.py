"""ResNet and ResNeXt: published sizes and start, and the values of an independent implementation."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.overfit import NETWORKS, learn
from tests.models.networks import GOLDEN, Comparison, build, golden_network

__all__ = ["golden_network"]  # other tests find it here

PARAMETERS = {18: 11_689_512, 34: 21_797_672, 50: 25_557_032, 101: 44_549_160, 152: 60_192_808}
# torchvision's resnext101_64x4d and wide_resnet50_2, for other groups and widths.
GROUPED_PARAMETERS = [
    (50, 32, 4, 25_028_904),
    pytest.param(101, 32, 4, 44_177_704, marks=pytest.mark.slow),
    pytest.param(101, 64, 4, 83_455_272, marks=pytest.mark.slow),
    pytest.param(50, 1, 128, 68_883_240, marks=pytest.mark.slow),
]
FAST = ("resnet18_v1.5@64",)
DEEP = ("101", "152")
STATIC = [
    key
    if key in FAST
    else pytest.param(key, marks=[pytest.mark.slow, *[pytest.mark.deep] * any(word in key for word in DEEP)])
    for key in GOLDEN["static"]
    if key.startswith("res")
]


@pytest.mark.parametrize("layers", PARAMETERS)
def test_parameter_counts_are_the_published_ones(graph_mode, layers):
    network = build("resnetv15", layers, 1000)
    assert sum(p.size for p in network.trainable_params()) == PARAMETERS[layers]


@pytest.mark.parametrize(("layers", "groups", "width", "parameters"), GROUPED_PARAMETERS)
def test_parameter_counts_follow_groups_and_their_width(graph_mode, layers, groups, width, parameters):
    network = build("resnextv15", layers, 1000, num_groups=groups, width_per_group=width)
    assert sum(p.size for p in network.trainable_params()) == parameters


def test_num_classes_is_respected(graph_mode):
    assert build("resnetv15", 18, 7).fc.weight.shape == (7, 512)


@pytest.mark.parametrize("family", ["resnet", "resnext"])
def test_v1_and_v15_stride_in_different_convolutions(graph_mode, family):
    def strides(version):
        block = build(f"{family}{version}", 50, 10).layer2[0]
        return [getattr(block, f"conv{i}").stride[0] for i in (1, 2, 3)]

    assert strides("v1") == [2, 1, 1]
    assert strides("v15") == [1, 2, 1]


def test_the_start_is_he_normal_with_silent_branches(graph_mode):
    import mindspore as ms

    ms.set_seed(3)
    network = build("resnetv15", 50, 1000)
    weights = {p.name: p.asnumpy() for p in network.get_parameters()}
    for name in ("conv1.weight", "layer3.0.conv2.weight", "layer4.2.conv3.weight", "fc.weight"):
        assert_he_normal(weights, name)
    assert (weights["fc.bias"] == 0).all()
    assert (weights["layer1.0.bn3.gamma"] == 0).all()
    assert (weights["layer1.0.bn2.gamma"] == 1).all()
    assert (weights["layer1.0.downsample.1.gamma"] == 1).all()
    assert (weights["bn1.beta"] == 0).all()
    assert (weights["bn1.moving_variance"] == 1).all()


def assert_he_normal(weights, name):
    """Standard deviation sqrt(2 / fan-in), the fan-in being all that one output sums over."""
    fan_in = np.prod(weights[name].shape[1:])
    assert weights[name].std() == pytest.approx((2 / fan_in) ** 0.5, rel=0.03), name
    assert abs(weights[name].mean()) < 0.03 * (2 / fan_in) ** 0.5 + 1e-4, name


def test_a_grouped_convolution_starts_from_the_fan_in_of_its_group(graph_mode):
    network = build("resnextv15", 50, 10)
    weights = {p.name: p.asnumpy() for p in network.get_parameters()}
    assert weights["layer3.1.conv2.weight"].shape == (512, 16, 3, 3)
    assert_he_normal(weights, "layer3.1.conv2.weight")


def test_the_same_seed_gives_the_same_weights(graph_mode):
    import mindspore as ms

    drawn = []
    for seed in (1, 1, 2):
        ms.set_seed(seed)
        drawn.append(build("resnetv15", 18, 10).conv1.weight.asnumpy())
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] != drawn[2]).any()


@pytest.mark.parametrize("key", STATIC)
def test_logits_losses_gradients_and_statistics_equal_the_independent_ones(graph_mode, key):
    comparison = Comparison(key)
    comparison.evaluation()
    comparison.training()


def test_a_label_smoothing_over_the_other_classes_alone_would_be_noticed():
    for key, wanted in GOLDEN["static"].items():
        trap = wanted["trap_train_loss_smooth_k_minus_1"]
        if wanted["classes"] == 10:  # of 1000 classes the difference is beyond float32
            with pytest.raises(AssertionError):
                np.testing.assert_allclose(trap, wanted["train_loss_smooth"], rtol=3e-5, err_msg=key)


def test_moving_variances_fed_the_biased_variance_would_be_noticed():
    for key, wanted in GOLDEN["static"].items():
        norms = wanted["bn_after_one_forward"]
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(
                norms["running_var_norm_biased"], norms["running_var_norm"], rtol=1e-6, err_msg=key
            )


@pytest.mark.slow
def test_the_versions_of_a_network_without_bottlenecks_are_one(graph_mode):
    key = "resnet18_v1.5@64"
    Comparison(key, golden_network(key, 10, arch="resnetv1")).evaluation()


@pytest.mark.slow
def test_another_epsilon_of_batch_norm_is_noticed_and_gives_what_the_independent_one_gives(graph_mode):
    key = "resnet50_v1.5@64"
    trap = GOLDEN["traps"][f"{key} bn_eps=1e-3"]
    comparison = Comparison(key, golden_network(key, 10, batchnorm_eps=1e-3))
    logits = comparison.network.set_train(False)(comparison.images).asnumpy()
    atol = 5e-6 * comparison.wanted["eval_logits"]["max_abs"]
    np.testing.assert_allclose(logits[0, :5], trap["eval_logits_row0"], rtol=0, atol=atol)
    with pytest.raises(AssertionError):
        comparison.evaluation()
    with pytest.raises(AssertionError):
        comparison.training()


def test_momentum_is_the_share_of_the_old_statistics_that_is_kept(graph_mode):
    import mindspore as ms

    norm = build("resnetv15", 18, 10, batchnorm_mom=0.25).bn1.set_train(True)
    x = np.random.RandomState(0).standard_normal((4, 64, 5, 5)).astype(np.float32) + 3
    norm(ms.Tensor(x))
    np.testing.assert_allclose(norm.moving_mean.asnumpy(), 0.75 * x.mean((0, 2, 3)), rtol=1e-5)
    variance = 0.25 + 0.75 * x.var((0, 2, 3), ddof=1)  # from 1; of the batch, the unbiased one
    np.testing.assert_allclose(norm.moving_variance.asnumpy(), variance, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "network",
    [NETWORKS[0], *(pytest.param(network, marks=pytest.mark.deep) for network in NETWORKS[1:])],
)
def test_32_images_are_learnt_by_heart(graph_mode, network):
    learnt = learn(network, steps=60, lr=0.256, size=64)
    assert learnt.steps is not None
    assert learnt.losses[-1] < learnt.losses[0] / 2
