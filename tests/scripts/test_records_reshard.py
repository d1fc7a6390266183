"""Rewriting a set into other shards, and joining what several machines have written."""

from __future__ import annotations

import json
import shutil

import pytest
from converting import contents, converted, records, rows_of, run, write_plugin

from src.data.manifest import read_manifest
from src.errors import DataError

# One field of each kind; bytes that end with zeros, text that is not ASCII.
EVERY_KIND = (
    "yield {'data': b'x' * 9000 * (task_id == 3) + b'a\\0\\0', 'label': task_id % 3, 'text': 'ä' * task_id,\n"
    "       'whole': 2**40 + task_id, 'part': task_id / 4, 'array': np.full((2, task_id + 1), 7, 'float32')}"
)
HEAD = (
    "import numpy as np\n"
    "mindrecord_schema.update(text={'type': 'string'}, whole={'type': 'int64'}, part={'type': 'float64'},\n"
    "                         array={'type': 'float32', 'shape': [2, -1]})"
)


def values_of(folder):
    return [{name: value.tolist() for name, value in row.items()} for row in rows_of(folder)]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    plugin = write_plugin(folder / "p", EVERY_KIND, HEAD)
    converted(plugin, folder / "train/train.mindrecord", "--mindrecord_partitions", 2)
    return folder / "train"


@pytest.mark.slow
def test_reshard_keeps_rows_and_order_and_can_replace_the_set_itself(source, tmp_path):
    done = records("reshard", source, tmp_path / "new", "--partitions", 3)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "new/manifest.json").read_text("utf-8"))
    assert [shard["file"] for shard in manifest["shards"]] == [f"train.mindrecord{i}" for i in range(3)]
    assert manifest["options"]["mindrecord_partitions"] == 3
    assert values_of(tmp_path / "new") == values_of(source)
    rows = [shard["num_rows"] for shard in manifest["shards"]]
    assert rows[-1] == 1, "the row of 9,000 bytes is as heavy as all others"
    again = records("reshard", tmp_path / "new", tmp_path / "new", "--partitions", 1, "--overwrite")
    assert again.returncode == 0, again.stderr
    assert {"train.mindrecord", "train.mindrecord.db", "manifest.json"} == set(contents(tmp_path / "new"))
    assert values_of(tmp_path / "new") == values_of(source)
    assert records("verify", tmp_path / "new").returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_reshard_does_not_pass_damage_on(source, tmp_path):
    damaged = shutil.copytree(source, tmp_path / "train")
    data = bytearray((damaged / "train.mindrecord1").read_bytes())
    data[-1] ^= 1
    (damaged / "train.mindrecord1").write_bytes(data)
    done = records("reshard", damaged, tmp_path / "new", "--partitions", 3)
    assert done.returncode == 3
    assert "train.mindrecord1 has changed" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_reshard_refuses_more_shards_than_rows_and_an_existing_target(source, tmp_path):
    done = records("reshard", source, tmp_path / "new", "--partitions", 5)
    assert (done.returncode, "only 4 rows" in done.stderr) == (2, True)
    shutil.copytree(source, tmp_path / "there")
    done = records("reshard", source, tmp_path / "there", "--partitions", 2)
    assert (done.returncode, "--overwrite" in done.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    """15 images in 4 shards: by one machine, and the shares of three; a share of another seed aside."""
    base = tmp_path_factory.mktemp("shares")
    options = ("--images", 5, "--mindrecord_partitions", 4, "--nodes", 3)
    converted("template", base / "alone/train/train.mindrecord", *options[:4])
    for rank in range(3):
        converted("template", base / f"s{rank}/train/train.mindrecord", *options, "--node-rank", rank)
    shutil.copytree(base / "s1", base / "other")
    path = base / "other/train/manifest.json"
    path.write_text(path.read_text("utf-8").replace('"seed": 0', '"seed": 8'), "utf-8")
    return base


@pytest.mark.slow
def test_merged_shares_equal_the_work_of_one_machine(shares, tmp_path):
    names = [set(contents(shares / f"s{rank}/train")) for rank in range(3)]
    assert sum(len(files) - 1 for files in names) == 8
    done = records("merge", tmp_path / "train", *(shares / f"s{rank}/train" for rank in (2, 0, 1)))
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "train") == contents(shares / "alone/train")
    log = (tmp_path / "train/convert.log").read_text("utf-8")
    assert log.count("--node-rank") == 3
    read_manifest(tmp_path / "train")


COPIES = """
def mindrecord_fingerprint():
    return os.environ["TIME_OF_THE_FILES"]
def mindrecord_task_sizes():
    return map(int, os.environ["SIZES"].split())
"""


def test_each_machine_may_have_a_copy_of_the_data_but_not_other_data(tmp_path, monkeypatch):
    plugin = write_plugin(tmp_path / "p", "yield {'data': b'x' * 100, 'label': task_id}", COPIES)
    same, other = "9 9 8 9", "9 9 9 8"
    for name, rank, time, sizes in (("a", 0, "1", same), ("b", 1, "2", same), ("c", 1, "1", other)):
        monkeypatch.setenv("TIME_OF_THE_FILES", time)
        monkeypatch.setenv("SIZES", sizes)
        options = ("--mindrecord_partitions", 2, "--nodes", 2, "--node-rank", rank)
        converted(plugin, tmp_path / name / "train/t.mindrecord", *options)
    done = records("merge", tmp_path / "one/train", tmp_path / "a/train", tmp_path / "b/train")
    assert done.returncode == 0, done.stderr
    done = records("merge", tmp_path / "two/train", tmp_path / "a/train", tmp_path / "c/train")
    assert done.returncode == 3
    assert "differ in the data" in done.stderr


MERGES = {
    "missing": (("s0", "s2"), "of 3 shares, 1 is missing"),
    "twice": (("s0", "s1", "s1"), "both share 1"),
    "of another seed": (("s0", "other", "s2"), "differ in seed"),
    "a whole set": (("s0", "alone"), "is a whole set"),
}


@pytest.mark.parametrize("name", MERGES)
def test_what_does_not_belong_together_is_not_merged(name, shares, tmp_path):
    given, words = MERGES[name]
    done = records("merge", tmp_path / "train", *(shares / one / "train" for one in given))
    assert done.returncode == 3
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_share_is_not_taken_for_a_set(shares, tmp_path):
    with pytest.raises(DataError, match="merge"):
        read_manifest(shares / "s1/train")
    done = records("reshard", shares / "s1/train", tmp_path / "new", "--partitions", 1)
    assert done.returncode == 3
    assert "merge" in done.stderr


def test_more_machines_than_shards_are_refused(tmp_path):
    file = tmp_path / "t/t.mindrecord"
    done = run("template", file, "--nodes", 3, "--node-rank", 0, "--mindrecord_partitions", 2)
    assert (done.returncode, "only 2 shards" in done.stderr) == (2, True)
    done = run("template", file, "--nodes", 3, "--node-rank", 3)
    assert (done.returncode, "counts from 0 to 2" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
