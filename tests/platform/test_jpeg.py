"""MindSpore decodes with Pillow's libjpeg-turbo, to the pixels of its own."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from src.platform import jpeg
from tests.support import ROOT

OWN_DECODER = "import sys; from tests.platform.test_jpeg import digests; print(*digests())"
LIBRARY = jpeg.pillows_library()
needs_library = pytest.mark.skipif(LIBRARY is None, reason="this Pillow brings no libjpeg-turbo")


def photographs() -> list[bytes]:
    """JPEG files in every form whose decoding differs, of odd sizes; smooth shapes with noise on them."""
    generator = np.random.default_rng(0)
    rows, columns = np.mgrid[:237, :301]
    waves = [np.sin(rows / a) + np.cos(columns / b) for a, b in ((9, 31), (23, 7), (5, 40))]
    pixels = 128 + 50 * np.stack(waves, -1) + generator.normal(0, 8, (237, 301, 3))
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    found = []
    for mode, options in (
        ("RGB", {"subsampling": 2}),
        ("RGB", {"subsampling": 1}),
        ("RGB", {"subsampling": 0, "quality": 98}),
        ("RGB", {"progressive": True}),
        ("RGB", {"restart_marker_blocks": 3}),
        ("L", {}),
        ("CMYK", {}),
    ):
        file = io.BytesIO()
        image.convert(mode).save(file, "JPEG", **options)
        found.append(file.getvalue())
    return found


def digests() -> list[str]:
    """Of each photograph's pixels: decoded whole, and five random crops decoded and resized."""
    import mindspore.dataset as ds
    from mindspore.dataset import vision

    def digest(ops: list, repeats: int) -> str:
        ds.config.set_seed(3)
        rows = [np.frombuffer(file, np.uint8) for file in photographs()]
        dataset = ds.GeneratorDataset(lambda: iter([(row,) for row in rows]), ["image"])
        dataset = dataset.repeat(repeats).map(ops, "image", num_parallel_workers=1)
        images = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        return hashlib.sha256(b"".join(image.tobytes() for (image,) in images)).hexdigest()

    return [digest([vision.Decode()], 1), digest([vision.RandomCropDecodeResize((64, 96))], 5)]


@needs_library
def test_pixels_are_those_of_mindspores_own_decoder():
    done = subprocess.run([sys.executable, "-c", OWN_DECODER], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == digests()  # tests/conftest.py chose the decoder of this process


@needs_library
def test_a_file_that_is_cut_is_an_error_as_before(tmp_path, monkeypatch):
    """MindSpore's error handler throws through the library's functions."""
    from mindspore.dataset import vision

    monkeypatch.chdir(tmp_path)  # MindSpore leaves such a file in the current folder
    cut = np.frombuffer(photographs()[0], np.uint8)[:8000]
    for op in (vision.Decode(), vision.RandomCropDecodeResize((64, 64))):
        with pytest.raises(RuntimeError, match=r"image_utils\.cc"):
            op(cut)


@needs_library
@pytest.mark.slow
def test_mindspore_calls_pillows_library(tmp_path):
    """By what the dynamic linker says of itself."""
    code = (
        "import sys; from src.platform import jpeg; jpeg.choose('on' in sys.argv)\nimport mindspore.dataset"
    )
    bound = {}
    for word in ("on", "off"):
        environment = {**os.environ, "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(tmp_path / word)}
        subprocess.run([sys.executable, "-c", code, word], cwd=ROOT, env=environment, check=True)
        pattern = re.compile(r"file \S*_c_dataengine\S* \[\d+\] to (\S+) .*symbol `jpeg_read_scanlines'")
        lines = (line for path in tmp_path.glob(f"{word}.*") for line in path.open(errors="replace"))
        bound[word] = {Path(found[1]).name for line in lines if (found := pattern.search(line))}
    assert bound["on"] == {Path(str(LIBRARY)).name}
    assert all(name.startswith("_c_dataengine") for name in bound["off"])
    assert bound["off"]


def test_it_must_be_chosen_before_mindspore_is_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, jpeg.DATA_ENGINE, sys)
    assert "slower: MindSpore was imported before" in jpeg.choose(True)[0]


@pytest.mark.parametrize("listed", [None, [], [Path("pillow.libs/libjpeg-1a2b.so.8.3.2")]])
def test_a_pillow_without_the_library_is_told(listed, monkeypatch):
    monkeypatch.delitem(sys.modules, jpeg.DATA_ENGINE, raising=False)
    monkeypatch.setattr(jpeg, "files", lambda name: listed)
    assert "slower: this Pillow brings no libjpeg-turbo" in jpeg.choose(True)[0]


def test_a_library_that_cannot_be_loaded_is_told(monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, jpeg.DATA_ENGINE, raising=False)
    (tmp_path / "libjpeg-0.so.62").write_text("no library")
    monkeypatch.setattr(jpeg, "pillows_library", lambda: tmp_path / "libjpeg-0.so.62")
    assert "libjpeg-0.so.62" in jpeg.choose(True)[0]


def test_it_is_left_alone_on_request(monkeypatch):
    monkeypatch.setattr(jpeg, "use_pillows_decoder", lambda: pytest.fail("loaded"))
    assert jpeg.choose(False) == []
