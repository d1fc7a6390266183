"""What the benchmark of the input pipeline computes, and what it refuses; nothing is measured here."""

from __future__ import annotations

import io
import sys

import pytest
from PIL import Image

from benchmarks import input_pipeline
from benchmarks.input_pipeline import DALI, ORIGINAL, SMALL, SUITE_RECORDS, contestants, report, shrink
from benchmarks.rounds import Contestant


def measured(*rates: float) -> Contestant:
    rounds = [{"images": rate, "seconds": 1.0, "cpu_seconds": 2.0} for rate in rates]
    return Contestant("", [], rounds=rounds)


def test_ratios_are_taken_round_by_round_to_dali_in_both_forms():
    table = report(
        {
            (ORIGINAL, SUITE_RECORDS): measured(120, 330),
            (ORIGINAL, DALI): measured(100, 300),
            (SMALL, SUITE_RECORDS): measured(400, 600),
            (SMALL, DALI): measured(200, 400),
        }
    ).splitlines()
    assert "| 1.15 (1.10 to 1.20) | 1.15 (1.10 to 1.20) |" in table[2]
    assert "| 500 (400 to 600) | 1.75 (1.50 to 2.00) | 3.00 (2.00 to 4.00) |" in table[4]
    assert table[2].endswith("| 11.36 |")  # 2 s for 120 and for 330 images


def test_without_dali_there_are_no_ratios():
    assert report({(SMALL, SUITE_RECORDS): measured(1)}).splitlines()[2].count("|  |") == 1


def test_photographs_are_made_smaller_as_the_converter_does(tmp_path):
    (tmp_path / "big" / "n1").mkdir(parents=True)
    Image.new("RGB", (600, 512)).save(tmp_path / "big" / "n1" / "a.JPEG")
    Image.new("RGB", (300, 200)).save(tmp_path / "big" / "n1" / "b.JPEG")
    shrink(tmp_path / "big", tmp_path / "small")
    with Image.open(tmp_path / "small" / "n1" / "a.JPEG") as image:
        assert image.size == (300, 256)
    unchanged = (tmp_path / "big" / "n1" / "b.JPEG").read_bytes()
    assert (tmp_path / "small" / "n1" / "b.JPEG").read_bytes() == unchanged
    assert Image.open(io.BytesIO(unchanged)).size == (300, 200)


def test_all_have_the_same_threads_batches_and_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(input_pipeline.environments, "interpreter", lambda name: f"{name}-python")
    for name, command in contestants(ORIGINAL, tmp_path, 2, 48).items():
        words = [str(word) for word in command()]
        flags = ("-b", "--data-threads") if name.startswith("suite") else ("--batch-size", "--threads")
        assert [words[words.index(flag) + 1] for flag in flags] == ["48", "2"], name
        data = words[words.index("--data-root" if name.startswith("suite") else "--data") + 1]
        assert data.startswith(str(tmp_path)), name
        assert ("--antialias" in words) == ("antialiased" in name)


@pytest.mark.parametrize("words", [[], ["--archive", "absent.tar"]])
def test_without_photographs_it_says_so_and_is_no_failure(words, monkeypatch, capsys):
    monkeypatch.delenv("SUITE_DATA_DIR", raising=False)
    monkeypatch.setattr(sys, "argv", ["input_pipeline", *words])
    input_pipeline.main()
    assert "no photographs" in capsys.readouterr().out


def test_too_few_images_for_a_steady_batch_are_refused(tmp_path, monkeypatch, capsys):
    archive = tmp_path / "some.tar"
    archive.touch()
    words = ["--archive", str(archive), "--images", "320", "--batch", "64"]
    monkeypatch.setattr(sys, "argv", ["input_pipeline", *words])
    with pytest.raises(SystemExit):
        input_pipeline.main()
    assert "--images 320 is not more than 5 batches of 64" in capsys.readouterr().err
