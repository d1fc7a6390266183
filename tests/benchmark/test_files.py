"""Names of what a sweep writes, and what becomes of an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest

from src.benchmark.files import Files
from src.errors import OptionError


@pytest.mark.parametrize(("name", "stem"), [("bench.json", "bench"), ("bench", "bench"), ("v1.5", "v1.5")])
def test_names(name: str, stem: str) -> None:
    files = Files(Path("out") / name)
    assert files.markdown == Path(f"out/{stem}.md")
    assert files.csv == Path(f"out/{stem}.csv")
    assert files.runs(2) == Path(f"out/{stem}_runs/2")


def test_sweeps_are_numbered_and_never_share_a_folder(tmp_path: Path) -> None:
    files = Files(tmp_path / "bench.json")
    assert files.next_number() == 1
    for name in ("1", "10", "9", "notes"):
        (tmp_path / "bench_runs" / name).mkdir(parents=True)
    assert files.next_number() == 11
    with pytest.raises(OptionError, match="File exists"):
        files.make_room(10)


def test_what_is_there_goes_to_the_sweep_before(tmp_path: Path) -> None:
    files = Files(tmp_path / "bench.json")
    assert files.make_room(1) is None
    files.report.write_text('{"metric_keys": []}')
    files.csv.write_text("numbers")
    files.check()
    assert files.make_room(2) == tmp_path / "bench_runs" / "1"
    assert (tmp_path / "bench_runs" / "1" / "bench.csv").read_text() == "numbers"
    assert not files.report.exists()


@pytest.mark.parametrize("text", ["no JSON", "3", "{}", None])
def test_what_no_sweep_has_written_is_refused(text: str, tmp_path: Path) -> None:
    files = Files(tmp_path / "bench.json")
    mine = files.report if text else files.csv
    mine.write_text(text or "numbers")
    with pytest.raises(OptionError, match=f"{mine} is there"):
        files.check()
