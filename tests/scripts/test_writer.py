"""The converter as its users meet it: a command, and the records that it leaves on the disk."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from converting import WRITER, contents, converted, names_of, rows_of, write_plugin
from PIL import Image


@pytest.fixture(scope="module")
def colours(tmp_path_factory):
    """15 images of 3 classes, from the template, in 4 shards, written by one worker and by two."""
    base = tmp_path_factory.mktemp("colours with space")
    options = ("--images", 5, "--mindrecord-partitions", 4, "--mindrecord-seed", 7)
    for workers in (1, 2):
        converted(
            "template", base / f"w{workers}/train/train.mindrecord", *options, "--mindrecord_workers", workers
        )
    return base


def test_the_number_of_workers_changes_nothing(colours):
    assert contents(colours / "w1/train") == contents(colours / "w2/train")


def test_manifest_describes_the_shards(colours):
    folder = colours / "w1/train"
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert manifest["num_images"] == 15
    assert manifest["split"] == "train"
    assert manifest["seed"] == 7
    assert manifest["classes"][2] == {"index": 2, "wnid": "blue", "name": "blue", "num_images": 5}
    assert [shard["file"] for shard in manifest["shards"]] == [f"train.mindrecord{i}" for i in range(4)]
    for shard in manifest["shards"]:
        data = (folder / shard["file"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (shard["num_bytes"], shard["sha256"])
        assert shard["index_num_bytes"] == (folder / f"{shard['file']}.db").stat().st_size
    assert set(contents(folder)) == {"manifest.json"} | {
        name for shard in manifest["shards"] for name in (shard["file"], f"{shard['file']}.db")
    }
    assert str(colours) not in json.dumps(manifest), "a path of this machine"


def test_small_sets_are_small_and_readable_by_others(colours):
    for path in (colours / "w1/train").iterdir():
        assert path.stat().st_size < 200_000
        assert path.stat().st_mode & 0o444 == 0o444


def test_separately_written_shards_are_read_as_one_set_in_their_order(colours):
    """Global row r is row r - (rows of the shards before): what the trainer's sampler relies on."""
    folder = colours / "w1/train"
    shards = json.loads((folder / "manifest.json").read_text("utf-8"))["shards"]
    rows = rows_of(folder)
    assert len(set(names_of(rows))) == 15
    first_of_last = sum(shard["num_rows"] for shard in shards[:-1])
    import mindspore.dataset as ds

    last = ds.MindDataset([str(folder / shards[-1]["file"])], shuffle=False)
    alone = list(last.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert names_of(alone) == names_of(rows)[first_of_last:]
    wanted = [14, 0, 7, 3, 11]
    assert names_of(rows_of(folder, wanted)) == [names_of(rows)[index] for index in wanted]
    for row in rows:
        image = np.asarray(Image.open(io.BytesIO(row["image"].tobytes())))
        assert int(image[0, 0].argmax()) == int(row["label"])


def test_the_seed_decides_the_order_and_shards_do_not(colours, tmp_path):
    options = ("--images", 5, "--mindrecord_partitions", 1)
    converted("template", tmp_path / "a/a.mindrecord", *options, "--mindrecord_seed", 7)
    converted("template", tmp_path / "b/b.mindrecord", *options, "--mindrecord_seed", 8)
    in_four_shards = names_of(rows_of(colours / "w1/train"))
    assert names_of(rows_of(tmp_path / "a")) == in_four_shards
    other = names_of(rows_of(tmp_path / "b"))
    assert sorted(other) == sorted(in_four_shards)
    assert other != in_four_shards


def test_a_row_larger_than_the_page_makes_all_pages_larger(tmp_path):
    body = "yield {'data': b'x' * (5_000_000 if task_id == 3 else 10), 'label': task_id}"
    plugin = write_plugin(tmp_path / "p", body)
    manifest = converted(plugin, tmp_path / "out/out.mindrecord", "--mindrecord_partitions", 2)
    assert manifest["options"]["page_size"] == 8 << 20
    assert [row["data"].nbytes for row in rows_of(tmp_path / "out")] == [10, 10, 10, 5_000_000]
    assert [item["wnid"] for item in manifest["classes"]] == ["0", "1", "2", "3"]


def test_help_shows_the_options_of_the_plugin():
    done = subprocess.run(
        [sys.executable, str(WRITER), "--mindrecord-script", "imagenet", "--help"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "--map_file" in done.stdout
    assert "--mindrecord_partitions" in done.stdout


def test_the_folder_works_where_it_is_copied_to(tmp_path):
    """Stands alone, and its shell script is safe with spaces in paths."""
    copy = shutil.copytree(WRITER.parent, tmp_path / "a copy", ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "PYTHON": sys.executable, "PARTITIONS": "2"}
    line = ["bash", str(copy / "run_template.sh"), str(tmp_path / "o u t"), "--images", "2"]
    done = subprocess.run(line, capture_output=True, text=True, env=env, cwd="/", timeout=60)
    assert done.returncode == 0, done.stderr
    assert "6 images of 3 classes in 2 shard(s)" in done.stdout
