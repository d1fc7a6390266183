"""What the benchmark of the training step computes, and whom it compares; nothing is measured here."""

from __future__ import annotations

from benchmarks import training_step
from benchmarks.rounds import Contestant
from benchmarks.training_step import CONTIGUOUS, STOCK, SUITE, contestants, parse, report


def measured(seconds: float) -> Contestant:
    rounds = [{"images": 12, "seconds": seconds, "cpu_seconds": 0.0, "step_seconds": [seconds]}]
    return Contestant("", [], rounds=rounds)


def test_the_suite_is_compared_at_the_same_batch():
    table = report(
        {
            (SUITE, 16): measured(3.0),
            (CONTIGUOUS, 16): measured(2.4),
            (SUITE, 2): measured(4.0),
            (STOCK, 2): measured(120.0),
        }
    ).splitlines()
    assert (
        table[3] == f"| {CONTIGUOUS} | 16 | 5.00 (5.00 to 5.00) | 2.40 (2.40 to 2.40) | 0.80 (0.80 to 0.80) |"
    )
    assert table[5].endswith("| 30.00 (30.00 to 30.00) |")
    assert table[2].endswith("|  |")


def test_the_contestants_have_the_same_batch_size_and_recipe(monkeypatch):
    monkeypatch.setattr(training_step.environments, "interpreter", lambda name: f"{name}-python")
    found = contestants(parse(["--batch", "8", "--stock-batch", "3", "--size", "64"]))
    for (name, batch), contestant in found.items():
        words = [str(word) for word in contestant.command]
        flag = "--batch-size" if name.startswith("PyTorch") else "-b"
        assert words[words.index(flag) + 1] == str(batch)
        assert ("ONEDNN_MAX_CPU_ISA" in contestant.environment) == (name == STOCK)
    torch = [str(word) for word in found[CONTIGUOUS, 8].command]
    for flag, value in (("--momentum", "0.875"), ("--label-smoothing", "0.1"), ("--size", "64")):
        assert torch[torch.index(flag) + 1] == value


def test_stock_mindspore_can_be_left_out_or_have_the_batch_of_all(monkeypatch):
    monkeypatch.setattr(training_step.environments, "interpreter", lambda name: f"{name}-python")
    assert all(name != STOCK for name, _ in contestants(parse(["--stock-batch", "0"])))
    found = contestants(parse(["--batch", "2", "--stock-batch", "2"]))
    assert [batch for _, batch in found] == [2] * 5
