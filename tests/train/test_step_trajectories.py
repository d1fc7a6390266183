"""Twelve training steps against an independent float64 implementation; plausible mistakes must not pass."""

from __future__ import annotations

import json

import numpy as np
import pytest

from src.config import Training
from tests.golden import spec
from tests.models.test_resnet import golden_network
from tests.support import ROOT
from tests.train.test_step import build

PEAK = "peak0.004"
PLAIN = {"wd": spec.WEIGHT_DECAY}
VARIANTS = {
    "base": Training(**PLAIN, ema=0.9),
    "no_fc_bias_decay": Training(**PLAIN, bias_weight_decay=False),
    "nesterov": Training(**PLAIN, optimizer="nag"),
    "accum2": Training(**PLAIN, accumulation=2),
    "clip1": Training(**PLAIN, grad_clip=1.0),
    "wd05": Training(wd=0.05),
    "wd05_no_fc_bias_decay": Training(wd=0.05, bias_weight_decay=False),
    "trap_wd05_bn_decayed": Training(wd=0.05, bn_weight_decay=True),
}
# The errors that float32 may have: absolute of the losses (first ones, later ones) and of fc.bias's norm,
# relative of the others. Four to twenty times the worst that PyTorch's own float32 runs have.
TOLERANCES = {
    "resnet18_v1.5": {
        **{"losses": (5, 2e-5, 5e-4), "moved": 1e-4, "fc.bias": 2e-7, "bn": 1e-5},
        **{"ema": 1e-4, "scored": {"raw": 2e-5, "averaged": 2e-5}},
    },
    "resnet50_v1.5": {
        **{"losses": (2, 1e-5, 1e-2), "moved": 3e-3, "fc.bias": 1e-5, "bn": 2e-4},
        **{"ema": 2e-3, "scored": {"raw": 8e-3, "averaged": 3e-3}},
    },
}
# Told apart by nothing but 1e-6 of fc.bias: too little for the float32 error of the deeper network.
SAME = {"resnet50_v1.5": {"base", "no_fc_bias_decay"}}
FAST = [("resnet18_v1.5", "base")]
DEEP = [
    ("resnet50_v1.5", variant) for variant in ("base", "clip1", "nesterov", "wd05", "trap_wd05_bn_decayed")
]


def marks(case: tuple[str, str]) -> list:
    return [] if case in FAST else [pytest.mark.slow] + [pytest.mark.deep] * (case in DEEP)


CASES = [
    pytest.param(arch, variant, marks=marks((arch, variant)))
    for arch in TOLERANCES
    for variant in VARIANTS
    # What the dense bias decays by has nothing to do with depth, and twelve steps of ResNet-50 are dear.
    if arch == "resnet18_v1.5" or "bias" not in variant
]


@pytest.fixture(scope="module")
def trajectories(golden) -> dict:
    """Per network and variant, from both files of golden values."""
    more = json.loads((ROOT / "tests" / "golden" / "trajectories.json").read_text(encoding="utf-8"))
    table = {arch: dict(more[arch][PEAK]) for arch in TOLERANCES}
    for arch, peaks in golden["trajectories"].items():
        if arch in table:
            for variant, values in peaks[PEAK].items():
                table[arch][variant] = {**values, **table[arch].get(variant, {})}
    return table


def norm(arrays) -> float:
    return float(np.sqrt(sum((np.asarray(a, np.float64) ** 2).sum() for a in arrays)))


def run(arch: str, training: Training):
    """What twelve steps give: the losses of the updates, and norms in the golden values' names."""
    import mindspore as ms

    network, step = build(training, golden_network(f"{arch}@64", 10))
    before = {p.name: p.asnumpy().copy() for p in network.get_parameters()}
    losses = []
    for i in range(spec.STEPS):
        images, labels = spec.step_batch(i)
        parts = zip(np.split(images, training.accumulation), np.split(labels, training.accumulation))
        found = [step(ms.Tensor(x), ms.Tensor(y.astype(np.int32))) for x, y in parts]
        losses.append(float(np.mean([loss.asnumpy() for loss in found])))
    after = {p.name: p.asnumpy() for p in step.get_parameters()}
    trained = [p.name for p in network.trainable_params()]
    statistics = {
        "running_mean_norm": [n for n in before if n.endswith("moving_mean")],
        "running_var_norm": [n for n in before if n.endswith("moving_variance")],
    }
    values = {
        "losses": losses,
        "moved": norm(after[n] - before[n].astype(np.float64) for n in trained),
        "fc.bias": norm([after["fc.bias"]]),
        "bn": {name: norm(after[n] for n in names) for name, names in statistics.items()},
    }
    if training.ema:
        values["ema"] = {
            "param_norm": norm(after[f"ema.{n}"] for n in trained),
            "gap_norm": norm(after[f"ema.{n}"] - after[n].astype(np.float64) for n in trained),
            **{name: norm(after[f"ema.{n}"] for n in names) for name, names in statistics.items()},
        }
        values["scored"] = scored(network, step)
    return values


def scored(network, step) -> dict[str, float]:
    """Loss on the static batch as validation has it, with the weights and with their moving average."""
    import mindspore as ms

    images, labels = spec.static_batch(8, 64, 10)

    def loss() -> float:
        logits = network.set_train(False)(ms.Tensor(images)).asnumpy().astype(np.float64)
        return float((np.log(np.exp(logits).sum(1)) - logits[np.arange(8), labels]).mean())

    raw = loss()
    with step.average.in_place_of_weights():
        averaged = loss()
    return {"raw": raw, "averaged": averaged}


def differences(found: dict, wanted: dict, allowed: dict) -> list[str]:
    """What is further from the wanted values than allowed."""
    first, early, late = allowed["losses"]
    errors = np.abs(np.subtract(found["losses"], wanted["losses"]))
    wrong = ["losses"] * bool((errors[:first] > early).any() or (errors > late).any())
    wrong += ["moved"] * (abs(found["moved"] / wanted["moved_norms"]["ALL"] - 1) > allowed["moved"])
    wrong += ["fc.bias"] * (abs(found["fc.bias"] - wanted["param_norms"]["fc.bias"]) > allowed["fc.bias"])
    for group in ("bn", "ema"):
        for name, value in found.get(group, {}).items():
            if group in wanted and abs(value / wanted[group][name] - 1) > allowed[group]:
                wrong.append(f"{group}.{name}")
    if "scored" in found and "ema" in wanted:
        losses = {"raw": wanted["eval"]["loss"], "averaged": wanted["ema"]["eval_ema_bn_stats"]["loss"]}
        for name, loss in losses.items():
            if abs(found["scored"][name] / loss - 1) > allowed["scored"][name]:
                wrong.append(f"scored.{name}")
    return wrong


@pytest.mark.parametrize(("arch", "variant"), CASES)
def test_twelve_steps_equal_the_independent_ones(graph_mode, trajectories, arch, variant):
    table, allowed = trajectories[arch], TOLERANCES[arch]
    found = run(arch, VARIANTS[variant])
    assert differences(found, table[variant], allowed) == []
    for other, values in table.items():
        if other != variant and {other, variant} != SAME.get(arch):
            assert differences(found, values, allowed), f"{other} would pass as {variant}"
