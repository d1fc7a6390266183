"""Normalised on the device or by the pipeline: the same bits, and the same training."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from src.config import Augmentation, Config, Data, Pipeline, Training
from src.data.synthetic import SyntheticSource
from src.platform.distributed import World
from src.train.schedule import Schedule, Segment
from tests.models.networks import build

HOST = Config(
    training=Training(batch_size=6, mixup=0.2, cutmix=1.0),
    data=Data(image_shape=(3, 32, 32), data_val_resize=32, rgb_mean=(123.68, 116.779, 103.939)),
)
DEVICE = dataclasses.replace(HOST, pipeline=Pipeline(normalize_on_device=True))


def batches(config: Config) -> list:
    from src.data.pipeline import TrainPipeline

    dataset = TrainPipeline(config, SyntheticSource(18, 10, (40, 48)), World(), 5).epoch(2)
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        (Data().rgb_mean, Data().rgb_std),
        ((127.5,) * 3, (127.5,) * 3),
        ((0.1, 200.3, 99.99), (1.0, 57.3, 0.7)),
    ],
)
def test_every_byte_becomes_what_the_pipeline_makes_of_it(graph_mode, mean, std):
    import mindspore as ms
    from mindspore.dataset import vision

    from src.train.normalizing import Normalize

    pixels = np.tile(np.arange(256, dtype=np.uint8).reshape(1, 16, 16), (3, 1, 1))
    asked = vision.Normalize(list(mean), list(std), is_hwc=False)(pixels)
    given = Normalize(mean, std)(ms.Tensor(pixels[np.newaxis])).asnumpy()[0]
    assert given.dtype == asked.dtype == np.float32
    assert given.tobytes() == asked.tobytes()


@pytest.mark.parametrize(
    "augmentation",
    [
        Augmentation(),
        Augmentation(brightness=0.4, max_random_h=20.0, max_random_s=40.0, pca_noise=0.1),
        Augmentation(max_random_rotate_angle=20.0, auto_augment="autoaugment"),
        Augmentation(auto_augment="randaugment"),
        Augmentation(auto_augment="trivialaugment"),
    ],
    ids=["crops", "colours", "autoaugment", "randaugment", "trivialaugment"],
)
def test_the_pipeline_hands_over_the_bytes_of_the_same_images(graph_mode, augmentation):
    import mindspore as ms

    from src.train.normalizing import normalization

    host, device = (dataclasses.replace(config, augmentation=augmentation) for config in (HOST, DEVICE))
    assert normalization(host) is None
    cell = normalization(device)
    assert cell is not None
    normalised, handed = batches(host), batches(device)
    assert len(normalised) == len(handed) == 3
    for (images, *others), (pixels, *same) in zip(normalised, handed):
        assert (images.dtype, pixels.dtype) == (np.float32, np.uint8)
        assert cell(ms.Tensor(pixels)).asnumpy().tobytes() == images.tobytes()
        assert all((a == b).all() for a, b in zip(others, same))


def test_training_is_the_same_bit_for_bit(graph_mode):
    """Mixup and cutmix too, which mix what is normalised."""
    import mindspore as ms

    from src.train.fit import training_step
    from src.train.normalizing import normalization

    ended = []
    for config in (HOST, DEVICE):
        ms.set_seed(1)
        network = build("resnetv15", 18, 10)
        rate = Schedule((Segment("constant", 0.0, 100.0, 0.05),))
        step = training_step(network, config.training, rate, 1, normalization(config)).set_train()
        losses = [step(*map(ms.Tensor, batch)).asnumpy() for batch in batches(config)]
        ended.append((losses, [p.asnumpy() for p in step.get_parameters()]))
    (losses, parameters), (same_losses, same_parameters) = ended
    assert (len(losses), len(parameters)) == (3, len(same_parameters))
    for one, other in zip(losses + parameters, same_losses + same_parameters):
        assert one.tobytes() == other.tobytes()
