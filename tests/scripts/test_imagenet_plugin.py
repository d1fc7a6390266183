"""The imagenet plug-in through the contract of plug-ins: which files become rows, with which labels."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "scripts" / "convert_to_mindrecord" / "imagenet"


@pytest.fixture
def plugin(monkeypatch):
    """A fresh one for each test: it keeps what it found in the module, as the contract's functions must."""
    spec = importlib.util.spec_from_file_location(
        "mr_api", FOLDER / "mr_api.py", submodule_search_locations=[str(FOLDER)]
    )
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    monkeypatch.setitem(sys.modules, "mr_api", module)
    spec.loader.exec_module(module)
    yield module
    for name in set(sys.modules) - before:
        if name.startswith("mr_api."):
            del sys.modules[name]


def configure(plugin, folder, seed=0, **options):
    parser = argparse.ArgumentParser()
    plugin.mindrecord_options(parser)
    words = ["--dir", str(folder)]
    for name, value in options.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    args = parser.parse_args(words)
    args.mindrecord_seed = seed
    plugin.mindrecord_configure(args)


def labels_of(plugin):
    """file name -> label, over all tasks."""
    rows = [
        row for task in range(plugin.mindrecord_task_number()) for row in plugin.mindrecord_dict_data(task)
    ]
    labels = {row["file_name"]: row["label"] for row in rows}
    assert len(labels) == len(rows), "a file twice"
    return labels


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(name))
    return folder


def write_map(tmp_path, data):
    path = tmp_path / "map.txt"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_classes_are_sorted_by_bytes_and_empty_ones_keep_their_label(plugin, tmp_path, capsys):
    make(tmp_path, "b/1.JPEG", "B/1.JPEG", "é/1.JPEG", "z/1.JPEG")
    (tmp_path / "a").mkdir()
    configure(plugin, tmp_path)
    assert [wnid for wnid, _ in plugin.mindrecord_classes()] == ["B", "a", "b", "z", "é"]
    assert labels_of(plugin) == {"B/1.JPEG": 0, "b/1.JPEG": 2, "z/1.JPEG": 3, "é/1.JPEG": 4}
    assert "keep their labels: 1 (a)" in capsys.readouterr().err


def test_numeric_class_folders_get_a_warning_that_shows_the_order(plugin, tmp_path, capsys):
    make(tmp_path, *(f"{number}/x.png" for number in (0, 1, 2, 10)))
    configure(plugin, tmp_path)
    assert "0, 1, 10, 2" in capsys.readouterr().err


def test_junk_is_ignored_and_odd_names_are_kept(plugin, tmp_path, capsys):
    good = [
        "c/A.JPG",
        "c/-l.png",
        "c/two..dots.jpeg",
        'c/a b\'s "q".JPEG',
        "c/图片😀.webp",
        "c/sub/deep.JPEG",
    ]
    make(tmp_path, *good, "c/.DS_Store", "c/._a.JPEG", "c/Thumbs.db", "c/README.txt", "labels.txt")
    make(tmp_path, "c/.ipynb_checkpoints/a.JPEG", ".hidden/a.JPEG", "__MACOSX/c/a.JPEG")
    configure(plugin, tmp_path)
    assert set(labels_of(plugin)) == set(good)
    said = capsys.readouterr().err
    # Two at the top, six in the class: what lies in hidden folders is not looked at.
    assert "ignored, hidden or not images by name: 8 (" in said


def test_links_belong_to_the_class_where_they_are(plugin, tmp_path):
    make(tmp_path / "elsewhere", "more/2.JPEG", "3.JPEG")
    images = make(tmp_path / "images", "a/1.JPEG")
    (images / "a/linked").symlink_to(tmp_path / "elsewhere/more")
    (images / "a/loop").symlink_to(images / "a")
    (images / "b").symlink_to(tmp_path / "elsewhere")
    (images / "a/dangling.JPEG").symlink_to("nowhere")
    configure(plugin, images)
    expected = {"a/1.JPEG": 0, "a/linked/2.JPEG": 0, "b/3.JPEG": 1, "b/more/2.JPEG": 1, "a/dangling.JPEG": 0}
    assert labels_of(plugin) == expected
    tasks = range(plugin.mindrecord_task_number())
    data = {row["file_name"]: row["image"] for task in tasks for row in plugin.mindrecord_dict_data(task)}
    assert isinstance(data["a/dangling.JPEG"], OSError)
    assert data["b/more/2.JPEG"] == b"more/2.JPEG"


