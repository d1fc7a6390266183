"""Finding single images, telling which cannot be decoded, and making the others readable."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image

from src.data import images
from src.data.images import CheckedRows, fault, find_images, readable
from src.errors import DataError


@pytest.fixture
def folder(tmp_path):
    for name in ("b.png", "a.JPG", "sub/c.bmp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (40, 30)).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    return tmp_path


def test_a_file_a_folder_and_a_glob(folder):
    assert find_images(str(folder / "notes.txt")) == [str(folder / "notes.txt")]
    assert find_images(str(folder)) == [str(folder / name) for name in ("a.JPG", "b.png", "sub/c.bmp")]
    assert find_images(str(folder / "*.png")) == [str(folder / "b.png")]
    with pytest.raises(DataError, match="nothing"):
        find_images(str(folder / "nothing*"))


def test_whole_files_have_no_fault(folder):
    assert [fault(name) for name in find_images(str(folder))] == ["", "", ""]


@pytest.mark.parametrize("size", [0, 3, 20, 100, 200, 300, 400, 600, 700, 2000, -20])
def test_cut_files_are_told(folder, size):
    """Some of these would end the process inside MindSpore's own decoder; it takes the last for whole."""
    noise = Image.effect_noise((200, 300), 50).convert("RGB")
    noise.save(folder / "x.jpg")
    path = folder / "cut.jpg"
    path.write_bytes((folder / "x.jpg").read_bytes()[:size])
    assert re.search("cannot be decoded|is not an image|is empty", fault(str(path)))


def test_what_is_no_image_is_told_by_content_not_by_name(folder):
    (folder / "x.jpg").write_text("<html>")
    assert "is not an image" in fault(str(folder / "x.jpg"))
    assert "cannot be read" in fault(str(folder / "nowhere.jpg"))


def saved(picture: Image.Image, form: str, **options) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


PICTURE = Image.fromarray(np.random.RandomState(0).randint(0, 256, (30, 40, 3)).astype(np.uint8))
SMOOTH = PICTURE.resize((8, 6)).resize((40, 30))
DEEP = Image.fromarray(np.arange(1200, dtype=np.uint16).reshape(30, 40) * 50)


@pytest.mark.parametrize(
    ("data", "expected", "levels"),
    [
        (saved(PICTURE, "PNG"), PICTURE, 0),
        (saved(PICTURE, "BMP"), PICTURE, 0),
        (saved(PICTURE, "TIFF"), PICTURE, 0),
        (saved(PICTURE.quantize(64), "GIF"), PICTURE.quantize(64).convert("RGB"), 0),
        (saved(SMOOTH, "WEBP", quality=95), SMOOTH, 25),
        (saved(PICTURE.convert("RGBA"), "PNG"), PICTURE, 0),
        (saved(DEEP, "PNG"), Image.fromarray((np.asarray(DEEP) >> 8).astype(np.uint8)).convert("RGB"), 1),
    ],
    ids=["png", "bmp", "tiff", "gif", "webp", "rgba", "16 bit"],
)  # fmt: skip
def test_mindspore_sees_the_picture_in_every_format(data, expected, levels):
    from mindspore.dataset import vision

    pixels = vision.Decode()(np.frombuffer(readable(data), np.uint8))
    assert pixels.shape == (30, 40, 3)
    assert np.abs(pixels.astype(int) - np.asarray(expected)).max() <= levels


def test_what_can_be_read_stays_as_it_is():
    data = saved(PICTURE, "JPEG")
    assert readable(data) is data


def test_a_row_is_looked_at_once_and_a_re_encoded_one_always(monkeypatch):
    looked = []
    monkeypatch.setattr(images, "readable", lambda data: (looked.append(data), readable(data))[1])
    good, odd = (np.frombuffer(saved(PICTURE, form), np.uint8) for form in ("JPEG", "GIF"))
    check = CheckedRows(2)
    for _ in range(3):
        assert (check(0, good) == good).all()
        assert check(1, odd)[:4].tobytes() == b"\x89PNG"
    assert len(looked) == 1 + 3
