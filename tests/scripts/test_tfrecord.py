"""TFRecord files of images become records without TensorFlow, and damage is told by file and position."""

from __future__ import annotations

import gzip
import io
import os
import struct

import numpy as np
import pytest
from converting import contents, converted, names_of, rows_of, run
from PIL import Image

NAMES = ["tench", "goldfish", "great white shark"]
WNIDS = ["n01440764", "n01443537", "n01484850"]
POLYNOMIAL = 0x82F63B78


def masked_crc(data):
    """CRC-32C bit by bit, rotated and shifted as TFRecord does."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (POLYNOMIAL if register & 1 else 0)
    register ^= 0xFFFFFFFF
    return ((register >> 15 | register << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def varint(number):
    number &= (1 << 64) - 1
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def message(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(value, packed=True):
    if isinstance(value, int):
        numbers = message(1, varint(value)) if packed else b"\x08" + varint(value)
        return message(3, numbers)
    if isinstance(value, float):
        return message(2, message(1, struct.pack("<f", value)))
    return message(1, message(1, value if isinstance(value, bytes) else value.encode()))


def example(packed=True, **features):
    entries = [
        message(1, message(1, name.replace("__", "/").encode()) + message(2, feature(value, packed)))
        for name, value in features.items()
    ]
    return message(1, b"".join(entries))


def picture(number):
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), (10 * number % 256, 0, 0)).save(buffer, "JPEG")
    return buffer.getvalue()


def imagenet_like(number, **changes):
    """As TensorFlow's ImageNet scripts write: labels from 1, other features in between."""
    label = number % 3
    features = {
        "image__height": 32,
        "image__encoded": picture(number),
        "image__object__bbox__xmin": 0.5,
        "image__class__text": NAMES[label],
        "image__class__synset": WNIDS[label],
        "image__class__label": label + 1,
        "image__filename": f"{WNIDS[label]}_{number}.JPEG",
        **changes,
    }
    return example(packed=number % 2 == 0, **{k: v for k, v in features.items() if v is not None})


def write(path, examples):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(framed(data) for data in examples))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """train-0000k-of-00003 with 4 records each; all 12 in one.tfrecord too."""
    folder = tmp_path_factory.mktemp("tf")
    for k in range(3):
        write(folder / f"train-{k:05d}-of-00003", [imagenet_like(n) for n in range(4 * k, 4 * k + 4)])
    write(folder / "one.tfrecord", [imagenet_like(n) for n in range(12)])
    return folder


def check_rows(rows):
    """Every row is the picture, label and name that its number says."""
    for row in rows:
        number = int(str(row["file_name"]).split("_")[1].split(".")[0])
        assert str(row["file_name"]) == f"{WNIDS[number % 3]}_{number}.JPEG"
        assert row["image"].tobytes() == picture(number)
        assert row["label"] == number % 3


def number_in(name):
    return int(name.split("_")[1].split(".")[0])


def test_rows_are_shuffled_across_files_and_shards_by_the_seed(source, tmp_path):
    """The order depends on the seed alone, not on how the records lie in files."""
    options = ("--label_offset", 1, "--mindrecord_partitions", 3, "--mindrecord_seed", 5)
    manifest = converted(
        "tfrecord", tmp_path / "1/train/t.mindrecord", "--tfrecord", source / "train-*", *options
    )
    assert [shard["num_rows"] for shard in manifest["shards"]] == [4, 4, 4], "all records are about as long"
    assert [(c["wnid"], c["name"], c["num_images"]) for c in manifest["classes"]] == [
        (wnid, name, 4) for wnid, name in zip(WNIDS, NAMES)
    ]
    rows = rows_of(tmp_path / "1/train")
    check_rows(rows)
    order = [number_in(name) for name in names_of(rows)]
    assert order == np.random.RandomState(5).permutation(12).tolist()
    converted(
        "tfrecord", tmp_path / "2/train/t.mindrecord", "--tfrecord", source / "one.tfrecord", *options,
        "--mindrecord_workers", 2,
    )  # fmt: skip
    assert names_of(rows_of(tmp_path / "2/train")) == names_of(rows)


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(source, tmp_path):
    options = ("--tfrecord", source / "train-*", "--label_offset", 1, "--mindrecord_partitions", 3)
    for workers in (1, 3):
        converted("tfrecord", tmp_path / f"{workers}/train/t.mindrecord", *options, "--workers", workers)
    assert contents(tmp_path / "1/train") == contents(tmp_path / "3/train")


