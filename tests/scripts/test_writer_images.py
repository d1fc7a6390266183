"""Damaged images are found at conversion, odd ones repaired, so that MindSpore decodes every row."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from converting import converted, rows_of, run
from PIL import Image


def encoded(image, form, **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def without_adobe_marker(jpeg):
    start = jpeg.index(b"\xff\xee")
    return jpeg[:start] + jpeg[start + 2 + int.from_bytes(jpeg[start + 2 : start + 4], "big") :]


@pytest.fixture(scope="module")
def odd_images(tmp_path_factory):
    """One class of good files, one of odd formats, one of damaged files; all named .JPEG."""
    folder = tmp_path_factory.mktemp("odd")
    noise = Image.fromarray(np.random.RandomState(0).randint(0, 256, (200, 300, 3), np.uint8))
    jpeg = encoded(noise, "JPEG")
    red = Image.new("RGB", (40, 40), (200, 40, 40))
    grey = Image.fromarray(np.full((40, 40), 100 * 256, np.uint16))
    animation = [Image.new("RGB", (40, 40), colour) for colour in ("green", "blue")]
    files = {
        "a_good/jpeg": jpeg,
        "a_good/png": encoded(red, "PNG"),
        "b_odd/gif": encoded(red, "GIF", save_all=True, append_images=animation),
        "b_odd/webp": encoded(red, "WEBP"),
        "b_odd/tiff": encoded(red, "TIFF"),
        "b_odd/cmyk": without_adobe_marker(encoded(red.convert("CMYK"), "JPEG")),
        "b_odd/grey16": encoded(grey, "PNG"),
        **{f"c_bad/cut{length}": jpeg[:length] for length in (0, 3, 200, 400, 600, 2000, len(jpeg) - 20)},
        "c_bad/html": b"<html><body>404 not found</body></html>",
    }
    for name, data in files.items():
        path = folder / f"{name}.JPEG"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    (folder / "c_bad/dangling.JPEG").symlink_to("nowhere.JPEG")
    return folder


def test_every_bad_image_is_named_and_nothing_is_published(odd_images, tmp_path):
    done = run("imagenet", tmp_path / "out/train/train.mindrecord", "--dir", odd_images)
    assert done.returncode == 3
    bad = sorted(path.name for path in (odd_images / "c_bad").iterdir())
    assert len(bad) == 9
    assert [name for name in bad if f"c_bad/{name} " not in done.stderr] == []
    assert "a_good" not in done.stderr
    assert "--on-bad-image skip" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_skip_leaves_bad_images_out_and_repairs_odd_ones(odd_images, tmp_path):
    import mindspore.dataset.vision as vision

    out = tmp_path / "train"
    manifest = converted("imagenet", out / "train.mindrecord", "--dir", odd_images, "--on-bad-image", "skip")
    assert {Path(item["file"]).parent.name for item in manifest["refused"]} == {"c_bad"}
    assert len(manifest["refused"]) == 9
    assert [item["num_images"] for item in manifest["classes"]] == [2, 5, 0]
    repaired = {Path(item["file"]).stem: item["reason"] for item in manifest["repaired"]}
    assert set(repaired) == {"gif", "webp", "tiff", "cmyk", "grey16"}
    assert "first of 3 frames" in repaired["gif"]
    rows = {str(row["file_name"]): row["image"] for row in rows_of(out)}
    assert rows["a_good/jpeg.JPEG"].tobytes() == (odd_images / "a_good/jpeg.JPEG").read_bytes()
    for name in repaired:
        pixels = vision.Decode()(np.frombuffer(rows[f"b_odd/{name}.JPEG"].tobytes(), np.uint8))
        expected = (100, 100, 100) if name == "grey16" else (200, 40, 40)
        assert np.abs(pixels.mean((0, 1)) - expected).max() < 4, name
