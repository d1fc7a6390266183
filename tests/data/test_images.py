"""Finding single images, and telling which cannot be decoded."""

from __future__ import annotations

import pytest
from PIL import Image

from src.data.images import fault, find_images
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


@pytest.mark.parametrize("size", [0, 3, 20, 100, 300, 400, 600])
def test_cut_files_are_told(folder, size):
    """Some of these would end the process inside MindSpore's own decoder."""
    Image.effect_noise((200, 300), 50).convert("RGB").save(folder / "x.jpg")
    path = folder / "cut.jpg"
    path.write_bytes((folder / "x.jpg").read_bytes()[:size])
    assert "cannot be decoded" in fault(str(path))


def test_other_formats_are_told_by_content_not_by_name(folder):
    Image.new("RGB", (40, 30)).save(folder / "x.gif")
    (folder / "x.gif").rename(folder / "x.jpg")
    assert "GIF" in fault(str(folder / "x.jpg"))
    assert "cannot be decoded" in fault(str(folder / "notes.txt"))