def test_a_name_that_is_not_utf8_is_kept_readable(plugin, tmp_path):
    try:
        make(tmp_path, os.fsdecode(b"c/\xff.JPEG"), os.fsdecode(b"\xff/1.JPEG"), "\U0001f600/1.JPEG")
    except OSError:
        pytest.skip("this file system stores UTF-8 names only")
    configure(plugin, tmp_path)
    assert labels_of(plugin) == {"c/\\xff.JPEG": 0, "\U0001f600/1.JPEG": 1, "\\xff/1.JPEG": 2}


def test_the_seed_shuffles_over_the_classes(plugin, tmp_path):
    make(tmp_path, *(f"{name}/{number}.JPEG" for name in "abc" for number in range(10)))
    configure(plugin, tmp_path, seed=0)
    order = list(labels_of(plugin).items())
    assert len({label for _, label in order[:10]}) == 3
    configure(plugin, tmp_path, seed=0)
    assert list(labels_of(plugin).items()) == order
    configure(plugin, tmp_path, seed=1)
    assert sorted(labels_of(plugin).items()) == sorted(order)
    assert list(labels_of(plugin).items()) != order


def test_sizes_are_those_of_the_files(plugin, tmp_path):
    make(tmp_path, "a/1.JPEG", "a/longer name.JPEG")
    configure(plugin, tmp_path)
    assert plugin.mindrecord_sizes() == (
        len("a/1.JPEG") + len("a/longer name.JPEG"),
        len("a/longer name.JPEG"),
    )


MAPS = {
    "spaces": "n2 0 great white shark\nn1 1 tench\n",
    "tabs": "n2\t0\tgreat white shark\nn1\t1\ttench\n",
    "mixed": "n2 \t 0\tgreat white shark\nn1  1 tench\n",
    "from one": "n1 2 tench\nn2 1 great white shark\n",
    "byte order mark, CRLF, blank lines": b"\xef\xbb\xbfn2 0 great white shark\r\n\r\nn1 1 tench\r\n\r\n",
    "a line twice": "n2 0 great white shark\nn1 1 tench\nn2 0 great white shark\n",
    "no newline at the end": "n2 0 great white shark\nn1 1 tench",
}


@pytest.mark.parametrize("name", MAPS)
def test_mapping_file(name, plugin, tmp_path):
    make(tmp_path / "images", "n1/a.JPEG", "n2/a.JPEG")
    configure(plugin, tmp_path / "images", map_file=write_map(tmp_path, MAPS[name]))
    assert plugin.mindrecord_classes() == [("n2", "great white shark"), ("n1", "tench")]
    assert labels_of(plugin) == {"n1/a.JPEG": 1, "n2/a.JPEG": 0}


def test_mapping_file_with_spaces_in_the_folder_and_a_number_in_the_name(plugin, tmp_path):
    make(tmp_path / "images", "my class/a.JPEG", "n7/a.JPEG")
    configure(plugin, tmp_path / "images", map_file=write_map(tmp_path, "my class\t0\tmine\nn7 1 7 up\n"))
    assert plugin.mindrecord_classes() == [("my class", "mine"), ("n7", "7 up")]


WRONG_MAPS = {
    "two columns": ("n1 0 a\nn2 1\n", "line 2"),
    "no number": ("n1 zero a\n", "line 1"),
    "a gap": ("n1 0 a\n\nn2 2 b\n", "line 3"),
    "from two": ("n1 2 a\nn2 3 b\n", "line 1"),
    "negative": ("n1 -1 a\nn2 0 b\n", "line 1"),
    "one label twice": ("n1 0 a\nn2 0 b\n", "line 2"),
    "one class twice": ("n1 0 a\nn1 1 a\n", "line 2"),
    "empty": ("\n\n", "holds no class"),
    "not UTF-8": (b"n1 0 \xff\n", "UTF-8"),
}


@pytest.mark.parametrize("name", WRONG_MAPS)
def test_a_wrong_mapping_file_is_refused_with_the_line(name, plugin, tmp_path):
    make(tmp_path / "images", "n1/a.JPEG")
    data, expected = WRONG_MAPS[name]
    with pytest.raises(ValueError, match=expected):
        configure(plugin, tmp_path / "images", map_file=write_map(tmp_path, data))


def manifest_of(tmp_path, *wnids):
    classes = [
        {"index": index, "wnid": wnid, "name": wnid.upper(), "num_images": 1}
        for index, wnid in enumerate(wnids)
    ]
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"classes": classes[::-1]}), "utf-8")
    return path


