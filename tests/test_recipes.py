"""Every recipe parses, says how to run it, reads back as itself, and is what its source published."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

import pytest

from src import cli
from src.config import RunnerConfig
from src.train.schedule import schedule
from tests.support import ROOT

RECIPES = sorted((ROOT / "configs").glob("*.yaml"))


def head(path) -> str:
    """The comment at the beginning, its lines as one."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


def command(path) -> list[str]:
    """The words of the command in the head comment, behind ./runner."""
    (line,) = re.findall(r"^# +\./runner (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(line)


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_a_recipe_is_a_command_line(path):
    config = cli.parse(["--config", str(path)], "train.py")
    assert cli.parse(cli.to_argv(config), "train.py") == config
    assert cli.to_argv(config), "a recipe that changes nothing"
    assert f"--config configs/{path.name}" in head(path), "its command stands in its head comment"
    keys = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    assert 6 <= len(keys) <= 22


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_a_recipe_says_whose_its_result_is(path):
    text = head(path)
    if "Measured on" not in text:
        assert "Not measured with this suite" in text
    if "top-1" in text:
        assert re.search(r"(Measured on|Published by) .*top-1 [\d.]+ %", text)
    if "Published by" in text:
        assert "https://" in text


class Published(NamedTuple):
    """What a recipe's source says. At the epoch `half` the rate is half the peak again, half-way down."""

    batch_size: int  # on each of 8 devices
    peak: float
    epochs: int
    warmup: int
    half: float
    wd: float = 2**-15
    smoothing: float = 0.1
    mixup: float = 0.0
    cutmix: float = 0.0
    size: int = 224
    val_size: int = 224


PUBLISHED = {
    "imagenet-50-epochs": Published(192, 1.536, 50, 5, 27.5),
    "imagenet-90-epochs": Published(192, 1.536, 90, 5, 47.5),
    "imagenet-250-epochs": Published(192, 1.536, 250, 5, 127.5, mixup=0.2),
    "imagenet-torchvision-600": Published(128, 0.5, 600, 5, 302.5, 2e-5, 0.1, 0.2, 1.0, 176),
    "imagenet-rsb-a2": Published(256, 0.005, 300, 5, 152.5, 0.02, 0.0, 0.1, 1.0),
    "imagenet-rsb-a3": Published(256, 0.008, 100, 5, 52.5, 0.02, 0.0, 0.1, 1.0, 160),
    "imagenet-ffcv-16": Published(512, 1.7, 16, 2, 9, 1e-4, size=160, val_size=256),
    "imagenet-ffcv-88": Published(512, 1.7, 88, 2, 45, 1e-4, size=160, val_size=256),
}


def test_every_recipe_for_imagenet_is_compared_with_its_source():
    assert {path.stem for path in RECIPES if path.stem.startswith("imagenet-")} == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_recipe_resolves_to_the_published_numbers(name):
    said = PUBLISHED[name]
    config = cli.parse(command(ROOT / "configs" / f"{name}.yaml"), "runner", RunnerConfig)
    t = config.training
    assert (config.launch.num_devices, t.batch_size, t.accumulation) == (8, said.batch_size, 1)
    peak = config.peak_lr(config.global_batch_size(8))
    assert peak == pytest.approx(said.peak, rel=1e-12)
    rates = schedule(t, peak)
    at = [rates.rate(x) / said.peak for x in (0, said.warmup / 2, said.warmup, said.half, said.epochs)]
    assert at == pytest.approx([0, 0.5, 1, 0.5, 0], abs=1e-12)
    assert (t.num_epochs, t.wd, t.label_smoothing) == (said.epochs, said.wd, said.smoothing)
    assert (t.mixup, t.cutmix, t.bn_weight_decay) == (said.mixup, said.cutmix, False)
    assert config.data.image_shape == (3, said.size, said.size)
    assert (config.data.val_image_size or said.size) == said.val_size
    assert (config.model.arch, config.model.num_layers) == ("resnetv15", 50)


def test_the_smoothed_weights_of_torchvision_are_ours():
    """Every 32 steps theirs take in (1 - 0.99998) x 8 x 128 x 32 / 600 of the weights."""
    config = cli.parse(["--config", str(ROOT / "configs" / "imagenet-torchvision-600.yaml")], "train.py")
    theirs = 1 - (1 - 0.99998) * 8 * 128 * 32 / 600
    assert config.training.ema**32 == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(("name", "ramp"), [("imagenet-ffcv-16", (11, 13)), ("imagenet-ffcv-88", (65, 76))])
def test_images_grow_in_the_epoch_in_which_those_of_ffcv_do(name, ramp):
    """Theirs: from 160 to 192 over the ramp, rounded to a multiple of 32."""
    begin, end = ramp
    config = cli.parse(["--config", str(ROOT / "configs" / f"{name}.yaml")], "train.py")
    for epoch in range(config.training.num_epochs):
        way = min(1, max(0, (epoch - begin) / (end - begin)))
        size = round((160 + 32 * way) / 32) * 32
        assert config.train_size(epoch) == (size, size), epoch


def test_a_run_knows_in_what_it_departs_from_its_recipe(tmp_path):
    from src import cli, recipes

    plain = recipes.differences(cli.parse(["--lr", "0.1", "--workspace", str(tmp_path)], "test"))
    assert plain == {"file": None, "differences": {"lr": {"recipe": 0.256, "run": 0.1}}}
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("lr: 0.1\nnum-layers: 18\n")
    departed = recipes.differences(cli.parse(["--config", str(recipe), "--num-layers", "34"], "test"))
    assert departed == {"file": str(recipe), "differences": {"num-layers": {"recipe": 18, "run": 34}}}
