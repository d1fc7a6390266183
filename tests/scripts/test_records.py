"""What looks after a finished set: verify, info and extract, as their users meet them."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys

import pytest
from converting import RECORDS, contents, converted, names_of, records, rows_of, write_plugin


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A training set of 18 images in 6 shards, and a validation set of 3."""
    folder = tmp_path_factory.mktemp("records")
    for split, images, shards in (("train", 6, 6), ("val", 1, 1)):
        options = ("--images", images, "--mindrecord_partitions", shards)
        converted("template", folder / split / f"{split}.mindrecord", *options)
    return folder


@pytest.fixture
def damaged(root, tmp_path):
    return shutil.copytree(root / "train", tmp_path / "train")


def change_manifest(folder, change):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), "utf-8")


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_verify_reads_all_sets_of_a_data_root(root):
    done = records("verify", root)
    assert done.returncode == 0, done.stderr
    assert "18 images of 3 classes in 6 shard(s) are as manifest.json says" in done.stdout
    assert f"{root / 'val'}: 3 images" in done.stdout


def test_verify_names_all_that_is_wrong_with_files(damaged):
    (damaged / "train.mindrecord0").unlink()
    (damaged / "train.mindrecord1").rename(damaged / "other.mindrecord1")
    cut = (damaged / "train.mindrecord2").read_bytes()
    (damaged / "train.mindrecord2").write_bytes(cut[:-20])
    flip(damaged / "train.mindrecord3", 70_000)
    flip(damaged / "train.mindrecord4.db", 9_000)
    shutil.copy(damaged / "train.mindrecord5", damaged / "train.mindrecord6")
    done = records("verify", damaged)
    assert done.returncode == 3
    for sentence in (
        "train.mindrecord0 is missing",
        "train.mindrecord1 is missing: other.mindrecord1 is this file under another name",
        f"train.mindrecord2 is cut: it has {len(cut) - 20:,} bytes",
        "train.mindrecord3 has changed",
        "train.mindrecord4.db has changed",
        "other.mindrecord1 is not in manifest.json",
        "train.mindrecord6 is not in manifest.json",
        "7 thing(s) wrong",
    ):
        assert sentence in done.stderr
    assert "train.mindrecord5" not in done.stderr


def test_verify_counts_the_labels_of_the_rows(damaged):
    def change(manifest):
        manifest["classes"][0]["num_images"] -= 1
        manifest["classes"][2]["num_images"] += 1

    change_manifest(damaged, change)
    done = records("verify", damaged)
    assert done.returncode == 3
    assert "class 0 (red) has 6 rows, and manifest.json says 5" in done.stderr
    assert "class 2 (blue) has 6 rows, and manifest.json says 7" in done.stderr


def test_verify_counts_the_rows(damaged):
    def change(manifest):
        manifest["shards"][1]["num_rows"] += 1
        manifest["num_images"] += 2

    change_manifest(damaged, change)
    done = records("verify", damaged)
    assert done.returncode == 3
    assert "train.mindrecord1 gives 3 rows, and manifest.json says 4" in done.stderr
    assert "manifest.json counts 20 images, its shards 19 rows" in done.stderr


