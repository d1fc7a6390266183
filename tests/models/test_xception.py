"""Xception: the published size, the start, and the values of an independent implementation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.networks import GOLDEN, Comparison, build
from tests.models.test_resnet import assert_he_normal

KEY = "xception@96"
PARAMETERS = 22_855_952  # as Keras states it, less the moving statistics
NUM_BLOCKS = 12


@pytest.fixture(scope="module")
def fresh(graph_mode):
    return build("xception", 50, 1000)


def test_the_parameter_count_is_the_published_one(fresh):
    assert (
        sum(p.size for p in fresh.trainable_params())
        == PARAMETERS
        == GOLDEN["static"][KEY]["params_1000_classes"]
    )


def test_the_start_is_he_normal_with_silent_branches(fresh):
    weights = {p.name: p.asnumpy() for p in fresh.get_parameters()}
    assert weights["block5.sep2.depthwise.weight"].shape == (728, 1, 3, 3)
    for name in ("conv2.weight", "block5.sep2.depthwise.weight", "sep4.pointwise.weight", "fc.weight"):
        assert_he_normal(weights, name)
    silent = {name for name, value in weights.items() if name.endswith("gamma") and (value == 0).all()}
    last = {i: 2 if i in (1, 2, 3, NUM_BLOCKS) else 3 for i in range(1, NUM_BLOCKS + 1)}
    assert silent == {f"block{i}.bn{n}.gamma" for i, n in last.items()}


def test_logits_and_losses_equal_the_independent_ones(graph_mode):
    Comparison(KEY).evaluation()


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in GOLDEN["static"] if key.startswith("xception")])
def test_logits_gradients_and_statistics_equal_the_independent_ones_at_all_sizes(graph_mode, key):
    comparison = Comparison(key)
    if key != KEY:
        comparison.evaluation()
    comparison.training()


@pytest.mark.slow
@pytest.mark.parametrize("trap", ["zero-padded pool", "'same' pool"])
def test_pooling_padded_in_another_way_is_noticed(graph_mode, trap):
    from mindspore import nn

    from src.models.resnet import StemPool

    comparison = Comparison(KEY)
    for i in (1, 2, 3, NUM_BLOCKS):
        block = getattr(comparison.network, f"block{i}")
        block.pool = StemPool() if trap.startswith("zero") else nn.MaxPool2d(3, 2, pad_mode="same")
    logits = comparison.network.set_train(False)(comparison.images).asnumpy()
    wanted, values = GOLDEN["traps"][f"{KEY} {trap}"], comparison.wanted["eval_logits"]
    # It is this very mistake: so the right values can be told from it.
    np.testing.assert_allclose(
        logits[0, :5], wanted["eval_logits_row0"], rtol=0, atol=5e-6 * values["max_abs"]
    )
    with pytest.raises(AssertionError):
        comparison.evaluation()


@pytest.mark.parametrize("size", [(6, 6), (5, 7)])
def test_pooling_ignores_its_padding_and_sends_the_gradient_to_the_largest_every_time(graph_mode, size):
    import mindspore as ms

    from src.models.xception import MaxPool

    height, width = size
    x = np.random.RandomState(0).standard_normal((2, 3, height, width)).astype(np.float32) - 5
    pool = MaxPool()

    def square(x):
        return (pool(x) ** 2).sum() / 2

    best, gradient = np.zeros((2, 3, (height + 1) // 2, (width + 1) // 2), np.float32), np.zeros_like(x)
    for n, c, i, j in np.ndindex(best.shape):
        rows, columns = slice(max(2 * i - 1, 0), 2 * i + 2), slice(max(2 * j - 1, 0), 2 * j + 2)
        window = x[n, c, rows, columns]
        at = np.unravel_index(window.argmax(), window.shape)
        best[n, c, i, j] = window[at]
        gradient[n, c, rows.start + at[0], columns.start + at[1]] += window[at]
    np.testing.assert_array_equal(pool(ms.Tensor(x)).asnumpy(), best)
    differentiate = ms.grad(square)
    for _ in range(3):  # ops.pad's is wrong from the second call on
        np.testing.assert_allclose(differentiate(ms.Tensor(x)).asnumpy(), gradient, rtol=1e-6)


def test_the_stages_are_all_but_the_head_in_order(fresh):
    owned = [p.name for stage in fresh.stages() for cell in stage for p in cell.get_parameters()]
    assert owned == [p.name for p in fresh.get_parameters() if not p.name.startswith("fc.")]
    fourth = {p.name.split(".")[0] for cell in fresh.stages()[3] for p in cell.get_parameters()}
    assert fourth == {f"block{i}" for i in range(3, 12)}  # block3 ends at a 16th of the size


@pytest.mark.slow
def test_each_stage_ends_where_the_size_halves(fresh):
    import mindspore as ms

    x, sides = ms.Tensor(np.zeros((1, 3, 64, 64), np.float32)), []
    for stage in fresh.set_train(False).stages():
        for cell in stage:
            x = cell(x)
        sides.append(x.shape[-1])
    assert sides == [32, 16, 8, 4, 2]
