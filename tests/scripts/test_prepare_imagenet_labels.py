"""The class of each validation image: the suite's own list, and what a list of the user's may look like."""

from __future__ import annotations

import io
import re
import sys
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from imagenet_forms import SCRIPTS

from tests.support import shared_data

CLASSES = ["n01", "n02", "n03"]


@pytest.fixture
def ground_truth(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from convert_to_mindrecord.imagenet import ground_truth

    return ground_truth


def test_the_suites_list_is_consistent(ground_truth):
    wnids = [wnid for wnid, _ in ground_truth.bundled_classes()]
    assert len(wnids) == 1000
    assert wnids == sorted(set(wnids))
    truth = ground_truth.bundled_truth().by_line
    assert len(truth) == 50_000
    assert Counter(truth) == dict.fromkeys(wnids, 50)
    # As published: the first three, and the first two images of the first class.
    assert truth[:3] == ["n01751748", "n09193705", "n02105855"]
    assert [number for number, wnid in enumerate(truth, 1) if wnid == "n01440764"][:2] == [293, 2138]
    assert sum(path.stat().st_size for path in ground_truth.DATA.glob("*.txt")) < 300_000


def test_the_suites_classes_are_those_of_the_samples(ground_truth):
    with tarfile.open(shared_data("imagenet-samples.tar")) as tar:
        lines = tar.extractfile("imagenet-samples/labels.txt").read().decode().splitlines()
    ours = [f"{wnid} {label} {name.split(', ')[0]}"
            for label, (wnid, name) in enumerate(ground_truth.bundled_classes())]  # fmt: skip
    assert ours == lines


def names_for(count):
    return [f"ILSVRC2012_val_{number:08d}.JPEG" for number in range(count, 0, -1)]  # in no useful order


def read(ground_truth, tmp_path, data, names=None, devkit=None, subset=False):
    """File name -> class."""
    path = tmp_path / "truth.txt"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    truth = ground_truth.read_truth(str(path), devkit, set(CLASSES), subset)
    names = names_for(3) if names is None else names
    return dict(zip(names, ground_truth.assign(names, truth, subset)))


EXPECTED = dict(zip(sorted(names_for(3)), ["n03", "n01", "n02"]))
LISTS = {
    "a wnid a line": "n03\nn01\nn02\n",
    "no newline at the end": "n03\nn01\nn02",
    "blank last lines": "n03\nn01\nn02\n\n \n",
    "CRLF and byte order mark": b"\xef\xbb\xbfn03\r\nn01\r\nn02\r\n",
    "images named, in any order": "ILSVRC2012_val_00000002.JPEG n01\nILSVRC2012_val_00000003.JPEG n02\n"
    "ILSVRC2012_val_00000001.JPEG n03\n",
    "folders and tabs": "val/ILSVRC2012_val_00000001.JPEG\tn03\nval/ILSVRC2012_val_00000002.JPEG\tn01\n"
    "val/ILSVRC2012_val_00000003.JPEG\tn02\n",
    "kaggle": "ImageId,PredictionString\nILSVRC2012_val_00000003,n02 1 2 3 4 n02 5 6 7 8 \n"
    "ILSVRC2012_val_00000001,n03 1 2 3 4 \nILSVRC2012_val_00000002,n01 1 2 3 4 \n",
}


@pytest.mark.parametrize("name", LISTS)
def test_forms_of_a_list(name, ground_truth, tmp_path):
    assert read(ground_truth, tmp_path, LISTS[name]) == EXPECTED


WRONG_LISTS = {
    "a blank line within": ("n03\n\nn02\n", "line 2: a blank line, which would shift"),
    "too few": ("n03\nn01\n", "2 classes for 3 images, and none for ILSVRC2012_val_00000003"),
    "too many": ("n03\nn01\nn02\nn02\n", "4 classes for 3 images: image 4 is missing"),
    "unknown class": ("n03\nn99\nn02\n", "line 2: 'n99' is not one of the 3 classes"),
    "a number": ("490\n361\n171\n", "line 1: '490' is a number.*--devkit"),
    "a zero": ("n03\n0\nn02\n", "line 2: '0' is a number"),
    "two forms": ("n03\na.JPEG n01\nn02\n", "line 2"),
    "three columns": ("a.JPEG n01 n02\n", "line 1"),
    "contradiction": ("a.JPEG n01\nb.JPEG n02\na.JPEG n02\n", "line 3: a.JPEG has another class"),
    "an image without": ("ILSVRC2012_val_00000001 n01\nILSVRC2012_val_00000002 n01\nx n01\n", "none for"),
    "empty": ("\n\n", "holds no class"),
    "not UTF-8": (b"\xff\n", "not UTF-8"),
}


@pytest.mark.parametrize("name", WRONG_LISTS)
def test_a_wrong_list_is_refused_with_the_line(name, ground_truth, tmp_path):
    data, expected = WRONG_LISTS[name]
    with pytest.raises(ValueError, match=expected):
        read(ground_truth, tmp_path, data)


def test_a_missing_image_shifts_nothing(ground_truth, tmp_path):
    """Numbered images keep their lines where a subset is meant; others cannot."""
    some = names_for(3)[::2]
    with pytest.raises(ValueError, match="image 2 is missing"):
        read(ground_truth, tmp_path, "n03\nn01\nn02\n", some)
    assert read(ground_truth, tmp_path, "n03\nn01\nn02\n", some, subset=True) == {
        n: EXPECTED[n] for n in some
    }
    with pytest.raises(ValueError, match="3 classes for 2 images"):
        read(ground_truth, tmp_path, "n03\nn01\nn02\n", ["a.png", "c.png"], subset=True)


def test_images_without_numbers_follow_the_order_of_their_names(ground_truth, tmp_path):
    names = ["b_20240101.png", "é_20240103.png", "B_20240102.png"]  # dates are no numbers of images
    assert read(ground_truth, tmp_path, "n03\nn01\nn02\n", names) == {
        "B_20240102.png": "n03",
        "b_20240101.png": "n01",
        "é_20240103.png": "n02",
    }


def test_an_image_twice_is_refused(ground_truth, tmp_path):
    names = [*names_for(2), "ILSVRC2012_val_00000001.png"]
    with pytest.raises(ValueError, match="more than one image ILSVRC2012_val_00000001"):
        read(ground_truth, tmp_path, "n03\nn01\nn02\n", names)


def meta_mat(path):
    """As the devkit's: a struct array, whose numbers do not follow the order of the wnids."""
    from scipy.io import savemat

    kind = [("ILSVRC2012_ID", object), ("WNID", object), ("words", object), ("num_children", object)]
    rows = [(1, "n02", "two", 0), (2, "n03", "three", 0), (3, "n01", "one", 0), (4, "n00", "all", 3)]
    path.parent.mkdir(parents=True)
    savemat(path, {"synsets": np.array(rows, dtype=kind).reshape(-1, 1)})
    return str(path)


def test_numbers_of_the_devkit_go_through_its_table(ground_truth, tmp_path):
    mat = meta_mat(tmp_path / "devkit/data/meta.mat")
    text = tmp_path / "table.txt"
    text.write_text("1 n02\n2 n03\n\n3,n01\n", "utf-8")
    for table in (mat, str(tmp_path / "devkit"), str(text)):
        assert read(ground_truth, tmp_path, "2\n3\n1\n", devkit=table) == EXPECTED
    for data, expected in {
        "2\n0\n1\n": r"line 2: '0' is not in the devkit's table \(the devkit counts from 1\)",
        "2\n3\n1001\n": "line 3: '1001' is not in",
        "2\nn01\n1\n": "line 2: 'n01' is not in",
        "2\n3\n4\n": "line 3: 'n00' is not one of the 3 classes",
    }.items():
        with pytest.raises(ValueError, match=expected):
            read(ground_truth, tmp_path, data, devkit=mat)


def test_a_wrong_table_is_refused(ground_truth, tmp_path):
    (tmp_path / "table.txt").write_text("1 n02\n1 n03\n", "utf-8")
    (tmp_path / "no.mat").write_bytes(b"not a mat file at all")
    for table, expected in {
        "table.txt": "line 2",
        "no.mat": "not the meta.mat",
        "gone": "No such file",
    }.items():
        with pytest.raises(ValueError, match=expected):
            read(ground_truth, tmp_path, "1\n1\n1\n", devkit=str(tmp_path / table))


def test_a_table_without_what_reads_it_is_told(ground_truth, tmp_path, monkeypatch):
    """scipy comes with MindSpore, and preparing data needs neither."""
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    mat = tmp_path / "meta.mat"
    mat.write_bytes(b"MATLAB")
    with pytest.raises(ValueError, match=r"meta\.mat: reading it needs scipy"):
        read(ground_truth, tmp_path, "1\n1\n1\n", devkit=str(mat))


def devkit_archive(path, *members):
    """A tar.gz of (name, content) in this order; a content that is a text is the target of a link."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            else:
                member.size = len(content)
            tar.addfile(member, None if isinstance(content, str) else io.BytesIO(content))
    return str(path)


def test_the_devkit_is_read_from_its_archive(ground_truth, tmp_path):
    meta = Path(meta_mat(tmp_path / "devkit/data/meta.mat")).read_bytes()
    top = "ILSVRC2012_devkit_t12"
    readme, other = (f"{top}/readme.txt", b"x" * 5000), (f"{top}/data/other.mat", b"no table")
    archive = devkit_archive(tmp_path / f"{top}.tar.gz", readme, other, (f"{top}/data/meta.mat", meta))
    before = sorted(tmp_path.rglob("*"))
    assert read(ground_truth, tmp_path, "2\n3\n1\n", devkit=archive) == EXPECTED
    assert sorted(tmp_path.rglob("*")) == [*before, tmp_path / "truth.txt"], "nothing is unpacked"
    with pytest.raises(ValueError, match="'0' is not in the devkit's table"):
        read(ground_truth, tmp_path, "2\n0\n1\n", devkit=archive)


ARCHIVES = {
    "a path that leads outside": (
        [("../evil/x", b"x"), ("d/data/meta.mat", b"")],
        "'../evil/x' points outside",
    ),
    "an absolute path": ([("/etc/data/meta.mat", b"")], "'/etc/data/meta.mat' points outside"),
    "a link": ([("d/data/meta.mat", "/etc/passwd")], "'d/data/meta.mat' is no plain file"),
    "too large": ([("d/data/meta.mat", bytes((16 << 20) + 1))], "or too large"),
    "no table": ([("d/readme.txt", b"x")], "holds no data/meta.mat"),
    "another file": ([("d/data/meta.mat", b"not a mat file at all")], "is not the meta.mat"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_cannot_be_the_devkit_is_refused(name, ground_truth, tmp_path):
    members, expected = ARCHIVES[name]
    archive = devkit_archive(tmp_path / "devkit.tar.gz", *members)
    with pytest.raises(ValueError, match=re.escape(expected)):
        read(ground_truth, tmp_path, "1\n1\n1\n", devkit=archive)


def test_a_damaged_archive_is_refused(ground_truth, tmp_path):
    noise = np.random.RandomState(0).bytes(60_000)  # hardly to be compressed
    archive = devkit_archive(tmp_path / "devkit.tar.gz", ("d/x", noise), ("d/data/meta.mat", noise))
    whole = Path(archive).read_bytes()
    for data in (whole[:50_000], whole[:300] + b"damage" + whole[306:], b"<html>404</html>", b""):
        Path(archive).write_bytes(data)
        with pytest.raises(ValueError, match=r"devkit.tar.gz"):
            read(ground_truth, tmp_path, "1\n1\n1\n", devkit=archive)
    with pytest.raises(ValueError, match="No such file"):
        read(ground_truth, tmp_path, "1\n1\n1\n", devkit=str(tmp_path / "gone.tar.gz"))