def test_large_records_have_shards_of_fewer_rows(tmp_path):
    write(tmp_path / "a.tfrecord", [imagenet_like(n, padding=60_000 * (n == 3) * "x") for n in range(9)])
    options = ("--tfrecord", tmp_path / "a.tfrecord", "--label_offset", 1, "--mindrecord_partitions", 2)
    manifest = converted("tfrecord", tmp_path / "out/t.mindrecord", *options)
    at = np.random.RandomState(0).permutation(9).tolist().index(3)
    large = next(
        shard
        for shard, first in zip(manifest["shards"], (0, manifest["shards"][0]["num_rows"]))
        if first <= at < first + shard["num_rows"]
    )
    assert large["num_rows"] == min(shard["num_rows"] for shard in manifest["shards"]) < 4


def test_in_the_order_of_the_files_each_is_a_task(source, tmp_path):
    options = ("--tfrecord", source / "train-*", "--label_offset", 1, "--mindrecord_partitions", 3)
    manifest = converted("tfrecord", tmp_path / "train/t.mindrecord", *options, "--tfrecord-order", "files")
    assert [shard["num_rows"] for shard in manifest["shards"]] == [4, 4, 4]
    rows = rows_of(tmp_path / "train")
    assert [number_in(name) for name in names_of(rows)] == list(range(12))
    check_rows(rows)


def test_in_the_order_of_the_files_one_is_n_tasks(source, tmp_path):
    options = ("--tfrecord", source / "one.tfrecord", "--label-offset", 1, "--mindrecord_partitions", 5)
    order = ("--tfrecord-order", "files", "--tfrecord-tasks", 5)
    manifest = converted("tfrecord", tmp_path / "train/t.mindrecord", *options, *order)
    assert [shard["num_rows"] for shard in manifest["shards"]] == [3, 3, 2, 2, 2]
    rows = rows_of(tmp_path / "train")
    assert [number_in(name) for name in names_of(rows)] == [n for k in range(5) for n in range(k, 12, 5)]
    check_rows(rows)


def test_tasks_that_would_count_for_nothing_are_refused(source, tmp_path):
    for words in (("one.tfrecord",), ("train-*", "--tfrecord_order", "files")):
        options = ("--tfrecord", source / words[0], *words[1:], "--tfrecord_tasks", 5)
        done = run("tfrecord", tmp_path / "out/t.mindrecord", *options)
        assert done.returncode == 2
        assert "--tfrecord_tasks 5 is for a single file with --tfrecord_order files" in done.stderr


def test_the_index_takes_16_bytes_for_each_record_and_finds_it(source):
    from scripts.convert_to_mindrecord.tfrecord.source import Source

    one = Source([str(path) for path in sorted(source.glob("train-*"))])
    expected = list(one.read())
    index = one.index
    assert index.positions.itemsize + index.lengths.itemsize == 16
    assert [index.read(number) for number in range(12)] == expected
    assert [index.place(number) for number in range(12)] == [record.place for record in expected]
    skipping = Source(one.files)
    assert [record.data for record in skipping.read(skip=True)] == [b""] * 12
    assert (skipping.index.positions, skipping.index.lengths) == (index.positions, index.lengths)


