"""Augmentation and sizes: what cannot work, or would do nothing, is refused in one sentence."""

from __future__ import annotations

import pytest

from src import cli
from src.errors import OptionError


def parse(words: str):
    return cli.parse(words.split(), "train.py")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--brightness -0.1", "--brightness is -0.1; it must be in [0, 1]"),
        ("--saturation 1.5", "--saturation is 1.5"),
        ("--contrast nan", "--contrast is nan"),
        ("--max-random-h 91", "--max-random-h is 91"),
        ("--max-random-s 256", "--max-random-s is 256"),
        ("--max-random-l -1", "--max-random-l is -1"),
        ("--pca-noise inf", "--pca-noise is inf"),
        ("--max-random-rotate-angle 181", "--max-random-rotate-angle"),
        ("--max-random-shear-ratio -1", "--max-random-shear-ratio"),
        ("--random-erasing 2", "--random-erasing is 2"),
        ("--auto-augment randaugment --randaugment-magnitude 11", "--randaugment-magnitude is 11"),
        ("--auto-augment randaugment --randaugment-ops 0", "--randaugment-ops is 0"),
        ("--auto-augment mixaugment", "--auto-augment"),
        ("--random-erasing 0.25 --normalize-on-device", "leave out --normalize-on-device"),
        ("--randaugment-magnitude 7", "no effect with --auto-augment none; it belongs to randaugment"),
        ("--auto-augment trivialaugment --randaugment-ops 3", "--randaugment-ops has no effect"),
        ("--random-crop", "--random-crop has no effect with --random-resized-crop, which is on"),
        ("--max-crop-size 200 --min-crop-size 100", "--min-crop-size has no effect"),
        ("--max-random-scale 2", "--max-random-scale has no effect"),
        ("--no-random-resized-crop --min-random-area 0.5", "--min-random-area has no effect"),
        ("--no-random-resized-crop --max-random-aspect-ratio 2", "--max-random-aspect-ratio has no effect"),
        ("--no-random-resized-crop --min-random-scale 0", "0 < min <= max"),
        ("--no-random-resized-crop --min-random-scale 1.5 --max-random-scale 1.2", "0 < min <= max"),
        ("--no-random-resized-crop --max-crop-size 100", "give both, or none"),
        ("--no-random-resized-crop --min-crop-size 100 --max-crop-size 90", "0 < min <= max"),
        ("--no-random-resized-crop --min-random-scale 0.8", "a crop of 224 pixels does not fit into a shorter"
         " side of 205"),
        ("--no-random-resized-crop --min-crop-size 200 --max-crop-size 257", "a crop of 257 pixels"),
        ("--max-random-rotate-angle 5 --no-fuse-decoder", "--no-fuse-decoder has no effect"),
        ("--image-size-steps 192", "SIZE@EPOCH"),
        ("--image-size-steps 192@", "SIZE@EPOCH"),
        ("--image-size-steps 4@3", "at least 8"),
        ("--image-size-steps 192@30,224@20", "must grow"),
        ("--image-size-steps 192@90", "between epoch 1 and 89"),
        ("--image-size-steps 192@0", "the size of epoch 0 is --image-shape"),
        ("--val-image-size 4", "--val-image-size is 4"),
        ("--val-image-size 288 --data-val-resize 256", "--data-val-resize 256 is smaller"),
        ("--on-bad-image skip", "--on-bad-image skip has no effect with --data-backend mindrecord"),
    ],
)  # fmt: skip
def test_refused(words, told):
    with pytest.raises(OptionError) as error:
        parse(words)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "words",
    [
        "--no-random-resized-crop --random-crop --min-random-scale 0.9 --max-random-scale 1.1",
        "--no-random-resized-crop --min-crop-size 128 --max-crop-size 256",
        "--auto-augment randaugment --randaugment-magnitude 0 --randaugment-magnitude-std 0",
        "--max-random-rotate-angle 180 --max-random-shear-ratio 2 --max-random-h 90",
        "--data-backend imagefolder --on-bad-image skip",
        "--no-random-resized-crop --no-random-mirror --image-shape 3,160,160 --image-size-steps 192@30 "
        "--val-image-size 256",
    ],
)
def test_accepted_and_survives_the_command_line(words):
    config = parse(words)
    assert cli.parse(cli.to_argv(config), "train.py") == config


def test_the_published_progressive_resizing():
    """ffcv's 88 epochs: 160 px, from the middle of a ramp over epochs 65 to 76 on 192; test at 256 of 293."""
    config = parse(
        "-e 88 --image-shape 3,160,160 --image-size-steps 192@71 --val-image-size 256 --test-flips"
    )
    assert [config.train_size(epoch) for epoch in (0, 70, 71, 87)] == [(160, 160)] * 2 + [(192, 192)] * 2
    assert config.val_size == (256, 256)
    assert config.val_resize == 293
    # Without a test size of its own: that of the last epoch, 8/7 before the crop.
    config = parse("-e 88 --image-shape 3,160,160 --image-size-steps 192@71")
    assert (config.val_size, config.val_resize) == ((192, 192), 219)


def test_the_shorter_side_of_training_keeps_the_proportion_of_validation():
    config = parse("--image-shape 3,112,112 --val-image-size 224 --data-val-resize 232")
    assert config.train_resize((112, 112)) == 116
    assert parse("--data-val-resize 240").train_resize((224, 224)) == 240


def test_a_checkpoint_carries_its_sizes_whatever_the_number_of_epochs():
    saved = {"image-shape": [3, 32, 32], "image-size-steps": ["64@12"], "test-flips": True}
    words = ["--mode", "val", "--load", "x.safetensors", "-e", "2", "--warmup-epochs", "0"]
    config = cli.parse(words, "train.py", checkpoint_options=lambda path: saved)
    assert config.val_size == (64, 64)
    assert config.data.test_flips


def test_every_option_that_decides_what_validation_sees_goes_with_a_checkpoint():
    from src.weights.record import NETWORK_OPTIONS

    seen = {
        "image-shape", "image-size-steps", "val-image-size", "data-val-resize", "val-interpolation",
        "interpolation", "test-flips", "rgb-mean", "rgb-std",
    }  # fmt: skip
    assert seen <= set(NETWORK_OPTIONS)
    saved = {name: value for name, value in parse("").plain().items() if name in seen and value is not None}
    assert saved["image-size-steps"] == []
    words = ["--mode", "val", "--load", "x.safetensors"]
    assert cli.parse(words, "train.py", checkpoint_options=lambda path: saved).data == parse("").data
