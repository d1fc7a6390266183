"""Every update rule against its formula in float64, and which parameters decay."""

from __future__ import annotations

import numpy as np
import pytest

from src.config import Training
from src.train.schedule import Schedule, Segment

STEPS = 6
PLAN = Schedule((Segment("linear", 0, 3, 0.3, 3), Segment("cosine", 3, STEPS, 0.3)))
SHAPES = {
    "conv.weight": (4, 3, 3, 3),
    "bn.gamma": (4,),
    "bn.beta": (4,),
    "fc.weight": (5, 4),
    "fc.bias": (5,),
}
MATRICES = ("conv.weight", "fc.weight")
OPTIONS = {
    "sgd": {"mom": 0.9},
    "nag": {"mom": 0.9},
    "lars": {"mom": 0.9, "trust_coefficient": 0.02},
    "adamw": {"adam_beta2": 0.99, "adam_eps": 1e-3},
    "lamb": {"adam_beta2": 0.99, "adam_eps": 1e-3},
}


class Parameters:
    """Stands in for a network."""

    def __init__(self):
        import mindspore as ms

        random = np.random.RandomState(0)
        self.parameters = [
            ms.Parameter(random.standard_normal(shape).astype(np.float32), name=name)
            for name, shape in SHAPES.items()
        ]

    def trainable_params(self):
        return self.parameters


def gradient(step: int, name: str) -> np.ndarray:
    random = np.random.RandomState(100 * step + list(SHAPES).index(name))
    return random.standard_normal(SHAPES[name]).astype(np.float32)


def momentum(t, w, g, wd, lr, v, s, name, training):
    v[:] = training.mom * v + g + wd * w
    step = v if training.optimizer == "sgd" else g + wd * w + training.mom * v
    return w - lr * step


def lars(t, w, g, wd, lr, v, s, name, training):
    norm = np.linalg.norm
    trust = 1.0
    if name in MATRICES:
        trust = training.trust_coefficient * norm(w) / (norm(g) + wd * norm(w) + 1e-8)
    v[:] = training.mom * v + trust * (g + wd * w)
    return w - lr * v


def adaptive(t, w, g, wd, lr, m, v, name, training):
    b1, b2, eps = training.adam_beta1, training.adam_beta2, training.adam_eps
    m[:] = b1 * m + (1 - b1) * g
    v[:] = b2 * v + (1 - b2) * g * g
    update = (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    if training.optimizer == "adamw":
        return w - lr * wd * w - lr * update
    update = update + wd * w
    trust = np.linalg.norm(w) / np.linalg.norm(update) if name in MATRICES else 1.0
    return w - lr * trust * update


RULES = {"sgd": momentum, "nag": momentum, "lars": lars, "adamw": adaptive, "lamb": adaptive}


def expected(training: Training) -> dict[str, np.ndarray]:
    found = {}
    for p in Parameters().parameters:
        w, a, b = p.asnumpy().astype(np.float64), np.zeros(p.shape), np.zeros(p.shape)
        decays = p.name not in ("bn.gamma", "bn.beta")
        for t in range(STEPS):
            g = gradient(t, p.name).astype(np.float64)
            wd = training.wd if decays else 0.0
            w = RULES[training.optimizer](t + 1, w, g, wd, PLAN.rate(t), a, b, p.name, training)
        found[p.name] = w
    return found


@pytest.mark.parametrize("name", OPTIONS)
def test_six_updates_at_changing_rates_equal_the_formula(graph_mode, name):
    import mindspore as ms

    from src.train.optimizer import optimizer

    training = Training(optimizer=name, wd=0.05, **OPTIONS[name])
    network = Parameters()
    rule = optimizer(network, training, PLAN, 1)
    for t in range(STEPS):
        rule(tuple(ms.Tensor(gradient(t, p.name)) for p in network.parameters))
    wanted, start = expected(training), Parameters().parameters
    for before, after in zip(start, network.parameters):
        np.testing.assert_allclose(after.asnumpy(), wanted[after.name], atol=2e-6, err_msg=after.name)
        assert np.abs(after.asnumpy() - before.asnumpy()).max() > 1e-3, f"{after.name} hardly moved"


@pytest.mark.parametrize("name", ["lars", "lamb"])
def test_a_layer_of_zeros_can_leave_them(graph_mode, name):
    """The ratio |w| / |update| would be 0 for ever."""
    import mindspore as ms

    from src.train.optimizer import optimizer

    network = Parameters()
    network.parameters = [ms.Parameter(np.zeros((3, 4), np.float32), name="fc.weight")]
    rule = optimizer(network, Training(optimizer=name), Schedule((Segment("constant", 0, 1, 0.1),)), 1)
    rule((ms.Tensor(np.ones((3, 4), np.float32)),))
    assert (network.parameters[0].asnumpy() < -1e-2).all()


@pytest.mark.parametrize(
    ("options", "decaying"),
    [
        ({}, {"conv.weight", "fc.weight", "fc.bias"}),
        ({"bias_weight_decay": False}, {"conv.weight", "fc.weight"}),
        ({"bn_weight_decay": True}, set(SHAPES)),
        ({"wd": 0.0}, set()),
    ],
)
@pytest.mark.parametrize("name", ["sgd", "nag", "adamw", "lars"])
def test_without_gradient_only_decaying_parameters_shrink(graph_mode, name, options, decaying):
    """By exactly rate x decay, lars by its trust coefficient too; gamma and beta stay bit for bit."""
    import mindspore as ms

    from src.train.optimizer import optimizer

    training, rate = Training(optimizer=name, **{"wd": 0.01, **options}), 0.5
    network = Parameters()
    before = {p.name: p.asnumpy().copy() for p in network.parameters}
    rule = optimizer(network, training, Schedule((Segment("constant", 0, 1, rate),)), 1)
    rule(tuple(ms.Tensor(np.zeros(p.shape, np.float32)) for p in network.parameters))
    shrinks = rate * training.wd * ((1 + training.mom) if name == "nag" else 1)
    for p in network.parameters:
        if p.name not in decaying:
            assert p.asnumpy().tobytes() == before[p.name].tobytes(), p.name
        else:
            np.testing.assert_allclose(p.asnumpy(), before[p.name] * (1 - shrinks), rtol=1e-6, err_msg=p.name)


@pytest.mark.parametrize(("name", "eps"), [("adamw", 1e-8), ("lamb", 1e-6)])
def test_the_default_eps_is_the_published_one(graph_mode, name, eps):
    from src.train.optimizer import optimizer

    assert optimizer(Parameters(), Training(optimizer=name), PLAN, 1).eps == eps
