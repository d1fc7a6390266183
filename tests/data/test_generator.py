"""A user's own Python source: the same training as from any other backend, and mistakes told by file."""

from __future__ import annotations

import csv
import dataclasses
import json
import re

import numpy as np
import pytest
from PIL import Image

from src import cli
from src.config import Config, Data, Training
from src.data.sources import ImageFolderSource
from src.data.splits import open_splits
from src.errors import DataError, OptionError
from src.platform.distributed import World
from tests.support import ROOT, command

EXAMPLE = ROOT / "examples" / "boxes.py"
TINY = ["--image-shape", "3,32,32", "--num-layers", "18", "-b", "8", "-e", "1", "--warmup-epochs", "0"]

# Reads the class folders that every other backend can read too.
FOLDERS = """
import pathlib
import numpy as np
from PIL import Image

def open_split(split, folder):
    assert split == folder.name
    return Rows(folder)

class Rows:
    def __init__(self, folder):
        self.classes = sorted(p.name for p in folder.iterdir())
        self.files = sorted(folder.glob("*/*"))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, i):
        return {image}, self.classes.index(self.files[i].parent.name)
"""
KINDS = {
    "bytes": "self.files[i].read_bytes()",
    "array of bytes": "np.fromfile(self.files[i], np.uint8)",
    "pixels": 'np.asarray(Image.open(self.files[i]).convert("RGB"))',
}


