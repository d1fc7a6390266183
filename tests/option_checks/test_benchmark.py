"""The sweeps that benchmark.py refuses."""

from __future__ import annotations

import pytest

from src import cli
from src.config import RunnerConfig
from src.config.benchmark import Benchmark, BenchmarkConfig
from src.errors import OptionError
from src.option_checks import benchmark as checks


def parse(words: str) -> Benchmark:
    """The checked sweep of a command line, and the check of what it passes on."""
    config, passed_on = cli.parse_own(words.split(), "test", BenchmarkConfig)
    checks.sweep(config.benchmark)
    checks.passed_on(passed_on)
    own = ["--mode", config.benchmark.mode, "--benchmark-iters", "9"]
    checks.runs(cli.parse([*passed_on, *own], "test", RunnerConfig), config.benchmark)
    return config.benchmark


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("-n 0", "-n/--num-devices is 0; each must be at least 1"),
        ("-n 2,-1", "-n/--num-devices is 2,-1; each must be at least 1"),
        ("-n 2,1,2", "-n/--num-devices 2,1,2 names a number twice"),
        ("-n", "-n/--num-devices names nothing to measure"),
        ("-n two", "--num-devices takes whole numbers, not 'two'"),
        ("-b 0", "-b/--batch-size is 0; each must be at least 1"),
        ("-b 8,8", "-b/--batch-size 8,8 names a number twice"),
        ("-b 8,x", "--batch-size takes whole numbers, not 'x'"),
        ("-b 8.5", "--batch-size takes whole numbers, not '8.5'"),
        ("-i 1", "-i/--benchmark-iters is 1; it must be at least 2"),
        ("-i ten", "'ten'"),
        ("-e 0", "-e/--epochs is 0; it must be at least 1"),
        ("-w -1", "-w/--warmup is -1; it must be 0 or more"),
        ("-w 2 -e 2", "-w/--warmup 2 leaves none of -e/--epochs 2"),
        ("--timeout soon", "--timeout soon: seconds are expected, or 30m, 2h"),
        ("--timeout -5", "--timeout -5: seconds are expected"),
        ("--timeout 0", "--timeout 0 leaves no time"),
        ("-o there/bench.csv", "give there/bench.json"),
        ("-o .", "-o/--output . is a folder"),
        ("--mode pred", "'pred'"),
        ("--lr x", "'x'"),
        ("--workspace run", "--workspace is chosen by benchmark.py"),
        ("--overwrite", "--overwrite is chosen by benchmark.py"),
        ("--run_epochs=3", "--run-epochs is chosen by benchmark.py for each of its runs"),
        ("--resume model_last.safetensors", "--resume model_last.safetensors: a run that is measured"),
        ("-e 9 --num-epochs 8", "-e/--epochs 9 is more than --num-epochs 8"),
        ("--nodes 2", "--nodes 2: benchmark.py measures on one machine"),
        ("--train_url obs://bucket", "--train-url obs://bucket"),
        ("--test-io", "add --mode train"),
        ("--mode train --test-io --test-io-mode val", "add --mode val"),
    ],
)  # fmt: skip
def test_refused_in_a_sentence(words: str, sentence: str) -> None:
    with pytest.raises(OptionError) as refusal:
        parse(words)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("", None),
        ("--timeout inf", None),
        ("--timeout 90", 90),
        ("--timeout 1.5m", 90),
        ("--timeout 2h", 7200),
    ],
)
def test_time_limits(words: str, seconds: float) -> None:
    assert parse(words).timeout_s == seconds


def test_the_published_names_are_accepted() -> None:
    found = parse(
        "--ngpus 1,2 --batch-sizes 32,64 --benchmark-iters 50 --epochs 2 --warmup 1 --output x.json"
    )
    assert found == parse("-n 1,2 -b 32,64 -i 50 -e 2 -w 1 -o x.json")
    assert (found.num_devices, found.batch_size, found.warmup) == ((1, 2), (32, 64), 1)
    assert parse("-n 1 2 -b 8").num_devices == (1, 2)


@pytest.mark.parametrize(
    "words",
    ["--mode val", "--mode val -e 100", "--mode train --test-io", "--resume off", "--num-epochs 9 -e 9"],
)
def test_accepted(words: str) -> None:
    parse(words)
