"""How tasks are dealt to shards, and what is told while and after they are written."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from converting import WRITER, command, converted, module_of, rows_of, run, write_plugin

SIZES = "def mindrecord_task_sizes():\n    return {sizes}"


def test_tasks_are_balanced_by_their_bytes(tmp_path):
    body = "yield {'data': b'x' * (60_000 if task_id == 0 else 20_000), 'label': task_id}"
    plugin = write_plugin(tmp_path / "p", body, SIZES.format(sizes="[60_000, 20_000, 20_000, 20_000]"))
    manifest = converted(plugin, tmp_path / "out/out.mindrecord", "--partitions", 2)
    assert [shard["num_rows"] for shard in manifest["shards"]] == [1, 3]
    assert [int(row["label"]) for row in rows_of(tmp_path / "out")] == [0, 1, 2, 3]


def test_one_size_for_each_task_is_asked_for(tmp_path):
    plugin = write_plugin(tmp_path / "p", "yield {}", SIZES.format(sizes="[1, 2, 3]"))
    done = run(plugin, tmp_path / "out/out.mindrecord")
    assert done.returncode == 1
    assert "4 tasks" in done.stderr
    assert "3 sizes" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


PROPERTIES = """
import random
from layout import choose_layout, deal_tasks, shards_of_node
for rows in (10**3, 10**5, 10**6, 10**7):
    for sizes in (None, (100 * rows, 100)):
        assert rows / choose_layout(sizes, None, rows).num_shards <= 32768  # half a kB of memory each
    if rows > 10**5:
        assert choose_layout(sizes, 2, rows).page_size <= 512 << 10
for size in (2**20, 2**26, 8 * 2**26, 8 * 2**26 + 1, 10**9, 140 * 10**9):
    shards = choose_layout((size, 1000), None, 10**4).num_shards
    assert shards == {2**20: 1, 2**26: 1, 8 * 2**26: 8, 10**9: 16, 8 * 2**26 + 1: 16}.get(size, 64)
    assert shards < 8 or shards % 8 == 0, "equal shares for 2, 4 and 8 workers"
draw = random.Random(3)
for _ in range(500):
    tasks = draw.randint(1, 60)
    shards = draw.randint(1, tasks)
    sizes = [draw.choice((0, 1, 1000, 200_000, 9_000_000)) for _ in range(tasks)]
    for given in (None, sizes):
        runs = deal_tasks(tasks, shards, given)
        assert len(runs) == shards and all(len(run) for run in runs)
        assert [task for run in runs for task in run] == list(range(tasks))
    weights = [sum(sizes[task] + 1024 for task in run) for run in runs]
    assert max(weights) <= sum(weights) / shards + 2 * (max(sizes) + 1024) or min(map(len, runs)) == 1
    nodes = draw.randint(1, shards)
    assert [s for k in range(nodes) for s in shards_of_node(k, nodes, shards)] == list(range(shards))
"""


def test_every_task_is_in_one_shard_and_every_shard_has_one_machine():
    line = [sys.executable, "-c", PROPERTIES]
    done = subprocess.run(line, cwd=WRITER.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_summary_and_log_say_how_fast_it_was(tmp_path):
    done = run("template", tmp_path / "out/out.mindrecord", "--images", 2, "--mindrecord_partitions", 2)
    assert done.returncode == 0, done.stderr
    assert re.search(r"6 images of 3 classes in 2 shard\(s\), [\d.]+ MB, in [\d.]+ s \(", done.stdout)
    assert re.search(r"\([\d,]+ images/s, [\d.]+ MB/s\); 0 repaired, 0 refused", done.stdout)
    assert re.search(r"about \d+ MB are needed, [\d,]+ MB are free", done.stderr)
    log = (tmp_path / "out/convert.log").read_text("utf-8").splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}  ", line) for line in log)
    for words in ("--images 2", "2 of 2 shards", "out.mindrecord1: 3 rows", "MB are free", "6 images of 3"):
        assert any(words in line for line in log), words


@pytest.mark.parametrize(("known", "share"), [(None, "30 %"), (40_000_000, "25 %")])
def test_progress_shows_speeds_and_the_time_left(known, share):
    progress = module_of("progress")
    log = progress.Log("writer.py")
    shown = progress.Progress("train", "images", num_tasks=10, num_bytes=known, log=log)
    shown.start -= 100
    shown.add(3, 30, 10_000_000)
    line = shown.line()
    assert line.startswith(f"train: 30 images ({share}), 0 images/s, 0.1 MB/s, about ")
    assert "4 min left" in line if known is None else "5 min left" in line


MEASURE = (
    "import resource, subprocess, sys\n"
    "subprocess.run(sys.argv[1:], check=True)\n"
    "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
)
MANY = (
    "for number in range({rows}):\n"
    "    yield {{'data': bytes(4000), 'label': number % 10, 'image': LARGE if number == 500 else SMALL}}"
)
PICTURES = """
mindrecord_schema.update(image={{'type': 'bytes'}})
SMALL, LARGE = open({small!r}, 'rb').read(), open({large!r}, 'rb').read()
"""


@pytest.mark.slow
def test_memory_is_bounded(tmp_path):
    """Half a kB for each of 5,000 rows; a JPEG of 64 megapixels would take 192 MB if decoded in full."""
    from PIL import Image

    files, peaks = {16: str(tmp_path / "small.jpg"), 8_000: str(tmp_path / "large.jpg")}, []
    for side, file in files.items():
        Image.new("RGB", (side, side), (10, 200, 30)).save(file)
    for rows, side in ((1_000, 16), (5_000, 8_000)):
        head = PICTURES.format(small=files[16], large=files[side])
        plugin = write_plugin(tmp_path / f"p{rows}", MANY.format(rows=rows), head)
        line = [sys.executable, "-c", MEASURE, *command(plugin, tmp_path / f"out{rows}/x.mindrecord")]
        done = subprocess.run(line, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout.split("peak ")[1]))
    assert max(peaks) < 100, peaks
    assert peaks[1] - peaks[0] < 50, peaks