GOOD = """
import numpy as np
PIXELS = np.zeros((40, 40, 3), np.uint8)
class Rows:
    classes = ["a", "b"]
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return PIXELS, i % 2
def open_split(split, folder):
    return Rows()
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """train/ (24 images) and val/ (9) of three classes, of many sizes."""
    root = tmp_path_factory.mktemp("folders")
    draw = np.random.RandomState(0)
    for split, count in (("train", 8), ("val", 3)):
        for name in "abc":
            (root / split / name).mkdir(parents=True)
            for k in range(count):
                pixels = draw.randint(0, 256, (draw.randint(30, 60), draw.randint(30, 60), 3), np.uint8)
                Image.fromarray(pixels).save(root / split / name / f"{k}.png")
    return root


def config(folders, file, backend="generator", **data):
    source = file if backend == "generator" else None
    given = Data(data_root=folders, data_backend=backend, data_source=source, image_shape=(3, 32, 32), **data)
    return Config(training=Training(batch_size=4), data=given)


@pytest.fixture
def write(tmp_path):
    def write(text):
        (tmp_path / "own.py").write_text(text, "utf-8")
        return tmp_path / "own.py"

    return write


def batches(cfg, train=True, rank=0, size=1, epoch=1):
    from src.data.pipeline import TrainPipeline, ValPipeline

    splits = open_splits(cfg, train=train, val=not train)
    if not train:
        return list(ValPipeline(cfg, splits.val, World(rank, size)))
    dataset = TrainPipeline(cfg, splits.train, World(rank, size), seed=3).epoch(epoch)
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


def same(one, other):
    pairs = zip(one, other)
    return len(one) == len(other) and all((a == b).all() and (x == y).all() for (a, x), (b, y) in pairs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [0, 1])
def test_order_crops_and_labels_are_those_of_class_folders(kind, rank, folders, write):
    """Pixels are cropped after decoding, so they equal what the unfused pipeline makes of files."""
    own = config(folders, write(FOLDERS.replace("{image}", KINDS[kind])))
    plain = config(folders, None, "imagefolder")
    assert same(batches(own, False, rank, 2), batches(plain, False, rank, 2))
    unfused = {"pipeline": dataclasses.replace(own.pipeline, fuse_decoder=kind != "pixels")}
    own, plain = (dataclasses.replace(one, **unfused) for one in (own, plain))
    assert same(batches(own, True, rank, 2), batches(plain, True, rank, 2))


def test_several_threads_keep_the_order(folders, write):
    slow = "(__import__('time').sleep(0.02 * (i % 3)), " + KINDS["bytes"] + ")[1]"
    own = config(folders, write(FOLDERS.replace("{image}", slow)))
    two = dataclasses.replace(own, pipeline=dataclasses.replace(own.pipeline, data_threads=2))
    source = open_splits(two, train=True, val=False).train
    rows = np.random.RandomState(1).permutation(len(source))
    read = source.open(rows, workers=2).create_tuple_iterator(num_epochs=1, output_numpy=True)
    expected = ImageFolderSource.scan(folders / "train")
    for (image, label), row in zip(read, rows):
        data, right = expected.row(row)
        assert image.tobytes() == data.tobytes()
        assert label == right


def test_classes_may_be_pairs_and_are_in_the_report_with_the_files_digest(folders, write):
    text = GOOD.replace('["a", "b"]', '[("a", "A"), ("b", "B")]')
    splits = open_splits(config(folders, write(text)), train=True, val=True)
    assert [tuple(label) for label in splits.classes] == [("a", "A"), ("b", "B")]
    identity = splits.identity()
    assert (identity["train"]["num_images"], identity["val"]["num_images"]) == (4, 4)
    assert re.fullmatch("[0-9a-f]{64}", identity["val"]["source_sha256"])
    assert json.dumps(identity)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def open_splits(split, folder): pass", "no function open_split"),
        ("open_split = 3", "no function open_split"),
        ("import os\n\ndef open_split(split folder): pass", r"SyntaxError.*line 3"),
        ("\nimport no_such_module", r"No module named 'no_such_module' \(line 2\)"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
)
def test_a_file_that_cannot_be_run_is_a_wrong_option(text, told, folders, write):
    with pytest.raises(OptionError, match=rf"own\.py.*{told}"):
        open_splits(config(folders, write(text)), train=True, val=False)


def test_a_missing_file_and_one_that_is_no_python_are_wrong_options(folders, tmp_path):
    (tmp_path / "own.txt").write_text("")
    for name, told in (("nowhere.py", "no such file"), ("own.txt", "a Python file")):
        with pytest.raises(OptionError, match=told):
            open_splits(config(folders, tmp_path / name), train=True, val=False)


@pytest.mark.parametrize(
    ("good", "bad", "told"),
    [
        ("return Rows()", "return 1 / 0", r"ZeroDivisionError: division by zero \(line 11\)"),
        ("return Rows()", "pass", r"classes.*AttributeError"),
        ('["a", "b"]', '"ab"[:0]', "`classes` is empty"),
        ('["a", "b"]', '["a", 3]', r"`classes` holds int '3'"),
        ('["a", "b"]', '["a", ("b", "B", "BB")]', "`classes` holds a tuple of 3"),
        ('["a", "b"]', '["a", "a"]', "'a' more than once"),
        ('["a", "b"]', "7", r"list `classes`.*TypeError"),
        ("return 4", "return 0", "has no rows"),
        ("return 4", "return 'x'", r"no usable len\(\)"),
        ("return PIXELS, i % 2", "return PIXELS", r"row 0 is an array \(40, 40, 3\) uint8, not \("),
        ("return PIXELS, i % 2", "return {}['x'], 1", r"row 0 failed: KeyError: 'x' \(line 9\)"),
        ("PIXELS, i", "PIXELS[0], i", r"its image is an array \(40, 3\) uint8; expected"),
        ("PIXELS, i", "PIXELS / 255, i", r"an array \(40, 40, 3\) float64"),
        ("PIXELS, i", "PIXELS[..., :1], i", r"an array \(40, 40, 1\)"),
        ("PIXELS, i", "PIXELS[:0], i", r"an array \(0, 40, 3\)"),
        ("PIXELS, i", "'a.png', i", r"its image is str 'a\.png'"),
        ("PIXELS, i", "b'<html>', i", "row 0: its image is not an image"),
        ("i % 2", "2", r"row 0: label 2 is outside 0\.\.1"),
        ("i % 2", "-1", "label -1 is outside"),
        ("i % 2", "0.5", r"its label is float '0\.5', not a whole number"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_before_training(good, bad, told, folders, write):
    assert GOOD.count(good) == 1
    file = write(GOOD.replace(good, bad))
    with pytest.raises(DataError, match=rf"^{re.escape(str(file))}: open_split\('train'.*{told}") as caught:
        open_splits(config(folders, file), train=True, val=False)
    assert "\n" not in str(caught.value)


def test_labels_may_be_any_kind_of_whole_number(folders, write):
    for kind in ("np.int64(i % 2)", "np.array(i % 2)", "np.uint8(i % 2)"):
        splits = open_splits(config(folders, write(GOOD.replace("i % 2", kind))), train=True, val=False)
        assert splits.train.row(3)[1] == 1


def test_splits_with_other_classes_are_refused(folders, write):
    text = GOOD.replace("return Rows()", "rows = Rows()\n    rows.classes = ['a', split]\n    return rows")
    with pytest.raises(DataError, match="same `classes`"):
        open_splits(config(folders, write(text)), train=True, val=True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--data-backend generator", "needs --data-source FILE.py"),
        ("--data-source own.py", "--data-source has no effect with --data-backend mindrecord"),
    ],
)
def test_the_two_options_belong_together(words, told):
    with pytest.raises(OptionError, match=told):
        cli.parse(words.split(), "train.py")


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("return PIXELS, i % 2 if i < 3 else 2", "row 3: label 2 is outside"),
        ("return (PIXELS if i < 3 else b'x'), 1", "row 3 holds an image file's bytes, and row 0 pixels"),
        ("return PIXELS, [0, 0, 1][i]", r"row 3 failed: IndexError: list index out of range (line 9)"),
    ],
)  # fmt: skip
def test_a_bad_row_in_the_middle_ends_in_one_sentence(bad, told, tmp_path, write):
    file = write(GOOD.replace("return PIXELS, i % 2", bad))
    words = ["--data-backend", "generator", "--data-source", file, *TINY, "-b", 1, "--image-shape", "3,64,64"]
    done = command("train.py", *words, "--test-io", "--workspace", tmp_path / "w")
    assert done.returncode == 3, done.stderr
    assert f"own.py: open_split('train'): {told}" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    report = json.loads((tmp_path / "w" / "report.json").read_text("utf-8"))
    assert report["status"] == "failed"
    assert told in report["status_reason"]


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    """What examples/boxes.py reads: a red and a blue square on one grey photograph each row."""
    root = tmp_path_factory.mktemp("boxes")
    (root / "classes.txt").write_text("red\nblue\n")
    for split, count in (("train", 16), ("val", 5)):
        (root / split).mkdir()
        table = [["file", "left", "top", "right", "bottom", "class"]]
        for k in range(count):
            name, left = ("red", "blue")[k % 2], 10 + k
            photo = Image.new("RGB", (120, 90), (128, 128, 128))
            photo.paste(name, (left, 20, left + 40, 60))
            photo.save(root / split / f"{k}.png")
            table.append([f"{k}.png", left, 20, left + 40, 60, name])
        with open(root / split / "boxes.csv", "w", newline="") as file:
            csv.writer(file).writerows(table)
    return root


def test_the_example_cuts_its_boxes_out(boxes):
    splits = open_splits(config(boxes, EXAMPLE), train=True, val=True)
    assert (len(splits.train), len(splits.val)) == (16, 5)
    for k in range(16):
        image, label = splits.train.row(k)
        assert label == k % 2
        assert image.shape == (48, 48, 3)  # 10 % more on each side
        assert image[24, 24].tolist() == [[255, 0, 0], [0, 0, 255]][label]
        assert image[0, 0].tolist() == [128, 128, 128]


@pytest.mark.slow
def test_the_example_trains_and_is_scored_again_as_it_says(boxes, tmp_path):
    own = ["--data-backend", "generator", "--data-source", EXAMPLE, "--data-root", boxes]
    done = command("runner", *TINY, "--seed", 1, *own, "--workspace", tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    assert report["num_samples"] == 5
    assert report["dataset"]["val"]["source"].endswith("boxes.py")
    again = re.search(r"score it again: +python (eval\.py .*)", done.stdout).group(1).split()
    assert command(*again, "--workspace", tmp_path / "score").returncode == 0
    score = json.loads((tmp_path / "score" / "report.json").read_text("utf-8"))
    assert score["metrics"]["val.top1"][0] == report["metrics"]["val.top1"][0]


@pytest.mark.deep
def test_two_devices_count_every_row_once(boxes, tmp_path):
    words = ["-n", 2, *TINY, "-b", 4, "--seed", 1, "--data-threads", 2, "--data-backend", "generator"]
    words += ["--data-source", EXAMPLE, "--data-root", boxes, "--workspace", tmp_path]
    done = command("runner", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["num_samples"] == 5


def test_the_page_shows_a_source_that_works(tmp_path, folders):
    """The Python block of docs/own-data.md, on arrays."""
    page = (ROOT / "docs" / "own-data.md").read_text("utf-8")
    (tmp_path / "arrays.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1))
    for split, count in (("train", 8), ("val", 2)):
        (tmp_path / split).mkdir()
        np.save(tmp_path / split / "images.npy", np.zeros((count, 32, 32, 3), np.uint8))
        np.save(tmp_path / split / "labels.npy", np.arange(count) % 2)
    splits = open_splits(config(tmp_path, tmp_path / "arrays.py"), train=True, val=True)
    assert (len(splits.train), len(splits.val)) == (8, 2)
    assert splits.val.row(1)[1] == 1


FILES = """
import io
from PIL import Image
def saved(form):
    buffer = io.BytesIO()
    Image.new("RGB", (40, 40), (200, 30, 30)).save(buffer, form)
    return buffer.getvalue()
FILES = [saved("JPEG"), saved("GIF"), saved("JPEG")[:300], saved("PNG")]
"""


def test_image_files_are_checked_and_made_readable_as_those_of_a_folder(folders, write):
    """The third would end the process inside MindSpore's decoder, which cannot read the second at all."""
    file = write(FILES + GOOD.replace("return PIXELS, i % 2", "return FILES[i], i % 2"))
    train = open_splits(config(folders, file), train=True, val=False).train
    assert train.row(0)[0][:2].tobytes() == b"\xff\xd8"
    assert train.row(1)[0][:4].tobytes() == b"\x89PNG"
    with pytest.raises(DataError, match="row 2: its image cannot be decoded"):
        train.row(2)
    assert "row 2" in str(train.row_fault)
