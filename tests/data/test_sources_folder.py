"""Class folders with bad files among good ones: named, or gone on without."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from src.config import Augmentation, Config, Data, Training
from src.data.sources import ImageFolderSource
from src.data.splits import open_splits
from src.errors import DataError
from src.platform.distributed import World

CONFIG = Config(
    training=Training(batch_size=4),
    data=Data(image_shape=(3, 16, 16), data_val_resize=16, data_backend="imagefolder"),
    augmentation=Augmentation(random_resized_crop=False, random_mirror=False),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of four images each split; image k of a split has the grey level 20 k."""
    for split in ("train", "val"):
        for k in range(8):
            path = tmp_path / split / "ab"[k // 4] / f"{k}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (20, 20), (20 * k,) * 3).save(path, quality=95)
    return tmp_path


def spoil(path: Path) -> None:
    """Cut inside the header: MindSpore's own decoder would end the process."""
    path.write_bytes(path.read_bytes()[:300])


def configured(folder: Path, policy: str) -> Config:
    return dataclasses.replace(
        CONFIG, data=dataclasses.replace(CONFIG.data, data_root=folder, on_bad_image=policy)
    )


def train_batches(config: Config, source, epoch: int = 0) -> list:
    from src.data.pipeline import TrainPipeline

    dataset = TrainPipeline(config, source, World(0, 1), 0).epoch(epoch)
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


def test_a_bad_file_ends_the_run_by_name(folder):
    spoil(folder / "train" / "b" / "5.jpg")
    config = configured(folder, "error")
    splits = open_splits(config, train=True, val=False)
    with pytest.raises(RuntimeError):
        train_batches(config, splits.train)
    fault = splits.row_fault()
    assert isinstance(fault, DataError)
    assert str(folder / "train" / "b" / "5.jpg") in str(fault)
    assert "--on-bad-image skip" in str(fault)


def test_a_file_that_is_gone_is_named(folder):
    source = ImageFolderSource.scan(folder / "train")
    (folder / "train" / "a" / "0.jpg").unlink()
    with pytest.raises(DataError, match=r"a/0\.jpg cannot be read"):
        source.row(0)


def test_training_goes_on_with_the_next_good_file(folder, capfd):
    spoil(folder / "train" / "a" / "1.jpg")
    spoil(folder / "train" / "a" / "2.jpg")
    config = configured(folder, "skip")
    source = open_splits(config, train=True, val=False).train
    for epoch in (0, 1):
        batches = train_batches(config, source, epoch)
        images, labels = (np.concatenate(column) for column in zip(*batches))
        levels = np.rint((images * config.data.rgb_std[0] + config.data.rgb_mean[0])[:, 0, 8, 8] / 20)
        assert sorted(levels.astype(int).tolist()) == [0, 3, 3, 3, 4, 5, 6, 7]
        assert ((levels >= 4) == labels).all()
    told = capfd.readouterr().err
    assert told.count("--on-bad-image skip") == 2  # once for each file, not for each epoch
    assert str(folder / "train" / "a" / "2.jpg") in told


def test_validation_leaves_bad_files_out_of_the_count(folder, graph_mode):
    from mindspore import nn, ops

    from src.data.pipeline import ValPipeline
    from src.evaluate.validate import Validation

    class Sure(nn.Cell):
        """Class b for bright images, without a doubt."""

        def construct(self, images):
            bright = images.mean((1, 2, 3)) + (123.68 - 70) / 58
            return ops.stack((-bright, bright), 1) * 100

    spoil(folder / "val" / "a" / "1.jpg")
    spoil(folder / "val" / "b" / "7.jpg")
    config = configured(folder, "skip")
    source = open_splits(config, train=False, val=True).val
    validation = Validation(Sure(), ValPipeline(config, source, World(0, 1)), World(0, 1))
    for _ in range(2):
        score = validation.run()
        assert (score.num_samples, score.top1) == (6, 1.0)
    assert set(source.bad_rows) == {1, 7}


def test_nothing_but_bad_files_is_an_error(folder):
    source = ImageFolderSource.scan(folder / "train", on_bad_image="replace")
    for path in (folder / "train").rglob("*.jpg"):
        path.write_text("<html>")
    with pytest.raises(DataError, match="not one of 8 files"):
        source.row(3)


def test_a_folder_and_its_records_give_the_same_pixels_in_every_format(folder):
    """What MindSpore does not decode is re-encoded, in a folder as by the converter."""
    from scripts.convert_to_mindrecord.images import ImageRules, stored_image

    picture = Image.fromarray(np.random.RandomState(0).randint(0, 256, (20, 20, 3)).astype(np.uint8))
    picture.quantize(32).save(folder / "train" / "a" / "0.gif")
    picture.save(folder / "train" / "a" / "1.webp", quality=90)
    picture.convert("CMYK").save(folder / "train" / "a" / "2.tiff")
    source = ImageFolderSource.scan(folder / "train")
    for i, (path, _) in enumerate(source.files):
        stored = stored_image(Path(path).read_bytes(), ImageRules())
        assert source.row(i)[0].tobytes() == stored.data
    assert (
        sum(bool(stored_image(Path(path).read_bytes(), ImageRules()).repair) for path, _ in source.files) == 3
    )


def test_training_validation_and_prediction_see_the_same_pixels_in_every_format(folder):
    from src.data.pipeline import ValPipeline, val_batches

    picture = Image.fromarray(np.random.RandomState(0).randint(0, 256, (24, 20, 3)).astype(np.uint8))
    for split in ("train", "val"):
        picture.quantize(32).save(folder / split / "a" / "0.gif")
        picture.convert("CMYK").save(folder / split / "a" / "1.jpg")
        picture.convert("I;16").save(folder / split / "a" / "2.png")
    data = dataclasses.replace(CONFIG.data, data_root=folder, val_interpolation="pillow-bicubic",
                               interpolation="pillow-bicubic")  # fmt: skip
    config = dataclasses.replace(CONFIG, data=data, training=Training(batch_size=10))
    splits = open_splits(config, train=True, val=True)
    ((trained, _),) = train_batches(config, splits.train)
    ((validated, _),) = list(ValPipeline(config, splits.val, World(0, 1)))
    files = [path for path, _ in splits.val.files]
    alone = ImageFolderSource(
        Path(), splits.classes, [(file, 0) for file in files]
    )  # as predict.py opens them
    ((predicted, _),) = list(val_batches(config, alone, np.arange(10), 1, 10))
    assert (validated == predicted).all()
    assert {image.tobytes() for image in trained} == {image.tobytes() for image in validated}


@pytest.mark.slow
def test_the_command_ends_with_one_sentence_and_the_code_of_data(folder):
    from tests.support import command

    spoil(folder / "train" / "b" / "5.jpg")
    words = ["--data-backend", "imagefolder", "--data-root", folder, "--image-shape", "3,32,32"]
    words += ["--num-layers", 18, "-b", 4, "-e", 1, "--warmup-epochs", 0, "--workspace", folder / "run"]
    done = command("train.py", *words)
    assert done.returncode == 3
    sentence = [line for line in done.stderr.splitlines() if line.startswith("train.py:")]
    assert len(sentence) == 1
    assert "b/5.jpg" in sentence[0]
    assert "Traceback" not in done.stderr
    done = command("train.py", *words, "--on-bad-image", "skip", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("--on-bad-image skip: ") == 1
