"""The moving average of the weights."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def averaged(graph_mode):
    from mindspore import nn

    from src.train.ema import MovingAverage

    network = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3))
    return network, MovingAverage(network, 0.9)


def values(parameters) -> dict[str, np.ndarray]:
    return {p.name: p.asnumpy().copy() for p in parameters}


def test_it_starts_at_the_weights_and_follows_them_and_the_statistics(averaged):
    from src.train.assigning import assign

    network, average = averaged
    first = values(network.get_parameters())
    assert [p.name for p in average.averages] == [f"ema.{p.name}" for p in average.weights]
    expected = {name: value.astype(np.float64) for name, value in first.items()}
    for n in range(3):
        for p in network.get_parameters():
            assign(p, first[p.name] + n)
        average()
        expected = {name: 0.9 * e + 0.1 * (first[name] + n) for name, e in expected.items()}
    for name, value in values(average.averages).items():
        np.testing.assert_allclose(value, expected[name.removeprefix("ema.")], rtol=1e-6, atol=1e-7)


def test_weights_that_stay_the_same_are_their_average_bit_for_bit(graph_mode):
    from mindspore import nn

    from src.train.ema import MovingAverage

    network = nn.Dense(50, 20)
    average = MovingAverage(network, 0.9999)
    first = values(network.get_parameters())
    for _ in range(100):
        average()
    for name, value in values(average.averages).items():
        assert value.tobytes() == first[name.removeprefix("ema.")].tobytes()


def test_it_takes_the_weights_places_for_a_while_and_gives_them_back_bit_for_bit(averaged):
    from src.train.assigning import assign

    network, average = averaged
    for p in network.get_parameters():
        assign(p, p.asnumpy() + 1)
    raw, smooth = values(network.get_parameters()), values(average.averages)
    with average.in_place_of_weights():
        for name, value in values(network.get_parameters()).items():
            assert value.tobytes() == smooth[f"ema.{name}"].tobytes()
    for held, before in ((network.get_parameters(), raw), (average.averages, smooth)):
        for name, value in values(held).items():
            assert value.tobytes() == before[name].tobytes(), name
