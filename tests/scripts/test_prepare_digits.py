"""The digits as image folders: counts, equal shares, pixels, the same bytes again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SCRIPT = Path(__file__).parents[2] / "scripts" / "prepare_digits.py"
sklearn_datasets = pytest.importorskip("sklearn.datasets")


def run(*words):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, words)], capture_output=True, text=True, timeout=120
    )


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.*"))}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits") / "dst"
    done = run(folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_digit_is_written_once_and_split_in_equal_shares(digits):
    train, val = (sorted((digits / split).rglob("*.png")) for split in ("train", "val"))
    assert (len(train), len(val)) == (1437, 360)
    assert len({path.name for path in train + val}) == 1797
    for digit in map(str, range(10)):
        in_train, in_val = (sum(path.parent.name == digit for path in paths) for paths in (train, val))
        assert abs(in_val / (in_train + in_val) - 0.2) < 0.01


def test_images_are_the_originals_enlarged(digits):
    source = sklearn_datasets.load_digits()
    for path in sorted(digits.rglob("*.png"))[::100]:
        row = int(path.stem.split("_")[1])
        assert str(source.target[row]) == path.parent.name
        image = Image.open(path)
        assert (image.mode, image.size) == ("L", (32, 32))
        small = np.asarray(image.resize((8, 8), Image.Resampling.BOX), float)
        assert np.corrcoef(small.ravel(), source.images[row].ravel())[0, 1] > 0.95
    brightest = max(np.asarray(Image.open(path)).max() for path in sorted(digits.rglob("*.png"))[:20])
    assert brightest == 255


def test_mapping_file_has_three_columns(digits):
    lines = (digits / "labels.txt").read_text("utf-8").splitlines()
    assert lines[0] == "0 0 zero"
    assert lines[9] == "9 9 nine"
    assert len(lines) == 10


def test_the_seed_decides_the_split(digits, tmp_path):
    assert run(tmp_path / "same", "--seed", 0).returncode == 0
    assert contents(tmp_path / "same") == contents(digits)
    assert run(tmp_path / "other", "--seed", 1).returncode == 0
    assert set(contents(tmp_path / "other")) != set(contents(digits))


def test_an_existing_folder_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    done = run(tmp_path)
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_missing_scikit_learn_is_one_sentence(tmp_path):
    block = "import sys; sys.modules['sklearn'] = None; import runpy; sys.argv = [sys.argv[1], sys.argv[2]]; "
    block += "runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", block, str(SCRIPT), str(tmp_path / "dst")], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install scikit-learn" in done.stderr
    assert list(tmp_path.iterdir()) == []
