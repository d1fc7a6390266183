"""The contact sheet holds the pixels that the network sees, and their labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scripts import show_batch
from src import cli
from tests.support import command

SIDE = 56  # enlarged twice: 112 px


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes, four images each; every image has a colour of its own."""
    folder = tmp_path_factory.mktemp("classes")
    for split in ("train", "val"):
        for k in range(8):
            path = folder / split / "ab"[k // 4] / f"{k}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (70, 60), (30 * k, 255 - 30 * k, 90)).save(path)
    return folder


def words(folder: Path, *more: object) -> list[str]:
    size = ["--image-shape", f"3,{SIDE},{SIDE}", "--data-val-resize", "60", "-b", "8", "--seed", "3"]
    return ["--data-backend", "imagefolder", "--data-root", str(folder), *size, *map(str, more)]


def test_the_sheet_shows_every_image_of_the_batch_enlarged(folder, tmp_path, capsys):
    target = tmp_path / "batch.png"
    assert show_batch.main([*words(folder), "--output", str(target)]) == 0
    assert "8 images of 56x56 pixels" in capsys.readouterr().out
    pixels = np.asarray(Image.open(target).convert("RGB")).reshape(-1, 3)
    colours, counts = np.unique(pixels, axis=0, return_counts=True)
    whole = {tuple(colour): count for colour, count in zip(colours.tolist(), counts) if count >= 112 * 112}
    del whole[(255, 255, 255)]
    assert whole == {(30 * k, 255 - 30 * k, 90): 112 * 112 for k in range(8)}


def test_labels_are_those_of_the_images(folder):
    tiles = show_batch.tiles_of(cli.parse(words(folder), "x"), 0, val=False)
    assert len(tiles) == 8
    for tile in tiles:
        assert tile.pixels.shape == (SIDE, SIDE, 3)
        assert tile.caption == "ab"[int(tile.pixels[0, 0, 0]) // 120]


def test_the_seed_and_the_epoch_decide_what_is_seen(folder):
    config = cli.parse(words(folder), "x")
    first, again, later = (show_batch.tiles_of(config, epoch, val=False) for epoch in (0, 0, 1))
    order = [[int(tile.pixels[0, 0, 0]) for tile in tiles] for tiles in (first, again, later)]
    assert order[0] == order[1] != order[2]


def test_validation_and_the_size_of_an_epoch(folder):
    config = cli.parse(words(folder, "--image-size-steps", "40@2", "--val-image-size", "48"), "x")
    assert show_batch.tiles_of(config, 0, val=True)[0].pixels.shape == (48, 48, 3)
    assert [tile.caption for tile in show_batch.tiles_of(config, 0, val=True)] == [*"aaaabbbb"]
    assert show_batch.tiles_of(config, 2, val=False)[0].pixels.shape == (40, 40, 3)


def test_where_images_are_normalised_makes_no_difference(folder):
    host, device = (
        show_batch.tiles_of(cli.parse(words(folder, *more), "x"), 0, val=False)
        for more in ([], ["--normalize-on-device"])
    )
    assert len(host) == len(device) == 8
    assert all((one.pixels == other.pixels).all() for one, other in zip(host, device))


def test_mixed_images_carry_both_labels_and_their_shares(folder, graph_mode):
    plain = show_batch.tiles_of(cli.parse(words(folder), "x"), 0, val=False)
    mixed = show_batch.tiles_of(cli.parse(words(folder, "--mixup", "1"), "x"), 0, val=False)
    for own, partner, tile in zip(plain, reversed(plain), mixed):
        own_line, partner_line = tile.caption.splitlines()
        share = int(own_line.split("%")[0]) / 100
        assert own_line.endswith(own.caption)
        assert partner_line.endswith(partner.caption)
        expected = share * own.pixels[0, 0] + (1 - share) * partner.pixels[0, 0]
        np.testing.assert_allclose(tile.pixels[0, 0], expected, atol=2)


def test_mistakes_are_one_sentence(folder, tmp_path, capsys):
    target = ["--output", str(tmp_path / "x.png")]
    assert show_batch.main([*words(folder, "--bach-size", "3"), *target]) == 2
    assert "did you mean --batch-size" in capsys.readouterr().err
    assert show_batch.main([*words(folder, "-b", "9"), *target]) == 3
    assert "8 training images" in capsys.readouterr().err
    assert show_batch.main([*words(folder), "--output", str(tmp_path / "nowhere" / "x.png")]) == 2
    assert "--output" in capsys.readouterr().err


def test_run_by_its_path_it_says_how_to_run_it():
    done = command("scripts/show_batch.py", "--help")
    assert done.returncode == 1
    assert done.stderr == "show_batch: run it in the suite's folder, as: python -m scripts.show_batch ...\n"


def test_a_long_caption_is_shortened():
    tile = show_batch.Tile(np.zeros((112, 112, 3), np.uint8), "a very long name of a class that does not fit")
    assert show_batch.sheet([tile]).width == 112 + 2 * show_batch.MARGIN
