"""The learning rate, against values of an independent implementation."""

from __future__ import annotations

import numpy as np
import pytest

from src.config import Training
from src.train.schedule import schedule

CASES = {
    "cosine": Training(),
    "cosine_restarts_30_60_x0.256": Training(lr_steps=(30.0, 60.0)),
    "multistep_30_60_80_x0.1": Training(lr_schedule="multistep", lr_steps=(30.0, 60.0, 80.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_rates_equal_the_published_formulas(golden, name):
    table = golden["lr_schedules"]
    plan, steps = schedule(CASES[name], table["peak"]), table["steps_per_epoch"]
    found = [plan.rate(epoch + step / steps) for epoch, step in table["points"]]
    assert found == pytest.approx(table[name]["values"], rel=1e-12, abs=1e-15)
    total = sum(plan.rate(i / steps) for i in range(table["epochs"] * steps))
    assert total == pytest.approx(table[name]["sum_all_steps"], rel=1e-9)


def test_the_very_first_step_has_rate_0_and_no_warmup_starts_at_the_peak():
    assert schedule(Training(), 1.536).rate(0) == 0
    assert schedule(Training(warmup_epochs=0), 1.536).rate(0) == 1.536


def test_past_the_end_the_rate_is_defined():
    assert schedule(Training(), 1.0).rate(90) == pytest.approx(0)
    assert schedule(CASES["multistep_30_60_80_x0.1"], 1.0).rate(95) == pytest.approx(1e-3)


@pytest.mark.parametrize("name", CASES)
def test_the_rate_on_the_device_is_the_same_function(graph_mode, name):
    import mindspore as ms

    from src.train.optimizer import ScheduledRate

    steps = 835
    plan = schedule(CASES[name], 1.536)
    cell = ScheduledRate(plan, steps)
    for step in (0, 1, 4174, 4175, 25049, 25050, 50100, 66800, 75149, 75150):
        on_device = float(cell(ms.Tensor(step, ms.int32)).asnumpy())
        assert on_device == pytest.approx(plan.rate(step / steps), abs=2e-6 * 1.536), f"step {step}"


def test_rates_fall_after_the_warmup_and_never_turn_negative():
    plan = schedule(Training(), 1.0)
    rates = np.array([plan.rate(x) for x in np.linspace(5, 90, 500)])
    assert (np.diff(rates) <= 0).all()
    assert rates.min() >= 0
