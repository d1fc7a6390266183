"""Mixed images and targets against NumPy, and 12 training steps against an independent implementation."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from src.config import Training
from src.data.mixing import KEPT, SHARE, Mixing
from tests.golden import spec
from tests.support import ROOT, command
from tests.train.test_step import build

MIXING = Mixing(mixup=0.2, cutmix=0.0, size=(6, 9), batch_size=5, steps=1, seed=1, epoch=0, rank=0)


def wanted(values: np.ndarray, drawn: np.ndarray, what: str) -> np.ndarray:
    """Image by image, as the papers say it, float64."""
    out, partners = values.astype(np.float64), values.astype(np.float64)[::-1]
    for i, (kept, top, left, bottom, right, share) in enumerate(drawn.astype(np.float64)):
        if what == "targets":
            out[i] = share * out[i] + (1 - share) * partners[i]
        else:
            box = (slice(None), slice(int(top), int(bottom)), slice(int(left), int(right)))
            out[i][box] = kept * out[i][box] + (1 - kept) * partners[i][box]
    return out


@pytest.mark.parametrize(("mixup", "cutmix"), [(0.2, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("batch_size", [1, 4, 5])
def test_images_and_targets_are_mixed_with_the_reversed_batch(graph_mode, mixup, cutmix, batch_size):
    import mindspore as ms

    from src.train.mixing import mix_images, mix_targets

    random = np.random.RandomState(0)
    for seed in range(3):
        drawn = dataclasses.replace(
            MIXING, mixup=mixup, cutmix=cutmix, batch_size=batch_size, seed=seed
        ).draw(0)
        images = random.standard_normal((batch_size, 3, 6, 9)).astype(np.float32)
        targets = random.random((batch_size, 4)).astype(np.float32)
        mixed = mix_images(ms.Tensor(images), ms.Tensor(drawn)).asnumpy()
        np.testing.assert_allclose(mixed, wanted(images, drawn, "images"), atol=1e-6)
        mixed = mix_targets(ms.Tensor(targets), ms.Tensor(drawn)).asnumpy()
        np.testing.assert_allclose(mixed, wanted(targets, drawn, "targets"), atol=1e-6)


def test_pasted_pixels_are_the_partners_to_the_bit(graph_mode):
    import mindspore as ms

    from src.train.mixing import mix_images

    images = np.random.RandomState(0).standard_normal((2, 1, 6, 9)).astype(np.float32) * 1e3
    drawn = np.float32([[0, 1, 2, 4, 7, 0.7]] * 2)
    mixed = mix_images(ms.Tensor(images), ms.Tensor(drawn)).asnumpy()
    by_hand = images.copy()
    by_hand[:, :, 1:4, 2:7] = images[::-1, :, 1:4, 2:7]
    np.testing.assert_array_equal(mixed, by_hand)


def run(lambdas: np.ndarray):
    """Losses of the golden runs' 12 steps with these shares, how far the weights moved, and the step."""
    import mindspore as ms

    network, step = build(Training(wd=spec.WEIGHT_DECAY, mixup=0.2))
    before = {p.name: p.asnumpy().astype(np.float64) for p in network.trainable_params()}
    losses = []
    for i, row in enumerate(lambdas):
        images, labels = spec.step_batch(i)
        drawn = np.tile(np.float32([0, 0, 0, 64, 64, 0]), (8, 1))
        drawn[:, KEPT] = drawn[:, SHARE] = row
        arrays = (images, labels.astype(np.int32), drawn)
        losses.append(float(step(*map(ms.Tensor, arrays)).asnumpy()))
    squares = [((p.asnumpy() - before[p.name]) ** 2).sum() for p in network.trainable_params()]
    return losses, float(np.sqrt(sum(squares))), step


def test_twelve_steps_with_mixup_equal_the_independent_ones(graph_mode):
    from src.train.step import SUMS

    golden = json.loads((ROOT / "tests" / "golden" / "mixing.json").read_text(encoding="utf-8"))
    lambdas = np.float32(golden["mixup_lambdas"])
    np.testing.assert_array_equal(lambdas, spec.mixup_lambdas())
    losses, moved, step = run(lambdas)
    assert losses[:5] == pytest.approx(golden["mixup"]["losses"][:5], abs=2e-5)
    assert losses == pytest.approx(golden["mixup"]["losses"], abs=5e-4)
    assert moved == pytest.approx(golden["mixup"]["moved_norms"]["ALL"], rel=1e-4)
    # Without mixing the losses are others, so that this test can fail.
    assert abs(np.subtract(losses, golden["base"]["losses"])).max() > 0.1
    # A mixed image has no right answer: nothing is counted, and the report will have no train.top1.
    assert dict(zip(SUMS, step.take_sums()))["counted"] == 0


@pytest.mark.deep
def test_a_resumed_run_mixes_as_an_unbroken_one_and_reports_no_training_accuracy(tmp_path):
    """Mixup and cutmix by turns, binary cross-entropy, on generated images: whole commands."""
    words = "--data-backend synthetic --num-examples 64 --num-classes 4 --num-layers 18 -b 8 -e 2 --lr 0.05"
    words += " --image-shape 3,32,32 --warmup-epochs 0 --mixup 0.2 --cutmix 1 --loss bce --seed 5"
    words += " --device-target CPU"

    def train(workspace: str, *more: str) -> dict:
        done = command("train.py", *words.split(), "--workspace", tmp_path / workspace, *more)
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / workspace / "report.json").read_text(encoding="utf-8"))["metrics"]

    unbroken = train("unbroken")
    train("stopped", "--run-epochs", "1")
    resumed = train("stopped")
    assert resumed["train.loss"] == unbroken["train.loss"]
    assert resumed["val.loss"] == unbroken["val.loss"]
    assert not {"train.top1", "train.top5"} & set(unbroken)
    assert {"val.top1", "val.top5"} <= set(unbroken)
