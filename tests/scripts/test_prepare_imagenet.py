"""From each form in which people have ImageNet to one and the same records, or to a sentence."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys

import pytest
from converting import contents, rows_of
from imagenet_forms import FORMS, SCRIPTS, VAL, WNIDS, build, expected_labels, picture, val_images, write

from src.data.manifest import read_manifest


def prepare(*words):
    line = ["bash", SCRIPTS / "prepare_imagenet.sh", *words]
    return subprocess.run(
        list(map(str, line)),
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={**os.environ, "PYTHON": sys.executable},
    )


@pytest.fixture
def modules(monkeypatch):
    """The modules of prepare_imagenet.py, as they are when it runs."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import imagenet_layouts
    import prepare_imagenet

    return imagenet_layouts, prepare_imagenet


def rows_of_plugin(plugin, options):
    parser = argparse.ArgumentParser()
    plugin.mindrecord_options(parser)
    args = parser.parse_args(options)
    args.mindrecord_seed = 5
    plugin.mindrecord_configure(args)
    tasks = range(plugin.mindrecord_task_number())
    return [row for task in tasks for row in plugin.mindrecord_dict_data(task)], plugin.mindrecord_sizes()


def test_every_form_gives_the_same_rows_in_the_same_order(modules, tmp_path, monkeypatch, capsys):
    from dry_run import plugin

    prepare_imagenet = modules[1]
    seen, forms_told = {}, []

    def record(command):
        words = [word for word in command if word.startswith(PLUGIN_OPTIONS)]
        seen.setdefault(split_of(command), []).append(rows_of_plugin(plugin, words))
        classes = enumerate(plugin.mindrecord_classes())
        manifest = {"classes": [{"index": i, "wnid": wnid, "name": name} for i, (wnid, name) in classes]}
        write(out / split_of(command) / "manifest.json", json.dumps(manifest).encode())
        return 0

    monkeypatch.setattr(prepare_imagenet, "run", record)
    for form in FORMS:
        out = tmp_path / f"records of {form}"
        assert prepare_imagenet.main([str(build(form, tmp_path / form)), str(out), "--subset"]) == 0
        forms_told.append(capsys.readouterr().out.splitlines()[1:3])
    for split in ("train", "val"):
        first, sizes = seen[split][0]
        assert len(seen[split]) == len(FORMS)
        assert all(other == (first, sizes) for other in seen[split])
        assert {row["file_name"]: row["label"] for row in first} == expected_labels(split)
    assert [row["image"] for row in seen["val"][0][0] if row["file_name"].endswith("3.JPEG")] == [picture(43)]
    told = [" ".join(line.split(": ", 2)[2].split()[:2]) for lines in forms_told for line in lines]
    assert told == [
        *("class folders", "class folders"),
        *("class folders", "flat folder,"),
        *("class folders", "flat folder,"),
        *("class folders", "flat folder,"),
        *("tar of", "flat tar,"),
        *("folder of", "flat folder,"),
    ]


PLUGIN_OPTIONS = ("--dir", "--map_file", "--classes_from", "--val_labels", "--subset", "--expect", "--devkit")


def split_of(command):
    return next(word for word in command if word.startswith("--mindrecord_file")).split("/")[-2]


@pytest.mark.parametrize(("form", "workers"), [("tars", 1), ("kaggle", 3)])
def test_records_hold_what_the_source_holds(form, workers, tmp_path, records_of_tars):
    out = tmp_path / "my records"
    if form == "kaggle":
        done = prepare(build(form, tmp_path / "my images"), out, *SMALL, "--workers", workers)
        assert done.returncode == 0, done.stderr
    else:
        out = records_of_tars
    for split in ("train", "val"):
        manifest = read_manifest(out / split)
        assert [item.wnid for item in manifest.classes] == WNIDS
        assert manifest.class_names[0] == "tench, Tinca tinca"
        rows = {str(row["file_name"]): row for row in rows_of(out / split)}
        assert {name: int(row["label"]) for name, row in rows.items()} == expected_labels(split)
        ours, theirs = contents(out / split), contents(records_of_tars / split)
        assert {name for name in ours if ours[name] != theirs[name]} <= {"manifest.json"}
    name = "ILSVRC2012_val_00000002.JPEG"
    assert rows[f"{VAL[2]}/{name}"]["image"].tobytes() == val_images()[name]


SMALL = ("--subset", "--partitions", "3", "--seed", "7")