@pytest.mark.parametrize("command", ["verify", "info"])
def test_what_is_no_set_is_refused_in_one_sentence(command, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set/manifest.json").write_text('{"schema_version": 1}', "utf-8")
    for given, words in (("set", "lacks 'split'"), ("nosuch", "is no folder")):
        done = records(command, tmp_path / given)
        assert done.returncode == 3
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_info_tells_classes_counts_and_refused_files(damaged):
    def change(manifest):
        manifest["classes"][2]["num_images"] = 40
        manifest["refused"] = [{"file": f"red/{i}.JPEG", "reason": "is empty"} for i in range(12)]
        manifest["tool"]["mindspore"] = None  # made where it is not installed

    change_manifest(damaged, change)
    done = records("info", damaged)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert any(line.startswith("18 images in 6 shard(s) of 3 to 3 rows") for line in lines)
    assert "fields (* indexed): file_name string, image bytes, label int32*" in lines
    assert "3 classes of 6 to 40 images, median 6" in lines
    assert any(line.startswith("6 - 10 images      2 classes  ####") for line in lines)
    assert any(line.startswith("36 - 40 images      1 classes  ####") for line in lines)
    assert "refused: 12" in lines
    assert any(" and no MindSpore; seed " in line for line in lines)
    assert "red/9.JPEG is empty" in lines
    assert "red/10.JPEG is empty" not in lines
    assert "... and 2 more (--all shows them)" in lines
    assert "red/11.JPEG is empty" in records("info", damaged, "--all").stdout


def table_of(folder):
    with open(folder / "labels.csv", encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_extract_by_class_gives_the_stored_bytes_and_their_labels(root, tmp_path):
    done = records("extract", root / "train", tmp_path / "out", "--class", "GREEN", "--number", 4)
    assert done.returncode == 0, done.stderr
    table = table_of(tmp_path / "out")
    rows = rows_of(root / "train")
    green = [index for index, row in enumerate(rows) if int(row["label"]) == 1][:4]
    assert [int(line["row"]) for line in table] == green
    for line in table:
        row = rows[int(line["row"])]
        assert (line["label"], line["wnid"], line["name"]) == ("1", "green", "green")
        assert line["file"] == str(row["file_name"])
        assert (tmp_path / "out" / line["file"]).read_bytes() == row["image"].tobytes()


def test_extract_by_row_keeps_their_order_and_suffixes_tell_the_format(tmp_path):
    body = (
        "image = Image.new('RGB', (9, 9))\nbuffer = io.BytesIO()\nimage.save(buffer, 'PNG')\n"
        "yield {'data': b'x', 'label': 0, 'image': buffer.getvalue(), 'file_name': '../../up/x.JPEG'}"
    )
    head = (
        "import io\nfrom PIL import Image\n"
        "mindrecord_schema.update(image={'type': 'bytes'}, file_name={'type': 'string'})"
    )
    converted(write_plugin(tmp_path / "p", body, head), tmp_path / "set/set.mindrecord")
    done = records("head", tmp_path / "set", tmp_path / "out", "--rows", "3,0:2")
    assert done.returncode == 0, done.stderr
    table = table_of(tmp_path / "out")
    assert [line["row"] for line in table] == ["3", "0", "1"]
    assert [line["file"] for line in table] == [
        "0/.._.._up_x.JPEG.png",
        "0/.._.._up_x.JPEG-row0.png",
        "0/.._.._up_x.JPEG-row1.png",
    ]


WITHOUT_MINDSPORE = (
    "import runpy, sys; sys.modules['mindspore'] = None; sys.path.insert(0, sys.argv[1]); "
    "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


@pytest.mark.parametrize("words", [("verify",), ("extract", "OUT"), ("reshard", "OUT", "--partitions", "2")])
def test_without_mindspore_reading_rows_back_is_refused_in_a_sentence(words, root, tmp_path):
    words = (words[0], root / "val", *(tmp_path / "out" if word == "OUT" else word for word in words[1:]))
    line = [sys.executable, "-c", WITHOUT_MINDSPORE, RECORDS.parent, RECORDS, *words]
    done = subprocess.run(list(map(str, line)), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert "this Python has no MindSpore" in sentence
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_enough_is_no_error(root):
    """records.py info DATA | head"""
    child = subprocess.Popen(
        [sys.executable, str(RECORDS), "info", str(root), str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child.stdout.close()
    assert child.communicate(timeout=60)[1] == b""
    assert child.returncode == 141


WRONG = {
    "row": (("--rows", "18"), "there is no row 18, the last is 17"),
    "words": (("--rows", "first"), "'first' is neither a row"),
    "class": (("--class", "pink"), "--class pink"),
}


@pytest.mark.parametrize("name", WRONG)
def test_extract_refuses_what_is_not_there(name, root, tmp_path):
    words, sentence = WRONG[name]
    done = records("extract", root / "train", tmp_path / "out", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "out").exists()


def test_extract_does_not_mix_with_what_is_there(root, tmp_path):
    (tmp_path / "labels.csv").write_text("mine", "utf-8")
    assert records("extract", root / "val", tmp_path).returncode == 2
    assert contents(tmp_path) == {"labels.csv": b"mine"}
    assert len(names_of(rows_of(root / "val"))) == 3