def test_val_has_the_labels_of_train(plugin, tmp_path, capsys):
    make(tmp_path / "val", "c/1.JPEG", "b/1.JPEG")
    configure(plugin, tmp_path / "val", classes_from=manifest_of(tmp_path, "a", "b", "c"))
    assert labels_of(plugin) == {"b/1.JPEG": 1, "c/1.JPEG": 2}
    assert plugin.mindrecord_classes()[2] == ("c", "C")
    assert "keep their labels: 1 (a)" in capsys.readouterr().err


def test_a_class_that_only_val_has_is_an_error(plugin, tmp_path):
    make(tmp_path / "val", "a/1.JPEG", "new/1.JPEG")
    with pytest.raises(ValueError, match="new"):
        configure(plugin, tmp_path / "val", classes_from=manifest_of(tmp_path, "a", "b"))


def test_two_sources_of_classes_are_one_too_many(plugin, tmp_path):
    make(tmp_path / "val", "a/1.JPEG")
    with pytest.raises(argparse.ArgumentTypeError, match="give one"):
        configure(plugin, tmp_path / "val", classes_from=manifest_of(tmp_path, "a"), map_file="x")


WRONG_LEVELS = {
    "too high": (["train/a/1.JPEG", "val/a/1.JPEG"], "holds train, val"),
    "too low": (["1.JPEG", "2.JPEG"], "no class folders: give the folder above"),
    "no images": (["a/README.txt"], "not one image"),
    "nothing": (["README.txt"], "no class folders"),
}


@pytest.mark.parametrize("name", WRONG_LEVELS)
def test_a_folder_of_the_wrong_level_is_refused_with_a_hint(name, plugin, tmp_path):
    files, expected = WRONG_LEVELS[name]
    make(tmp_path, *files)
    with pytest.raises(ValueError, match=expected):
        configure(plugin, tmp_path)


def test_a_flat_folder_needs_a_list_and_classes(plugin, tmp_path):
    make(tmp_path / "val", "ILSVRC2012_val_00000002.JPEG", "ILSVRC2012_val_00000001.JPEG", "._x.JPEG")
    (tmp_path / "truth.txt").write_text("b\na\n", "utf-8")
    with pytest.raises(ValueError, match="--val_labels ilsvrc2012"):
        configure(plugin, tmp_path / "val")
    with pytest.raises(ValueError, match="say what the labels of its classes are"):
        configure(plugin, tmp_path / "val", val_labels=tmp_path / "truth.txt")
    with pytest.raises(argparse.ArgumentTypeError, match="--devkit"):
        configure(plugin, tmp_path / "val", devkit="x")
    classes = manifest_of(tmp_path, "a", "b", "c")
    configure(plugin, tmp_path / "val", val_labels=tmp_path / "truth.txt", classes_from=classes)
    one, two = "ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000002.JPEG"
    assert labels_of(plugin) == {f"b/{one}": 1, f"a/{two}": 0}
    rows = [row for task in range(2) for row in plugin.mindrecord_dict_data(task)]
    assert {row["file_name"][2:]: row["image"] for row in rows} == {
        name: name.encode() for name in (one, two)
    }
    make(tmp_path, "classes/a/1.JPEG")
    with pytest.raises(ValueError, match="without class folders"):
        configure(plugin, tmp_path / "classes", val_labels="ilsvrc2012")


def test_the_suites_list_labels_a_flat_folder(plugin, tmp_path):
    make(tmp_path, "ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000293.JPEG")
    with pytest.raises(ValueError, match="50,000 classes for 2 images: image 2 is missing"):
        configure(plugin, tmp_path, val_labels="ilsvrc2012")
    configure(plugin, tmp_path, val_labels="ilsvrc2012", subset=True)
    labels = {name[10:]: label for name, label in labels_of(plugin).items()}
    assert labels == {"ILSVRC2012_val_00000001.JPEG": 65, "ILSVRC2012_val_00000293.JPEG": 0}


def test_a_missing_folder_is_named(plugin, tmp_path):
    with pytest.raises(ValueError, match="nosuch: No such file"):
        configure(plugin, tmp_path / "nosuch")