def test_a_file_that_became_shorter_since_is_told(tmp_path):
    from scripts.convert_to_mindrecord.tfrecord.source import Source

    path = tmp_path / "a.tfrecord"
    write(path, [imagenet_like(0), imagenet_like(1)])
    one = Source([str(path)])
    list(one.read())
    path.write_bytes(path.read_bytes()[:-100])
    assert one.index.read(0).is_whole()
    with pytest.raises(OSError, match=r"only \d+ of its \d+ bytes are still in the file"):
        one.index.read(1)


def test_other_names_and_labels_from_0_as_other_data_sets_have_them(tmp_path):
    write(tmp_path / "a.tfrecord", [example(image=picture(n), label=n % 2) for n in range(4)])
    manifest = converted(
        "tfrecord", tmp_path / "out/t.mindrecord", "--tfrecord", tmp_path / "a.tfrecord",
        "--image-feature", "image", "--label-feature", "label", "--mindrecord_partitions", 1,
    )  # fmt: skip
    assert [(c["wnid"], c["num_images"]) for c in manifest["classes"]] == [("0", 2), ("1", 2)]
    rows = rows_of(tmp_path / "out")
    assert sorted(names_of(rows)) == [f"a.tfrecord:{n}" for n in range(4)]
    assert {(int(str(row["file_name"])[-1]) % 2) == row["label"] for row in rows} == {True}


def test_validation_takes_the_classes_of_training(source, tmp_path):
    converted(
        "tfrecord",
        tmp_path / "train/t.mindrecord",
        "--tfrecord",
        source / "one.tfrecord",
        "--label_offset",
        1,
    )
    write(tmp_path / "val.tfrecord", [imagenet_like(1)])
    options = ("--label_offset", 1, "--classes_from", tmp_path / "train/manifest.json")
    manifest = converted(
        "tfrecord", tmp_path / "val/v.mindrecord", "--tfrecord", tmp_path / "val.tfrecord", *options
    )
    assert [(c["wnid"], c["num_images"]) for c in manifest["classes"]] == list(zip(WNIDS, (0, 1, 0)))
    write(tmp_path / "val.tfrecord", [imagenet_like(1, image__class__label=4)])
    done = run("tfrecord", tmp_path / "other/v.mindrecord", "--tfrecord", tmp_path / "val.tfrecord", *options)
    assert done.returncode == 3
    assert "label 3 is outside 0..2" in done.stderr


def refused(tmp_path, data, *options, told, code=3):
    """Convert a file of these bytes; the message must hold all of `told`."""
    (tmp_path / "x.tfrecord").write_bytes(data)
    done = run("tfrecord", tmp_path / "out/t.mindrecord", "--tfrecord", tmp_path / "x.tfrecord", *options)
    assert done.returncode == code, done.stderr
    assert [part for part in told if part not in done.stderr] == [], done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda one, all_: flipped(all_, len(one) + 500), "the checksum of the record's data does not match"),
        (lambda one, all_: flipped(all_, len(one) + 1), "has a damaged length"),
        (lambda one, all_: all_[: len(one) + 500], "is cut off by the end of the file"),
        (lambda one, all_: all_[: len(one) + 5], "is cut off by the end of the file"),
        (lambda one, all_: one + framed(b"\x0a\x05nonsense"), "is no tf.train.Example"),
        (lambda one, all_: one + framed(b""), "without features"),
        (lambda one, all_: one + framed(imagenet_like(1, image__encoded=None)), "no feature 'image/encoded'"),
        (lambda one, all_: one + framed(imagenet_like(1, image__class__label=None)), "--label_feature"),
        (lambda one, all_: one + framed(imagenet_like(1, image__class__label="3")), "not one whole number"),
        (lambda one, all_: one + framed(imagenet_like(1, image__encoded=3)), "is not one string of bytes"),
        (lambda one, all_: one + framed(imagenet_like(1, image__class__label=0)), "label -1"),
        (lambda one, all_: one + framed(imagenet_like(3, image__class__synset="n2")), "'n2' here and 'n014"),
    ],
)  # fmt: skip
def test_damage_is_told_by_file_and_position(damage, told, tmp_path):
    one = framed(imagenet_like(0))
    data = damage(one, one + framed(imagenet_like(1)))
    place = f"x.tfrecord: record 1 (at byte {len(one):,})"
    refused(tmp_path, data, "--label_offset", 1, told=[place, told])


