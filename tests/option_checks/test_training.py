"""Options of the optimisation that cannot work together are refused in one sentence."""

from __future__ import annotations

import pytest

from src import cli
from src.errors import OptionError


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--accumulation 0", "--accumulation"),
        ("--benchmark-iters 3 --accumulation 4", "--accumulation 4"),
        ("--max-nonfinite-steps 0", "--max-nonfinite-steps"),
        ("--grad-clip -1", "--grad-clip"),
        ("--ema 1", "--ema"),
        ("--adam-beta1 0.8", "--optimizer sgd"),
        ("--adam-eps 0.1 --optimizer lars", "--optimizer lars"),
        ("--adam-eps 0 --optimizer adamw", "--adam-eps"),
        ("--trust-coefficient 0.1 --optimizer lamb", "--optimizer lamb"),
        ("--mom 0.9 --optimizer adamw", "--mom"),
        ("--mom 0 --optimizer nag", "--mom"),
        ("--amp", "--dtype"),
        ("--loss-scale 8", "--dtype float32"),
        ("--loss-scale dynamic --dtype bfloat16", "--dtype bfloat16"),
        ("--loss-scale 0 --dtype float16", "--loss-scale"),
        ("--loss-scale much --dtype float16", "--loss-scale"),
        ("--use-ema", "--load CHECKPOINT or --pretrained CHECKPOINT"),
        ("--mode val", "--load"),
        ("--mode val --run-epochs 3", "--load"),
        ("--mode pred --data-pred x --benchmark-iters 3", "--load"),
    ],
)
def test_what_cannot_work_is_refused_by_name(words, told):
    with pytest.raises(OptionError, match=told) as error:
        cli.parse(words.split(), "x")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "words",
    [
        "--optimizer lamb --adam-eps 1e-6 --adam-beta2 0.99 --grad-clip 1 --ema 0.9999 --accumulation 4",
        "--optimizer lars --mom 0 --trust-coefficient 0.02 --no-bias-weight-decay",
        "--dtype float16 --amp --loss-scale dynamic --max-nonfinite-steps 1",
        "--dtype float16 --loss-scale 128",
        "--mode val --benchmark-iters 3",
        "--dtype bfloat16 --amp",
        "--grad-clip 0 --ema 0 --accumulation 1",
    ],
)
def test_what_works_survives_the_way_to_the_ranks(words):
    config = cli.parse(words.split(), "x")
    assert cli.parse(cli.to_argv(config), "x") == config


def test_accumulation_counts_in_the_global_batch_and_so_in_the_rate():
    config = cli.parse(["-b", "32", "--accumulation", "4", "--lr", "0.256"], "x")
    assert config.global_batch_size(2) == 256
    assert config.peak_lr(config.global_batch_size(2)) == pytest.approx(0.256)


def test_bfloat16_is_refused_on_the_cpu_before_anything_starts():
    from src.preflight import check_device

    config = cli.parse(["--dtype", "bfloat16"], "x")
    with pytest.raises(OptionError, match="bfloat16"):
        check_device(config, "CPU")
    check_device(config, "Ascend")
    check_device(cli.parse(["--dtype", "float16"], "x"), "CPU")
