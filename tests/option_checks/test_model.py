"""Options of the network that belong to another one, or to none, and weights that cannot be meant."""

from __future__ import annotations

import pytest

from src import cli
from src.config import Model
from src.errors import OptionError

NETWORKS = [
    ("--arch resnextv1 --num-layers 34", "--num-layers 34 has no bottlenecks to group: --arch resnextv1 has"),
    ("--arch resnextv15 --num-layers 18", "--num-layers 18 has no bottlenecks"),
    ("--arch xception --num-layers 101", "--num-layers 101 has no effect with --arch xception"),
    ("--num-groups 16", "--num-groups has no effect with --arch resnetv15; it belongs to resnextv1 and"),
    ("--arch xception --width-per-group 8", "--width-per-group has no effect with --arch xception"),
    ("--arch resnextv1 --num-groups 0", "--num-groups is 0; it must be at least 1"),
    ("--arch resnextv1 --width-per-group -4", "--width-per-group is -4; it must be at least 1"),
]


@pytest.mark.parametrize(("words", "told"), NETWORKS)
def test_a_network_that_does_not_exist_is_refused(words, told):
    with pytest.raises(OptionError) as error:
        cli.parse(words.split(), "train.py")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("", "resnetv15 50"),
        ("--arch resnetv1 --num-layers 18", "resnetv1 18"),
        ("--arch resnextv15 --num-groups 64", "resnextv15 50 64x4d"),
        ("--arch resnextv1 --num-layers 152 --width-per-group 8", "resnextv1 152 32x8d"),
        ("--arch xception", "xception"),
    ],
)
def test_every_network_has_a_title_and_a_time_of_compilation(words, title):
    from src.train.fit import COMPILE_SECONDS

    model = cli.parse(words.split(), "train.py").model
    assert model.title == title
    assert COMPILE_SECONDS[model.family][model.num_layers] > 0


def test_a_network_is_not_frozen_by_default():
    assert Model().freeze == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--pretrained a --load b", "--load b and --pretrained a both give the first weights"),
        ("--pretrained a --mode val --load b", "--pretrained has no effect with --mode val"),
        ("--pretrained a --test-io", "--pretrained has no effect with --test-io"),
        ("--freeze 2 --mode pred --load b --data-pred c", "--freeze has no effect with --mode pred"),
        ("--freeze 2", "--freeze 2 would keep weights drawn at random"),
    ],
)
def test_what_has_no_effect_is_refused(words, told):
    with pytest.raises(OptionError) as error:
        cli.parse(words.split(), "train.py")
    assert told in str(error.value)


@pytest.mark.parametrize(
    "words", ["--freeze 2 --load b", "--freeze 2 --pretrained a", "--freeze 2 --resume c"]
)
def test_freezing_what_was_loaded_is_no_mistake(words):
    assert cli.parse(words.split(), "train.py").model.freeze == 2