def test_a_link_that_leads_nowhere_is_told(plugin, tmp_path):
    """Within a class it is a file that cannot be read; as a class, its absence would shift the labels."""
    make(tmp_path, "a/1.JPEG", "c/1.JPEG")
    (tmp_path / "a/folder").symlink_to("gone")
    configure(plugin, tmp_path)
    assert labels_of(plugin) == {"a/1.JPEG": 0, "a/folder": 0, "c/1.JPEG": 1}
    rows = [row for task in range(3) for row in plugin.mindrecord_dict_data(task)]
    assert [row["file_name"] for row in rows if isinstance(row["image"], OSError)] == ["a/folder"]
    (tmp_path / "b").symlink_to("/mnt/unmounted")
    with pytest.raises(ValueError, match="b is a link to /mnt/unmounted, which does not exist"):
        configure(plugin, tmp_path)


def test_a_loop_of_links_is_left_after_one_round_and_told(plugin, tmp_path, capsys):
    make(tmp_path, "a/1.JPEG", "a/sub/2.JPEG")
    (tmp_path / "a/sub/up").symlink_to(tmp_path / "a")
    configure(plugin, tmp_path)
    assert set(labels_of(plugin)) == {"a/1.JPEG", "a/sub/2.JPEG"}
    assert "1 (a/sub/up)" in capsys.readouterr().err


def test_classes_of_imagenet_get_their_names(plugin, tmp_path):
    make(tmp_path, "n01443537/1.JPEG", "n01440764/1.JPEG")
    configure(plugin, tmp_path)
    assert plugin.mindrecord_classes()[0] == ("n01440764", "tench, Tinca tinca")
    make(tmp_path, "mine/1.JPEG")
    configure(plugin, tmp_path)
    assert plugin.mindrecord_classes() == [(n, n) for n in ("mine", "n01440764", "n01443537")]


def test_another_number_of_images_than_expected_is_refused_with_both(plugin, tmp_path):
    make(tmp_path, "a/1.JPEG", "b/1.JPEG", "b/README.txt")
    configure(plugin, tmp_path, expect_images=2)
    with pytest.raises(ValueError, match="2 images of 2 classes, and there should be 3 of 2"):
        configure(plugin, tmp_path, expect_images=3)


def parts(plugin, folder, seed=0, share=0.25):
    both = []
    for part in ("train", "val"):
        configure(plugin, folder, seed=seed, val_share=share, part=part)
        both.append(set(labels_of(plugin)))
    return both


def test_holding_out_is_stratified_and_leaves_every_class_an_image(plugin, tmp_path, capsys):
    sizes = {"a": 20, "b": 2, "c": 3, "d": 1}
    files = [f"{name}/{number}.JPEG" for name, size in sizes.items() for number in range(size)]
    make(tmp_path, *files, "e/README.txt")
    train, val = parts(plugin, tmp_path, share=0.1)
    assert train | val == set(files)
    assert not train & val
    assert {name: sum(file[0] == name for file in val) for name in sizes} == {"a": 2, "b": 1, "c": 1, "d": 0}
    said = capsys.readouterr().err
    assert "held out 4 of 26 images (15.4 %)" in said
    assert "single image, which stays in train: 1 (d)" in said


def test_holding_out_follows_the_seed_and_no_other_class(plugin, tmp_path):
    make(tmp_path, *(f"{name}/{number}.JPEG" for name in "bc" for number in range(12)))
    _, val = parts(plugin, tmp_path)
    assert parts(plugin, tmp_path)[1] == val
    assert parts(plugin, tmp_path, seed=1)[1] != val
    numbers = [{file[2:] for file in val if file[0] == name} for name in "bc"]
    assert numbers[0] != numbers[1], "the same file names in every class"
    make(tmp_path, "a/1.JPEG", "a/2.JPEG", "c/12.JPEG")
    changed = parts(plugin, tmp_path)[1]
    assert {file for file in changed if file[0] == "b"} == {file for file in val if file[0] == "b"}
    assert len({file for file in changed if file[0] == "c"} - val) <= 1


def test_nothing_to_hold_out_is_an_error(plugin, tmp_path):
    make(tmp_path, "a/1.JPEG", "b/1.JPEG")
    with pytest.raises(ValueError, match=r"no class of .* has two images"):
        configure(plugin, tmp_path, val_share=0.5, part="val")
    with pytest.raises(argparse.ArgumentTypeError, match=r"1\.5"):
        configure(plugin, tmp_path, val_share=1.5, part="val")
    with pytest.raises(argparse.ArgumentTypeError, match="need each other"):
        configure(plugin, tmp_path, val_share=0.5)
