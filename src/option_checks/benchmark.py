"""The sweep of benchmark.py, and the options that it passes on."""

from typing import List, Sequence

from src.config import RunnerConfig
from src.config.benchmark import DURATION, Benchmark
from src.option_checks.refusing import listed, refuse

TABLES = (".md", ".csv")
# What benchmark.py gives to each run itself.
OWN = ("--workspace", "--overwrite", "--run-epochs")


def sweep(benchmark: Benchmark) -> None:
    """What benchmark.py itself was told. Raises OptionError."""
    b = benchmark
    for name, values in (("-n/--num-devices", b.num_devices), ("-b/--batch-size", b.batch_size)):
        refuse(not values, f"{name} names nothing to measure; give numbers, for example 1,2,4")
        refuse(any(value < 1 for value in values), f"{name} is {listed(values)}; each must be at least 1")
        refuse(len(set(values)) < len(values), f"{name} {listed(values)} names a number twice")
    refuse(
        b.benchmark_iters < 2,
        f"-i/--benchmark-iters is {b.benchmark_iters}; it must be at least 2, for the first tenth of an "
        "epoch's steps, and at least one, is left out of the figures",
    )
    refuse(b.epochs < 1, f"-e/--epochs is {b.epochs}; it must be at least 1")
    refuse(b.warmup < 0, f"-w/--warmup is {b.warmup}; it must be 0 or more")
    refuse(
        b.warmup >= b.epochs,
        f"-w/--warmup {b.warmup} leaves none of -e/--epochs {b.epochs} to measure; give more epochs",
    )
    readable = b.timeout is None or b.timeout == "inf" or DURATION.fullmatch(b.timeout)
    refuse(
        not readable, f"--timeout {b.timeout}: seconds are expected, or 30m, 2h; leave it out for no limit"
    )
    refuse(b.timeout_s == 0, f"--timeout {b.timeout} leaves no time for a run; leave it out for no limit")
    refuse(b.output.is_dir(), f"-o/--output {b.output} is a folder; give the name of a file")
    refuse(
        b.output.suffix in TABLES,
        f"-o/--output {b.output} is the JSON report, beside which {' and '.join(TABLES)} are written anyway; "
        f"give {b.output.with_suffix('.json')}",
    )


def passed_on(words: Sequence[str]) -> None:
    """Options that every run is given by benchmark.py itself. Raises OptionError."""
    typed: List[str] = [word.split("=")[0].replace("_", "-") for word in words]
    for name in OWN:
        refuse(
            name in typed or name.replace("--", "--no-", 1) in typed,
            f"{name} is chosen by benchmark.py for each of its runs; leave it out"
            + (", -e says how many epochs" if name == "--run-epochs" else ""),
        )


def runs(config: RunnerConfig, benchmark: Benchmark) -> None:
    """Options of runner with which there is no sweep, wherever they come from. Raises OptionError."""
    training, launch = config.training, config.launch
    refuse(
        config.output.resume not in ("auto", "off"),
        f"--resume {config.output.resume}: a run that is measured begins anew; --load takes weights only",
    )
    refuse(
        training.num_epochs < benchmark.epochs and training.mode != "val",
        f"-e/--epochs {benchmark.epochs} is more than --num-epochs {training.num_epochs}, over which the "
        "learning rate goes down",
    )
    refuse(
        (launch.nodes or 1) > 1,
        f"--nodes {launch.nodes}: benchmark.py measures on one machine, as nobody starts the others' runs",
    )
    refuse(
        config.platform.train_url is not None,
        f"--train-url {config.platform.train_url}: benchmark.py keeps what runs leave beside its --output",
    )
    refuse(
        training.test_io and training.test_io_mode != training.mode,
        f"--test-io measures the pipeline of --test-io-mode {training.test_io_mode} alone; "
        f"add --mode {training.test_io_mode}",
    )
