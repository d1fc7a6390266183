"""The reader of manifest.json: what it gives, and what it refuses, each in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from src.data.manifest import read_manifest
from src.errors import DataError


def content():
    shards = [("train.mindrecord0", 3, b"abcde"), ("train.mindrecord1", 2, b"fgh")]
    return {
        "schema_version": 1,
        "split": "train",
        "num_images": 5,
        "classes": [
            {"index": 1, "wnid": "n2", "name": "goldfish", "num_images": 4},
            {"index": 0, "wnid": "n1", "name": "tench", "num_images": 1},
        ],
        "shards": [
            {"file": file, "num_rows": rows, "num_bytes": len(data), "sha256": file, "index_num_bytes": 2}
            for file, rows, data in shards
        ],
        "seed": 0,
        "options": {"mindrecord_partitions": 2},
        "tool": {"name": "convert_to_mindrecord", "version": "1.0"},
        "refused": [],
        "repaired": [],
    }


def write(folder, **changes):
    folder.mkdir(parents=True, exist_ok=True)
    for index, data in enumerate((b"abcde", b"fgh")):
        (folder / f"train.mindrecord{index}").write_bytes(data)
        (folder / f"train.mindrecord{index}.db").write_bytes(b"db")
    (folder / "manifest.json").write_text(json.dumps({**content(), **changes}), "utf-8")
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "root" / "train")


def refusal(folder):
    with pytest.raises(DataError) as caught:
        read_manifest(folder)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_reads_what_was_written(folder):
    manifest = read_manifest(folder)
    assert (manifest.split, manifest.num_images, manifest.num_classes, manifest.seed) == ("train", 5, 2, 0)
    assert manifest.class_names == ["tench", "goldfish"]
    assert manifest.classes[1].num_images == 4
    assert manifest.files == [str(folder / "train.mindrecord0"), str(folder / "train.mindrecord1")]
    assert [shard.num_rows for shard in manifest.shards] == [3, 2]


def test_paths_are_absolute_wherever_one_stands(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert read_manifest("train").files[0] == str(folder / "train.mindrecord0")


def test_stray_shards_are_not_read(folder):
    (folder / "train.mindrecord2").write_bytes(b"stale")
    assert len(read_manifest(folder).files) == 2


def test_identity_follows_the_records_and_not_the_place(folder, tmp_path):
    one = read_manifest(folder).identity()
    other = read_manifest(write(tmp_path / "moved")).identity()
    assert one["sha256"] == other["sha256"]
    assert one["path"] != other["path"]
    shards = content()["shards"]
    shards[0]["sha256"] = "other"
    assert read_manifest(write(tmp_path / "changed", shards=shards)).identity()["sha256"] != one["sha256"]
    json.dumps(one, allow_nan=False)


def test_a_missing_folder_is_refused(tmp_path):
    assert str(tmp_path / "nosuch") in refusal(tmp_path / "nosuch")


@pytest.mark.parametrize("given", ["root", ".", "root/train/sub", "root/trian"])
def test_a_folder_of_the_wrong_level_is_refused_with_the_right_one(given, folder, tmp_path):
    if given.endswith("sub"):
        (folder / "sub").mkdir()
    sentence = refusal(tmp_path / given)
    assert f"did you mean {folder}?" in sentence


def test_a_folder_of_images_gets_the_command_that_converts(tmp_path):
    (tmp_path / "images/train/a").mkdir(parents=True)
    assert "prepare_dataset.py" in refusal(tmp_path / "images")


@pytest.mark.parametrize("name", ["train.mindrecord1", "train.mindrecord1.db"])
def test_a_missing_renamed_or_truncated_file_is_named(name, folder):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1])
    assert f"{name} has {len(data) - 1} bytes" in refusal(folder)
    (folder / name).rename(folder / "renamed")
    assert f"{name}, named in manifest.json, is missing" in refusal(folder)


def test_broken_json_is_refused(folder):
    text = (folder / "manifest.json").read_text("utf-8")
    (folder / "manifest.json").write_text(text[: len(text) // 2], "utf-8")
    assert "is broken" in refusal(folder)


@pytest.mark.parametrize("version", [2, "1", None])
def test_another_schema_version_is_refused(version, tmp_path):
    assert f"schema_version {version!r}" in refusal(write(tmp_path / "train", schema_version=version))


def test_the_share_of_one_machine_is_refused_with_the_command_that_joins(tmp_path):
    share = {"node_rank": 1, "nodes": 2, "plan": "a", "shards": ["train.mindrecord1"]}
    assert "records.py merge" in refusal(write(tmp_path / "train", share=share))


CHANGES = {
    "no images": ({"num_images": 0, "shards": []}, "no images"),
    "other count": ({"num_images": 6}, "6 images, and its shards 5 rows"),
    "classes with a gap": ({"classes": content()["classes"][:1]}, "indices of the classes"),
    "shards of another kind": ({"shards": ["train.mindrecord0"]}, "no manifest of this suite"),
    "class without a name": ({"classes": [{"index": 0}]}, "no manifest of this suite"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_that_contradicts_itself_is_refused(name, tmp_path):
    changes, expected = CHANGES[name]
    assert expected in refusal(write(tmp_path / "train", **changes))


@pytest.mark.parametrize("key", ["split", "classes", "shards", "seed", "tool"])
def test_a_manifest_without_a_key_is_refused_by_name(key, folder):
    without = {name: value for name, value in content().items() if name != key}
    (folder / "manifest.json").write_text(json.dumps(without), "utf-8")
    assert f"lacks '{key}'" in refusal(folder)


def test_the_reader_does_not_import_mindspore():
    code = "import sys, src.data.manifest; sys.exit('mindspore' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0