@pytest.fixture(scope="module")
def records_of_tars(tmp_path_factory):
    folder = tmp_path_factory.mktemp("from-tars")
    done = prepare(build("tars", folder / "tars"), folder / "records", *SMALL, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (folder / "tars").iterdir()} == {
        "ILSVRC2012_img_train.tar",
        "ILSVRC2012_img_val.tar",
    }
    return folder / "records"


def test_dry_run_counts_and_writes_nothing(tmp_path):
    source = build("tars", tmp_path / "images")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    done = prepare(source, tmp_path / "out", "--subset", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "train: 15 images of 5 classes" in done.stdout
    assert "val: 4 images of 4 classes" in done.stdout
    assert "keep their labels: 1 (n01440764)" in done.stdout
    assert f"{tmp_path}/out/val/val.mindrecord" in done.stdout
    assert f"--dir={source}/ILSVRC2012_img_val.tar" in done.stdout.splitlines()[-1]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def refused(modules, capsys, *words, code=3):
    """The sentence of a dry run that is refused."""
    assert modules[1].main([*map(str, words), "--dry-run"]) == code
    (sentence,) = capsys.readouterr().err.splitlines()
    return sentence


def test_a_part_of_imagenet_is_refused_unless_it_is_meant(modules, tmp_path, capsys):
    source = build("folders", tmp_path / "images")
    said = refused(modules, capsys, source, tmp_path / "out")
    assert "holds 15 images of 5 classes, and there should be 1,281,167 of 1,000" in said
    assert "995 (n01443537" in said
    assert "--subset" in said
    said = refused(modules, capsys, source, tmp_path / "out", "--only", "val")
    assert "holds 4 images of 4 classes, and there should be 50,000 of 1,000" in said


def test_all_of_imagenet_needs_no_option(modules, tmp_path, capsys, monkeypatch):
    layouts, prepare_imagenet = modules
    source = build("folders", tmp_path / "images")
    for wnid, _ in layouts.bundled_classes():
        if wnid not in WNIDS:
            write(source / "train" / wnid / "1.JPEG", b"x")
    monkeypatch.setitem(layouts.NUM_IMAGES, "train", 995 + 15)
    monkeypatch.setitem(layouts.NUM_IMAGES, "val", 4)
    assert prepare_imagenet.main([str(source), str(tmp_path / "out"), "--dry-run"]) == 0
    assert "train: 1,010 images of 1,000 classes" in capsys.readouterr().out


LEVELS = {
    "too high": ("flat", "my/data", "my", "my/data"),
    "too low": ("flat", "my/data", "my/data/train", "my/data"),
    "in a class": ("flat", "my/data", f"my/data/train/{WNIDS[0]}", "my/data"),
    "in val": ("flat", "my/data", "my/data/val", "my/data"),
    "kaggle, too low": ("kaggle", "k", "k/ILSVRC", "k"),
    "kaggle, far too low": ("kaggle", "k", "k/ILSVRC/Data", "k"),
    "tars, too high": ("tars", "my/tars", "", "my/tars"),
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_source_of_the_wrong_level_is_refused_with_the_right_one(name, modules, tmp_path, capsys):
    form, place, given, meant = LEVELS[name]
    build(form, tmp_path / place)
    said = refused(modules, capsys, tmp_path / given, tmp_path / "out")
    assert said.endswith(f"did you mean {tmp_path / meant}?")


def remove(*names):
    def act(source):
        for name in names:
            path = source / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return act


def misfile(source):
    name = "ILSVRC2012_val_00000001.JPEG"
    (source / "val" / VAL[1] / name).rename(source / "val" / VAL[2] / name)


MISFITS = {
    "no val": ("folders", remove("val"), (), "neither a folder val nor ILSVRC2012_img_val.tar"),
    "no train": ("tars", remove("ILSVRC2012_img_train.tar"), (), "--only val"),
    "nothing": ("folders", remove("train", "val"), (), "holds no ImageNet: expected"),
    "another class": ("folders", lambda s: write(s / "train/cat/1.JPEG", b"x"), (), "prepare_dataset.py"),
    "misfiled": ("folders", misfile, (), f"00000001 is {VAL[1]}, not {VAL[2]}"),
    "train is flat": (
        "folders",
        lambda s: (remove("train")(s), write(s / "train/1.JPEG", b"x")),
        (),
        "train",
    ),
    "own names": ("flat", lambda s: write(s / "val/cat.JPEG", b"x"), (), "'cat.JPEG' is not named as"),
    "number 0": (
        "flat",
        lambda s: write(s / "val/ILSVRC2012_val_00000000.JPEG", b"x"),
        (),
        "none for ILSVRC",
    ),
    "a tar file": ("tars", lambda s: None, "ILSVRC2012_img_val.tar", "give the folder that holds it"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_refused(name, modules, tmp_path, capsys):
    form, act, below, expected = MISFITS[name]
    source = build(form, tmp_path / "images")
    act(source)
    assert expected in refused(
        modules, capsys, source / below if below else source, tmp_path / "out", "--subset"
    )
    assert not (tmp_path / "out").exists()


def test_kaggles_list_must_agree_with_the_ground_truth(modules, tmp_path, capsys):
    source = build("kaggle", tmp_path / "images")
    path = source / "LOC_val_solution.csv"
    good = path.read_text("utf-8")
    path.write_text(good.replace(f"00000001,{VAL[1]}", f"00000001,{VAL[2]}"), "utf-8")
    assert "1 of 4 validation images have the wrong class" in refused(
        modules, capsys, source, tmp_path / "out", "--subset"
    )
    write(source / "mine.txt", "".join(f"{VAL[5 - number]}\n" for number in VAL).encode())
    words = [str(source), str(tmp_path / "out"), "--subset", "--val-labels", str(source / "mine.txt")]
    assert modules[1].main([*words, "--dry-run"]) == 0


def test_validation_images_of_other_classes_are_left_out_of_a_subset(modules, tmp_path, capsys):
    for form in ("folders", "flat"):
        source = build(form, tmp_path / form)
        shutil.rmtree(source / "train" / VAL[1])
        assert modules[1].main([str(source), str(tmp_path / "out"), "--subset", "--dry-run"]) == 0
        said = capsys.readouterr().out
        assert f"left out, which are not in the subset: 1 ({VAL[1]})" in said
        assert "val: 3 images of 3 classes" in said


def test_targets_are_checked_before_anything_is_counted(modules, tmp_path, capsys):
    source = build("folders", tmp_path / "images")
    write(tmp_path / "out/val/manifest.json", b"old")
    assert "--overwrite" in refused(modules, capsys, source, tmp_path / "out", "--subset", code=2)


def test_an_empty_folder_does_not_hide_the_tar_beside_it(modules, tmp_path, capsys):
    source = build("tars", tmp_path / "images")
    (source / "train").mkdir()
    assert modules[1].main([str(source), str(tmp_path / "out"), "--subset", "--dry-run"]) == 0
    assert "train.tar: tar of class tars" in capsys.readouterr().out


def test_a_list_of_devkit_numbers_needs_its_table(modules, tmp_path, capsys):
    source = build("tars", tmp_path / "images")
    ids = {wnid: number for number, wnid in enumerate(reversed(WNIDS), 1)}
    write(tmp_path / "truth.txt", "".join(f"{ids[wnid]}\r\n" for wnid in VAL.values()).encode())
    write(tmp_path / "table.txt", "".join(f"{number} {wnid}\n" for wnid, number in ids.items()).encode())
    words = [source, tmp_path / "out", "--subset", "--val-labels", tmp_path / "truth.txt"]
    assert "truth.txt, line 1: '4' is a number" in refused(modules, capsys, *words)
    assert modules[1].main([*map(str, words), "--devkit", str(tmp_path / "table.txt"), "--dry-run"]) == 0
    assert "val: 4 images of 4 classes" in capsys.readouterr().out
    words = [source, tmp_path / "out", "--subset", "--devkit", tmp_path / "table.txt"]
    assert "--devkit is of use only with --val-labels" in refused(modules, capsys, *words, code=2)


def test_val_labels_are_of_no_use_for_class_folders(modules, tmp_path, capsys):
    source = build("folders", tmp_path / "images")
    words = [source, tmp_path / "out", "--subset", "--val-labels", "x"]
    assert "is not flat" in refused(modules, capsys, *words, code=2)


def test_ctrl_c_while_counting_is_told_in_a_sentence(modules, tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    import dry_run

    monkeypatch.setattr(dry_run, "find_images", interrupt)
    source = build("folders", tmp_path / "images")
    assert "nothing was published" in refused(modules, capsys, source, tmp_path / "out", code=130)
