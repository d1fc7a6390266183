"""What the benchmark of evaluation and prediction computes; nothing is measured here."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.inference import EVALUATION, PREDICTION, parse, percentile, rows
from benchmarks.rounds import Contestant


@pytest.mark.parametrize("percent", [50, 90, 95, 99])
def test_percentiles_are_numpys(percent):
    values = np.random.default_rng(0).random(37).tolist()
    np.testing.assert_allclose(percentile(values, percent), np.percentile(values, percent))


def test_rows_hold_rates_ratios_and_latencies_of_all_calls():
    def measured(seconds: float) -> Contestant:
        one = {"images": 8, "seconds": 2 * seconds, "cpu_seconds": 0.0, "step_seconds": [seconds, seconds]}
        return Contestant("", [], rounds=[one, one, one])

    found = rows(4, {EVALUATION: measured(0.5), PREDICTION: measured(0.25)})
    assert found[0] == [4, EVALUATION, "8.00 (8.00 to 8.00)", "2.00 (2.00 to 2.00)", *["500"] * 4, 6]
    assert found[1] == [4, PREDICTION, "16.00 (16.00 to 16.00)", "", *["250"] * 4, 6]


def test_an_empty_batch_is_refused(capsys):
    with pytest.raises(SystemExit):
        parse(["--batches", "8,0"])
    assert "--batches 0" in capsys.readouterr().err
    assert parse(["--batches", "1,64"]).batches == [1, 64]
