"""The settings that are compared: what a row is over, and that folded norms compute the same network."""

from __future__ import annotations

import dataclasses

import mindspore as ms
import numpy as np

from benchmarks.rounds import Contestant
from benchmarks.settings import (
    AS_IT_IS,
    FOLDED,
    PREDICT,
    SETTINGS,
    VARIABLES,
    contestant,
    fold,
    parse,
    report,
)
from src import models
from src.config import Config


def test_a_row_is_over_the_suite_as_it_is_round_by_round():
    def rounds(*seconds: float) -> Contestant:
        told = [{"images": 8, "seconds": s, "cpu_seconds": 2 * s} for s in seconds]
        return Contestant("", [], rounds=told)

    table = report({AS_IT_IS: rounds(1.0, 2.0, 4.0), "one thread": rounds(2.0, 2.0, 2.0)}).splitlines()
    assert table[2] == "| as it is | 4.00 (2.00 to 8.00) | 500 |  |"
    assert table[3] == "| one thread | 4.00 (4.00 to 4.00) | 500 | 1.00 (0.50 to 2.00) |"


def test_each_setting_is_a_process_that_is_told_of_it():
    args = parse(["--batch", "4", "--size", "64"])
    for kind, settings in SETTINGS.items():
        assert settings[0] == AS_IT_IS
        for setting in settings:
            one = contestant(kind, setting, args)
            assert one.environment == VARIABLES.get(setting, {})
            asked = parse([str(word) for word in one.command[3:]])
            assert (asked.serve, asked.batch, asked.size) == ([kind, setting], 4, 64)


def test_a_folded_network_gives_the_same_answers(graph_mode):
    """Each network computes for the first time here: a compiled one would not notice that it was folded."""
    assert FOLDED in SETTINGS[PREDICT]
    answers = []
    for folds in (False, True):
        ms.set_seed(3)
        random = np.random.default_rng(4)
        network = models.build(dataclasses.replace(Config().model, num_layers=18), 10).set_train(False)
        for parameter in network.get_parameters():
            if parameter.name.endswith(("gamma", "beta", "moving_mean", "moving_variance")):
                parameter.set_data(ms.Tensor(random.uniform(0.5, 1.5, parameter.shape).astype(np.float32)))
        if folds:
            fold(network)
            assert not any("moving" in parameter.name for parameter in network.get_parameters())
        images = random.standard_normal((2, 3, 32, 32)).astype(np.float32)
        answers.append(network(ms.Tensor(images)).asnumpy())
    before, after = answers
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4 * np.abs(before).max())
