"""Networks that compute in 16 bits and keep float32 parameters."""

from __future__ import annotations

import numpy as np
import pytest


def network(dtype: str = "float32", amp: bool = False):
    import mindspore as ms
    from mindspore import nn

    from src.models.precision import compute_in

    ms.set_seed(1)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return compute_in(nn.SequentialCell(*layers, nn.Dense(8, 5)), dtype, amp)


def outputs(cell, images, parts: int) -> np.ndarray:
    """Of the first so many layers."""
    import mindspore as ms
    from mindspore import nn

    return nn.SequentialCell(*list(cell)[:parts])(ms.Tensor(images)).asnumpy()


IMAGES = np.random.RandomState(0).standard_normal((4, 3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize(("amp", "pooled"), [(False, np.float16), (True, np.float32)])
def test_convolutions_compute_in_float16_and_batch_norm_never(graph_mode, amp, pooled):
    half = network("float16", amp)
    assert outputs(half, IMAGES, 1).dtype == np.float16
    assert outputs(half, IMAGES, 2).dtype == np.float32
    assert outputs(half, IMAGES, 4).dtype == pooled
    assert all(p.asnumpy().dtype == np.float32 for p in half.get_parameters())


def test_the_answer_is_float32s_to_the_precision_of_float16(graph_mode):
    import mindspore as ms

    exact, half = network(), network("float16")
    found, wanted = (cell(ms.Tensor(IMAGES)).asnumpy().astype(np.float64) for cell in (half, exact))
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert 0 < error < 5e-3


def test_float32_is_left_as_it_is(graph_mode):
    assert outputs(network(), IMAGES, 1).dtype == np.float32
