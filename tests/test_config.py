"""Options: their meaning, their spellings, and what is refused before anything starts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from scripts.make_docs import help_texts
from src import cli
from src.config import Config, RunnerConfig
from src.config.benchmark import BenchmarkConfig
from src.errors import OptionError


def parse(*argv: str) -> Config:
    return cli.parse(argv, "train.py")


def refusal(*argv: str) -> str:
    with pytest.raises(OptionError) as error:
        parse(*argv)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert error.value.exit_code == 2
    return sentence


def test_defaults_are_the_published_recipe():
    config = Config()
    assert config.training.batch_size == 192
    assert config.training.lr == 0.256
    assert config.training.num_epochs == 90
    assert config.training.mom == 0.875
    assert config.training.wd == 2**-15
    assert config.training.label_smoothing == 0.1
    assert config.val_resize == 256


def test_peak_rate_is_per_256_images():
    assert parse().peak_lr(8 * 192) == pytest.approx(1.536)


def test_short_options_and_spellings_are_one_option():
    assert (
        parse("-b", "64")
        == parse("--batch-size", "64")
        == parse("--batch_size=64")
        == parse("--batch-size=64")
    )
    assert parse("--lr-steps", "30,60") == parse("--lr-steps", "30", "60")
    assert parse("--random-mirror", "0") == parse("--no-random-mirror") == parse("--random-mirror=false")
    assert parse("--image-shape", "3,64,64").data.image_shape == (3, 64, 64)


def test_a_value_behind_an_equals_sign_may_begin_with_a_dash():
    config = parse("--data-root=-odd=name")
    assert config.data.data_root == Path("-odd=name")
    assert cli.parse(cli.to_argv(config), "train.py") == config


def test_falsy_values_count():
    config = parse("--seed", "0", "--warmup-epochs", "0", "--label-smoothing", "0", "--wd", "0")
    assert config.training.seed == 0
    assert config.training.warmup_epochs == 0
    assert config.training.label_smoothing == 0
    assert config.training.wd == 0


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["-n", "4", "-b", "8", "--lr", "1e-3", "--seed", "0"],
        ["--lr-schedule", "multistep", "--lr-steps", "30,60.5", "--lr-factor", "0.2", "--no-metrics"],
        ["--data-root", "/a b/ü", "--image-shape", "3,64,96", "--rgb-mean", "1,2,3", "--no-random-mirror"],
        ["--mode", "val", "--load", "x y.safetensors", "--overwrite"],
    ],
)
def test_a_command_line_survives_the_way_through_the_configuration(argv):
    config = cli.parse(argv, "runner", RunnerConfig)
    assert cli.parse(cli.to_argv(config), "runner", RunnerConfig) == config
    rank = config.for_rank()
    assert cli.parse(cli.to_argv(rank), "train.py") == rank


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--bach-size", "3"], "--batch-size"),
        (["-b", "x"], "--batch-size"),
        (["-b", "0"], "--batch-size"),
        (["-b"], "--batch-size"),
        (["--arch", "vgg"], "resnetv15"),
        (["stray"], "'stray'"),
        (["--random-mirror", "2"], "--random-mirror"),
        (["--lr", "-1"], "--lr"),
        (["--lr", "nan"], "--lr"),
        (["--seed", "-1"], "--seed"),
        (["--seed", str(2**32)], "--seed"),
        (["--label-smoothing", "1"], "--label-smoothing"),
        (["-e", "3"], "--warmup-epochs"),
        (["--lr-schedule", "multistep"], "--lr-steps"),
        (["--lr-steps", "60,30"], "--lr-steps"),
        (["--lr-steps", "90"], "--lr-steps"),
        (["--lr-factor", "0.1"], "--lr-steps"),
        (["--image-shape", "1,32,32"], "--image-shape"),
        (["--image-shape", "3,300,300", "--data-val-resize", "256"], "--data-val-resize"),
        (["--min-random-area", "0"], "--min-random-area"),
        (["--min-random-area", "0.9", "--max-random-area", "0.5"], "--max-random-area"),
        (["--no-random-resized-crop", "--no-fuse-decoder"], "--no-fuse-decoder"),
        (["--mode", "val"], "--load"),
        (["--mode", "pred", "--load", "x"], "--data-pred"),
        (["--data-pred", "x.jpg"], "--mode pred"),
        (["--mode", "val", "--load", "x", "--resume", "off"], "--resume"),
        (["--model-prefix", "a/b"], "--model-prefix"),
        (["--report", "a/b.json"], "--report"),
        (["--rgb-std", "1,0,1"], "--rgb-std"),
        (["--save-frequency", "-2"], "--save-frequency"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence_that_names_the_option(argv, told):
    assert told in refusal(*argv)


def recipe(tmp_path: Path, text: str) -> str:
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_recipe_is_a_saved_command_line_and_the_command_line_wins(tmp_path):
    path = recipe(
        tmp_path, "batch-size: 8\nlr: 1e-3\nimage_shape: [3, 64, 64]\nrandom-mirror: false\nresume: off\n"
    )
    config = parse("--config", path, "-b", "16")
    expected = parse(
        "-b", "16", "--lr", "0.001", "--image-shape", "3,64,64", "--no-random-mirror", "--resume", "off"
    )
    assert config == expected
    # Options that the user sets back to a default must win over the recipe too, in every process.
    assert parse("--config", path, "-b", "192").training.batch_size == 192
    assert cli.parse(cli.to_argv(config), "train.py") == config


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bach-size: 3\n", "bach-size"),
        ("batch-size: many\n", "--batch-size"),
        ("training:\n  lr: 1\n", "training"),
        ("- a\n", "option: value"),
        ("a: [\n", "YAML"),
    ],
)
def test_a_wrong_recipe_is_refused_by_file_and_key(tmp_path, text, told):
    path = recipe(tmp_path, text)
    sentence = refusal("--config", path)
    assert path in sentence
    assert told in sentence


def test_a_missing_recipe_is_named(tmp_path):
    assert "nowhere.yaml" in refusal("--config", str(tmp_path / "nowhere.yaml"))


def test_a_used_checkpoint_supplies_options_and_given_ones_win():
    saved = {"num-layers": 18, "image-shape": [3, 32, 32], "data-val-resize": 32}
    words = ["--mode", "val", "--load", "x.safetensors", "--num-layers", "34"]
    config = cli.parse(words, "train.py", checkpoint_options=lambda path: saved)
    assert config.model.num_layers == 34
    assert config.data.image_shape == (3, 32, 32)
    trained = cli.parse(["--load", "x.safetensors"], "train.py", checkpoint_options=lambda path: saved)
    assert trained.model.num_layers == 50


def test_option_names_are_unique_and_helped():
    names = [f.name for section in dataclasses.fields(Config) for f in dataclasses.fields(section.type)]
    assert len(names) == len(set(names))
    texts = help_texts()
    for section in dataclasses.fields(Config):
        for field in dataclasses.fields(section.type):
            assert texts[section.type.__name__].get(field.name), f"--{field.name} has no help"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--image-shape 3,x,32", "--image-shape takes whole numbers, not 'x'"),
        ("--image-shape 3,32.5,32", "--image-shape takes whole numbers, not '32.5'"),
        ("--rgb-mean 1,2,red", "--rgb-mean takes numbers, not 'red'"),
    ],
)
def test_a_wrong_element_of_a_list_is_named(words, told):
    with pytest.raises(OptionError) as error:
        cli.parse(words.split(), "x")
    assert str(error.value) == told


def test_own_options_are_told_from_those_of_others():
    words = "-n 1,2 -l 0.5 --random_mirror 0 --batch_sizes=4 --lr-steps 30,60 --device-ids -1 -w 1 -e 2"
    found, others = cli.parse_own(words.split(), "x", BenchmarkConfig)
    assert (found.benchmark.num_devices, found.benchmark.batch_size) == ((1, 2), (4,))
    assert (found.benchmark.warmup, found.benchmark.epochs) == (1, 2)
    assert others == ["-l", "0.5", "--random-mirror", "0", "--lr-steps", "30,60", "--device-ids", "-1"]
