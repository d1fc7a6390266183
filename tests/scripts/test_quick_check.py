"""The quick check is taken where it is worth loading and there; what comes out is the same without it."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from converting import WRITER, command, contents
from PIL import Image

LARGE = 10**12


@pytest.fixture
def converter(monkeypatch):
    """Its modules, and a log that remembers."""
    monkeypatch.syspath_prepend(str(WRITER.parent))
    import images
    import quick_check

    log = SimpleNamespace(told=[])
    log.note = log.add = log.told.append
    return SimpleNamespace(images=images, quick_check=quick_check.quick_check, log=log, module=quick_check)


def chosen(converter, num_bytes=LARGE, num_workers=2, **rules):
    return converter.quick_check(converter.images.ImageRules(**rules), num_bytes, num_workers, converter.log)


def test_small_and_unchecked_conversions_do_not_load_it(converter, monkeypatch):
    monkeypatch.setitem(sys.modules, "jpeg_scan", None)  # an import would fail, and be told
    judge_none, enough = converter.images.judge_none, 2 * converter.module.WORTH_BYTES_PER_WORKER
    assert chosen(converter, None) is judge_none
    assert chosen(converter, enough - 1) is judge_none
    assert chosen(converter, check="header") is judge_none
    assert chosen(converter, resize=256) is judge_none
    assert converter.log.told == []
    assert chosen(converter, enough) is judge_none
    assert "numba cannot be loaded" in converter.log.told[0]


def test_large_conversions_take_it(converter):
    pytest.importorskip("numba")
    is_whole = chosen(converter)
    good = converter.module.sample()
    assert is_whole(good)
    assert not is_whole(good[:-5])
    assert "was loaded in" in converter.log.told[0]


def broken(data):
    raise SystemError("no compiler")


@pytest.mark.parametrize(
    ("is_whole", "told"),
    [(lambda data: True, "is wrong"), (lambda data: False, "is wrong"), (broken, "SystemError: no compiler")],
)
def test_one_that_does_not_work_is_not_used(converter, monkeypatch, is_whole, told):
    monkeypatch.setitem(sys.modules, "jpeg_scan", SimpleNamespace(is_whole=is_whole))
    assert chosen(converter) is converter.images.judge_none
    assert told in converter.log.told[0]


def test_it_is_asked_of_jpeg_files_alone_and_its_no_means_nothing(converter):
    images, asked, answers = converter.images, [], []

    def judge(data):
        asked.append(data)
        return answers[-1]

    files = {}
    for form in ("JPEG", "PNG", "MPO"):
        buffer = io.BytesIO()
        image = Image.fromarray(np.zeros((20, 30, 3), np.uint8))
        image.save(buffer, form, **({"save_all": True, "append_images": [image]} if form == "MPO" else {}))
        files[form] = buffer.getvalue()
    for answer in (False, True):
        answers.append(answer)
        for data in files.values():
            assert images.stored_image(data, images.ImageRules(), judge).data is data
    assert asked == 2 * [files["JPEG"]]
    cut = files["JPEG"][:-5]
    assert images.stored_image(cut, images.ImageRules(), judge).data is cut  # as it was told
    answers.append(False)
    with pytest.raises(images.BadImage):
        images.stored_image(cut, images.ImageRules(), judge)


WITH_QUICK_CHECK = """
import runpy, sys
sys.path.insert(0, {folder!r})
import jpeg_scan, quick_check
quick_check.WORTH_BYTES_PER_WORKER, usual = 1, jpeg_scan.is_whole
def is_whole(data):
    answer = usual(data)
    with open({told!r}, "a") as told:
        told.write(str(int(answer)))
    return answer
jpeg_scan.is_whole = is_whole
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_set_is_the_same_with_and_without_it(tmp_path):
    pytest.importorskip("numba")
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    draw = np.random.RandomState(0)
    for number in range(12):
        image = Image.fromarray(draw.randint(0, 256, (40, 50, 3), np.uint8))
        image.save(folder / f"{number}.JPEG", progressive=number % 3 == 0)
    whole = (folder / "1.JPEG").read_bytes()
    (folder / "cut.JPEG").write_bytes(whole[:-9])
    (folder / "png.JPEG").write_bytes(b"\x89PNG")
    told = tmp_path / "told"
    text = WITH_QUICK_CHECK.format(folder=str(WRITER.parent), told=str(told))
    for name, prefix in (("quick", ["-c", text]), ("usual", [])):
        file = tmp_path / name / "train" / "t.mindrecord"
        words = command("imagenet", file, "--dir", folder.parent, "--on-bad-image", "skip", "--workers", 2)
        done = subprocess.run([words[0], *prefix, *words[1:]], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        log = Path(file.parent, "convert.log").read_text("utf-8")
        assert ("the quick check of JPEG files was loaded" in log) == (name == "quick")
    assert contents(tmp_path / "quick/train") == contents(tmp_path / "usual/train")
    answers = told.read_text()
    assert answers[:2] == "10", "of the sample, whole and cut"
    assert sorted(answers[2:]) == 5 * ["0"] + 8 * ["1"]  # the progressive ones and the cut one; all others
