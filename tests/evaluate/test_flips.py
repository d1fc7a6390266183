"""Test-time flips: the mean of the logits of an image and its mirror image, in scoring and in prediction."""

from __future__ import annotations

import dataclasses

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from PIL import Image

from src.config import Config, Data, Training
from src.data.pipeline import ValPipeline
from src.data.sources import ClassLabel
from src.data.synthetic import SyntheticSource
from src.evaluate.flips import WithFlips
from src.evaluate.predict import predict
from src.evaluate.validate import Validation
from src.platform.distributed import World

pytestmark = pytest.mark.usefixtures("graph_mode")
CONFIG = Config(training=Training(batch_size=4), data=Data(image_shape=(3, 16, 16), data_val_resize=16))
FLIPS = dataclasses.replace(CONFIG, data=dataclasses.replace(CONFIG.data, test_flips=True))


class LeftHalf(nn.Cell):
    """Logits (0, mean of the left half): knows left from right."""

    def construct(self, images):
        left = images[:, :, :, :8].mean((1, 2, 3))
        return ms.ops.stack((left * 0, left), 1)


def test_logits_are_averaged_over_the_image_and_its_mirror_image():
    images = np.random.RandomState(0).standard_normal((3, 3, 16, 16)).astype(np.float32)
    logits = WithFlips(LeftHalf())(ms.Tensor(images)).asnumpy()
    np.testing.assert_allclose(logits[:, 1], images.mean((1, 2, 3)), rtol=1e-4, atol=1e-6)


def test_scoring_uses_flips_where_asked_for_and_leaves_the_mode_of_the_network():
    source, losses = SyntheticSource(10, 2, (16, 16)), []
    for config in (CONFIG, FLIPS):
        network = LeftHalf().set_train(True)
        losses.append(Validation(network, ValPipeline(config, source, World(0, 1)), World(0, 1)).run().loss)
        assert network.training
    pixels = np.concatenate(
        [images[labels >= 0] for images, labels in ValPipeline(CONFIG, source, World(0, 1))]
    )
    labels = np.array([source.row(i)[1] for i in range(10)])
    for loss, means in zip(losses, (pixels[..., :8].mean((1, 2, 3)), pixels.mean((1, 2, 3)))):
        logits = np.stack([0 * means, means], 1).astype(np.float64)
        expected = np.log(np.exp(logits).sum(1)) - logits[np.arange(10), labels]
        assert loss == pytest.approx(expected.mean(), rel=1e-4)
    assert losses[0] != losses[1]


def test_prediction_uses_flips_too(tmp_path):
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:, :8] = 255
    Image.fromarray(pixels).save(tmp_path / "x.png")
    classes = [ClassLabel("0", "0"), ClassLabel("1", "1")]
    found = {}
    for name, config in (("one", CONFIG), ("flips", FLIPS)):
        (prediction,) = predict(LeftHalf(), config, [str(tmp_path / "x.png")], classes)
        found[name] = {index: share for index, _, _, share in prediction.classes}[1]
    data = CONFIG.data
    bright, dark = (np.mean((level - np.array(data.rgb_mean)) / data.rgb_std) for level in (255, 0))
    assert found["one"] == pytest.approx(1 / (1 + np.exp(-bright)), rel=1e-4)
    assert found["flips"] == pytest.approx(1 / (1 + np.exp(-(bright + dark) / 2)), rel=1e-4)


def test_a_gif_is_classified_like_the_same_picture_as_png(tmp_path):
    pixels = np.random.RandomState(0).randint(0, 256, (16, 16, 3)).astype(np.uint8)
    picture = Image.fromarray(pixels).quantize(32)
    picture.save(tmp_path / "x.gif")
    picture.convert("RGB").save(tmp_path / "x.png")
    files = [str(tmp_path / name) for name in ("x.gif", "x.png")]
    gif, png = predict(LeftHalf(), CONFIG, files, [ClassLabel("0", "0"), ClassLabel("1", "1")])
    assert gif.classes == png.classes