def test_a_record_with_damaged_data_can_be_left_out(tmp_path):
    """Wherever the damage is: in the image, in the label, in the message's own lengths."""
    records = [framed(imagenet_like(n)) for n in range(3)]
    data = imagenet_like(1)
    label = data.index(b"class/label") + 16
    assert data[label] == 2
    for at in (500, label, 1):
        damaged = flipped(records[1], 12 + at)
        (tmp_path / "x.tfrecord").write_bytes(records[0] + damaged + records[2])
        out = tmp_path / f"out{at}"
        manifest = converted(
            "tfrecord", out / "t.mindrecord", "--tfrecord", tmp_path / "x.tfrecord", "--label_offset", 1,
            "--on_bad_image", "skip",
        )  # fmt: skip
        assert manifest["num_images"] == 2
        assert [item["file"].split("tfrecord: ")[1] for item in manifest["refused"]] == [
            f"record 1 (at byte {len(records[0]):,})"
        ]
        assert [c["wnid"] for c in manifest["classes"]] == [WNIDS[0], "1", WNIDS[2]]
        check_rows(rows_of(out))


def test_labels_from_1_are_not_taken_for_labels_from_0(tmp_path):
    data = framed(imagenet_like(0)) + framed(imagenet_like(1))
    refused(tmp_path, data, told=["labels run from 1 to 2", "--label_offset 1"])
    (tmp_path / "x.tfrecord").write_bytes(data)
    options = ("--tfrecord", tmp_path / "x.tfrecord", "--label_offset", 0)
    manifest = converted("tfrecord", tmp_path / "out/t.mindrecord", *options)
    assert [c["num_images"] for c in manifest["classes"]] == [0, 1, 1]


def test_what_is_no_tfrecord_file_is_told(tmp_path):
    refused(tmp_path, gzip.compress(framed(imagenet_like(0))), told=["x.tfrecord is compressed", "gunzip"])
    refused(tmp_path, b"<html><body>404 not found</body></html>", told=["is this a TFRecord file?"])
    refused(tmp_path, b"", told=["not one whole record"])
    refused(tmp_path, b"", "--tfrecord_tasks", 0, told=["--tfrecord_tasks 0"], code=2)
    (tmp_path / "set").mkdir()
    (tmp_path / "set/manifest.json").write_text('{"classes": []}', "utf-8")
    options = ("--classes_from", tmp_path / "set/manifest.json")
    refused(tmp_path, b"", *options, told=["there is no record in it"])
    done = run("tfrecord", tmp_path / "out/t.mindrecord", "--tfrecord", tmp_path / "no*.tfrecord")
    assert (done.returncode, "no*.tfrecord: no file there" in done.stderr) == (3, True)


def test_checksums_are_right_for_every_length():
    from scripts.convert_to_mindrecord.tfrecord.records import crc32c, masked

    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    draw = np.random.RandomState(0)
    for length in (0, 1, 4, 511, 512, 513, 1024, 3000):
        data = draw.bytes(length)
        assert masked(crc32c(data)) == masked_crc(data), length


def test_a_file_that_was_written_again_is_another_source(source, tmp_path):
    """So that a conversion that was killed does not go on with other data."""
    from scripts.convert_to_mindrecord.tfrecord import mr_api

    def state(*files):
        mr_api.FOUND = mr_api.Source([str(file) for file in files])
        return mr_api.mindrecord_fingerprint()

    one, other = (tmp_path / name for name in ("a.tfrecord", "b.tfrecord"))
    write(one, [imagenet_like(0)])
    write(other, [imagenet_like(0)])
    before = state(one, other)
    assert state(one, other) == before
    assert state(one) != before
    os.utime(one, (1, 1))
    assert state(one, other) != before
