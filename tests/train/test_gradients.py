"""Clipping and checking of gradients."""

from __future__ import annotations

import numpy as np
import pytest


def gradients(scale: float = 1.0):
    import mindspore as ms

    random = np.random.RandomState(0)
    arrays = [random.standard_normal(s).astype(np.float32) * scale for s in ((300, 400), (7,), (2, 3, 3, 3))]
    return ms.mutable(tuple(ms.Tensor(a) for a in arrays)), [a.astype(np.float64) for a in arrays]


def test_only_a_longer_gradient_is_clipped_and_all_keep_their_direction(graph_mode):
    from src.train.gradients import ClipByGlobalNorm

    for scale, limit in ((1.0, 1.0), (1e-3, 1.0), (1e4, 5.0)):
        given, arrays = gradients(scale)
        norm = np.sqrt(sum((a**2).sum() for a in arrays))
        for found, array in zip(ClipByGlobalNorm(limit)(given), arrays):
            np.testing.assert_allclose(found.asnumpy(), array * min(1.0, limit / norm), rtol=2e-6)


@pytest.mark.parametrize("thoroughly", [False, True])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_seen(graph_mode, thoroughly, value):
    import mindspore as ms

    from src.train.gradients import Finite

    shapes = [(4, 3, 3, 3), (4,), (4,)]
    weights = [ms.Parameter(np.zeros(s, np.float32), name=f"p{i}") for i, s in enumerate(shapes)]
    check = Finite(weights, thoroughly)
    for broken in range(3):
        arrays = [np.ones(s, np.float32) for s in shapes]
        arrays[broken].flat[-1] = value
        seen = not bool(check(ms.mutable(tuple(ms.Tensor(a) for a in arrays))).asnumpy())
        assert seen == (thoroughly or broken > 0)
    assert bool(check(ms.mutable(tuple(ms.Tensor(np.ones(s, np.float32)) for s in shapes))).asnumpy())


def test_a_network_without_a_vector_in_each_layer_is_looked_at_thoroughly(graph_mode):
    import mindspore as ms

    from src.train.gradients import Finite

    weights = [
        ms.Parameter(np.zeros(s, np.float32), name=str(i)) for i, s in enumerate([(2, 3), (4, 2), (4,)])
    ]
    assert Finite(weights, False).thoroughly
    assert not Finite(weights[1:], False).thoroughly
