"""Batches: every row once, the same pixels again, different augmentation by epoch and rank."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from src.config import Augmentation, Config, Data, Training
from src.data.manifest import read_manifest
from src.data.sources import ImageFolderSource, MindRecordSource
from src.data.synthetic import SyntheticSource
from src.errors import DataError
from src.platform.distributed import World

CONFIG = Config(
    training=Training(batch_size=8),
    data=Data(image_shape=(3, 32, 32), data_val_resize=32),
)


@pytest.fixture(scope="module")
def records(digits):
    return MindRecordSource(read_manifest(digits / "records" / "val"))


def train_batches(source, epoch=0, rank=0, size=1, seed=0, config=CONFIG):
    from src.data.pipeline import TrainPipeline

    pipeline = TrainPipeline(config, source, World(rank, size), seed)
    dataset = pipeline.epoch(epoch)
    batches = list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert len(batches) == pipeline.steps
    return batches


def test_batches_have_the_promised_form(records):
    for images, labels in train_batches(records):
        assert images.shape == (8, 3, 32, 32)
        assert images.dtype == np.float32
        assert labels.shape == (8,)
        assert labels.dtype == np.int32


def test_the_same_epoch_again_gives_the_same_pixels_and_another_epoch_others(records):
    first, again, other = (train_batches(records, epoch=e) for e in (1, 1, 2))
    assert all((a == b).all() and (x == y).all() for (a, x), (b, y) in zip(first, again))
    assert any((x != y).any() for (_, x), (_, y) in zip(first, other))


def test_ranks_crop_and_flip_differently(records):
    """One image only, so that the order cannot be what differs."""
    one = SyntheticSource(64, 1, (32, 32))
    one.row = lambda i: (np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3), np.array(0, np.int32))
    a, b = (train_batches(one, rank=rank, size=2)[0][0] for rank in (0, 1))
    assert (a != b).any()


def test_without_augmentation_training_sees_what_validation_sees(records):
    plain = Augmentation(random_resized_crop=False, random_mirror=False)
    config = dataclasses.replace(CONFIG, augmentation=plain)
    trained = {image.tobytes() for images, _ in train_batches(records, config=config) for image in images}
    assert trained == {image.tobytes() for images, _ in val_batches(records, config) for image in images}


def val_batches(source, config=CONFIG, rank=0, size=1):
    from src.data.pipeline import ValPipeline

    return list(ValPipeline(config, source, World(rank, size)))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_validation_serves_every_image_once_in_full_batches(records, size):
    config = dataclasses.replace(CONFIG, training=Training(batch_size=50))
    seen = []
    for rank in range(size):
        for images, labels in val_batches(records, config, rank, size):
            assert images.shape[0] == labels.shape[0] == 50
            seen += [image.tobytes() for image, label in zip(images, labels) if label >= 0]
    whole = [image.tobytes() for images, _ in val_batches(records) for image in images]
    assert sorted(seen) == sorted(whole)
    assert len(seen) == len(records) == 360


def test_a_rank_without_images_serves_none():
    assert val_batches(SyntheticSource(2, 2, (32, 32)), rank=3, size=4) == []


def test_normalisation_is_on_the_scale_of_0_to_255(digits, records):
    from PIL import Image

    images, _ = val_batches(records)[0]
    manifest_first = next(iter(sorted((digits / "images" / "val" / "0").iterdir())))
    pixels = np.asarray(Image.open(manifest_first).convert("RGB"), np.float64)
    data = CONFIG.data
    expected = ((pixels - data.rgb_mean) / data.rgb_std).transpose(2, 0, 1)
    every = np.concatenate([batch for batch, _ in val_batches(records)])
    assert np.abs(every - expected).max((1, 2, 3)).min() < 1e-5
    assert images.min() < 0 < images.max()


def test_labels_are_those_of_the_class_folders(digits, records):
    folders = ImageFolderSource.scan(digits / "images" / "val")
    from_folders = np.bincount(np.concatenate([y[y >= 0] for _, y in val_batches(folders)]), minlength=10)
    from_records = np.bincount(np.concatenate([y[y >= 0] for _, y in val_batches(records)]), minlength=10)
    assert from_folders.tolist() == from_records.tolist()
    assert [c.wnid for c in folders.classes] == [c.wnid for c in records.classes]


def test_class_folders_share_the_training_mapping(tmp_path, digits):
    image = next((digits / "images" / "val" / "0").iterdir()).read_bytes()
    for path in ("train/b/1.png", "train/a/1.png", "train/.hidden/1.png", "train/a/notes.txt", "val/b/1.PNG"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(image)
    train = ImageFolderSource.scan(tmp_path / "train")
    assert [c.wnid for c in train.classes] == ["a", "b"]
    val = ImageFolderSource.scan(tmp_path / "val", train.classes)
    assert [label for _, label in val.files] == [1]
    (tmp_path / "val" / "c").mkdir()
    with pytest.raises(DataError, match="val/c"):
        ImageFolderSource.scan(tmp_path / "val", train.classes)


def test_synthetic_labels_follow_from_the_image_in_both_splits():
    """The nearest class pattern tells the label, so that the set can be learned and validated."""
    train = SyntheticSource(200, 5, (32, 32))
    val = SyntheticSource(50, 5, (32, 32), first_row=200)
    means = np.stack(
        [np.mean([train.row(i)[0] for i in range(200) if train.row(i)[1] == k], 0) for k in range(5)]
    )
    rows = [val.row(i) for i in range(50)]
    nearest = [np.abs(means - image).mean((1, 2, 3)).argmin() for image, _ in rows]
    assert np.mean([k == label for k, (_, label) in zip(nearest, rows)]) > 0.9
    assert {int(label) for _, label in rows} == set(range(5))
    assert (train.row(3)[0] == train.row(3)[0]).all()


def test_images_have_the_size_of_the_epoch(records):
    """Progressive resizing; mixing boxes are drawn for the same size."""
    data = dataclasses.replace(CONFIG.data, image_shape=(3, 24, 24), image_size_steps=("32@1", "40@3"))
    config = dataclasses.replace(CONFIG, data=data, training=Training(batch_size=8, cutmix=1.0, num_epochs=5))
    sides = []
    for epoch in range(4):
        images, _, mixing = train_batches(records, epoch, config=config)[0]
        assert images.shape[2] == images.shape[3]
        assert mixing[:, 3:5].max() <= images.shape[2]
        sides.append(images.shape[2])
    assert sides == [24, 32, 32, 40]
    assert val_batches(records, config)[0][0].shape == (8, 3, 40, 40)


@pytest.mark.parametrize("backend", ["mindrecord", "imagefolder", "pixels"])
def test_every_backend_has_every_augmentation(backend, digits, records):
    everything = Augmentation(
        max_random_rotate_angle=10.0, max_random_shear_ratio=0.1, max_random_h=20.0, max_random_s=30.0,
        max_random_l=30.0, brightness=0.2, contrast=0.2, saturation=0.2, pca_noise=0.1,
        auto_augment="randaugment", random_erasing=0.5,
    )  # fmt: skip
    source = {
        "mindrecord": lambda: records,
        "imagefolder": lambda: ImageFolderSource.scan(digits / "images" / "val"),
        "pixels": lambda: SyntheticSource(64, 4, (32, 32)),
    }[backend]()
    config = dataclasses.replace(CONFIG, augmentation=everything)
    first, again, plain = (train_batches(source, config=c)[0][0] for c in (config, config, CONFIG))
    assert (first == again).all()
    assert (first != plain).mean() > 0.5
    assert np.isfinite(first).all()


@pytest.mark.parametrize(("images", "steps", "counted"), [(50, 2, 32), (30, 2, 30), (50, None, 50)])
def test_validation_of_few_steps_takes_the_first_images_of_the_set_once(images, steps, counted):
    from src.data.pipeline import ValPipeline

    training = dataclasses.replace(CONFIG.training, benchmark_iters=steps)
    config = dataclasses.replace(CONFIG, training=training)
    source = SyntheticSource(images, 10, (32, 32))
    ranks = [ValPipeline(config, source, World(rank, 2)) for rank in range(2)]
    assert [pipeline.num_images for pipeline in ranks] == [counted, counted]
    assert sorted(np.concatenate([pipeline.rows for pipeline in ranks])) == list(range(counted))
    batches = [sum(1 for _ in pipeline) for pipeline in ranks]
    assert batches == [steps or 4] * 2
    alone = dataclasses.replace(config, pipeline=dataclasses.replace(config.pipeline, separ_val=True))
    each = ValPipeline(alone, source, World(1, 2))
    wanted = images if steps is None else min(images, 8 * steps)
    assert (each.num_images, list(each.rows)) == (wanted, list(range(wanted)))
