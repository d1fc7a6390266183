"""A run that was killed leaves the old set or nothing, and the next one ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from converting import command, contents, converted, names_of, rows_of, run, write_plugin

HEAD = "HERE = os.path.dirname(os.path.abspath(__file__))"
BODY = """with open(f'{HERE}/calls', 'a') as calls:
    calls.write(str(task_id))
while task_id == 2 and os.path.exists(f'{HERE}/hold'):
    open(f'{HERE}/at-work', 'w').close()
    time.sleep(0.02)
with open(f'{HERE}/{task_id}.txt', 'rb') as source:
    yield {'data': source.read(), 'label': task_id}"""
OPTIONS = ("--mindrecord_partitions", 4, "--workers", 1)
TWICE = "going on with an unfinished conversion of the same data: 2 of 4 shards are finished"


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def interrupted(plugin, file, number, *options):
    """A conversion that gets a signal while it is at its third shard of four; the finished process."""
    (plugin / "hold").touch()
    child = subprocess.Popen(command(plugin, file, *OPTIONS, *options), stderr=subprocess.PIPE, text=True)
    wait_for((plugin / "at-work").exists)
    child.send_signal(number)
    child.stderr_text = child.communicate(timeout=30)[1]  # ends when the workers have ended too
    for name in ("hold", "at-work", "calls"):
        (plugin / name).unlink()
    return child


def make_plugin(folder, head=HEAD):
    plugin = write_plugin(folder, BODY, head)
    for task in range(4):
        (plugin / f"{task}.txt").write_text(f"content {task}", "utf-8")
    return plugin


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """An undisturbed set in done/out, what a killed run left in killed/, and their plug-in."""
    folder = tmp_path_factory.mktemp("resume")
    plugin = make_plugin(folder / "p")
    converted(plugin, folder / "done/out/out.mindrecord", *OPTIONS)
    (plugin / "calls").unlink()
    child = interrupted(plugin, folder / "killed/out/out.mindrecord", signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert os.listdir(folder / "killed") == [".out.converting"]
    return folder


@pytest.fixture
def left(base, tmp_path):
    """A place of its own for what the killed run left."""
    shutil.copytree(base / "killed/.out.converting", tmp_path / ".out.converting")
    yield tmp_path / "out"
    (base / "p/calls").unlink(missing_ok=True)


def test_a_killed_run_resumes_and_ends_identical(base, left):
    done = run(base / "p", left / "out.mindrecord", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert TWICE in done.stderr
    assert "2 shard(s) kept from before" in done.stdout
    assert contents(left) == contents(base / "done/out")
    assert os.listdir(left.parent) == ["out"]
    log = (left / "convert.log").read_text("utf-8")
    assert log.count("out.mindrecord0: 1 rows") == 2, "by both runs"
    assert log.count("(kept from before)") == 2


def test_other_options_start_over_and_say_so(base, left):
    options = (*OPTIONS, "--mindrecord_seed", 5)
    done = run(base / "p", left / "out.mindrecord", *options)
    assert done.returncode == 0, done.stderr
    assert "starting over: an unfinished conversion here had other options, files or versions" in done.stderr
    assert "kept from before" not in done.stdout
    manifest = json.loads((left / "manifest.json").read_text("utf-8"))
    assert manifest["seed"] == 5
    expected = contents(base / "done/out")
    assert contents(left) == {**expected, "manifest.json": (left / "manifest.json").read_bytes()}


def test_a_mistake_on_the_command_line_does_not_cost_what_was_done(base, left):
    before = sorted(path.name for path in (left.parent / ".out.converting/set").iterdir())
    done = run(base / "p", left / "out.mindrecord", "--mindrecord_partitions", 99)
    assert done.returncode == 2
    assert sorted(path.name for path in (left.parent / ".out.converting/set").iterdir()) == before


def test_a_changed_file_and_a_damaged_shard_are_written_again(base, left):
    staged = left.parent / ".out.converting/set/out.mindrecord1"
    data = bytearray(staged.read_bytes())
    data[-1] ^= 1
    staged.write_bytes(data)
    (base / "p/0.txt").write_text("Content 0", "utf-8")
    try:
        done = run(base / "p", left / "out.mindrecord", *OPTIONS)
        assert done.returncode == 0, done.stderr
        assert "kept from before" not in done.stdout
        assert [row["data"].tobytes() for row in rows_of(left)] == [
            b"Content 0",
            b"content 1",
            b"content 2",
            b"content 3",
        ]
    finally:
        (base / "p/0.txt").write_text("content 0", "utf-8")


def test_a_change_of_the_plugin_starts_over(base, left):
    (base / "p/other.py").write_text("X = 1\n", "utf-8")
    try:
        done = run(base / "p", left / "out.mindrecord", *OPTIONS)
    finally:
        (base / "p/other.py").unlink()
    assert done.returncode == 0, done.stderr
    assert "starting over" in done.stderr
    assert contents(left) == contents(base / "done/out")


@pytest.mark.slow
def test_sigterm_keeps_finished_shards_beside_the_old_set(tmp_path):
    """And a plug-in that vouches for its sources is not asked for the rows of finished shards again."""
    vouching = "def mindrecord_fingerprint():\n    return 'of the sources'"
    plugin = make_plugin(tmp_path / "p", f"{HEAD}\n{vouching}")
    file = tmp_path / "sets/out/out.mindrecord"
    converted(plugin, file, "--mindrecord_partitions", 1)
    old = contents(file.parent)
    child = interrupted(plugin, file, signal.SIGTERM, "--overwrite")
    assert child.returncode == 143
    assert "2 finished shard(s) are kept in" in child.stderr_text
    assert contents(file.parent) == old
    done = run(plugin, file, *OPTIONS, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert TWICE in done.stderr
    assert (plugin / "calls").read_text("utf-8") == "23"
    assert [int(row["label"]) for row in rows_of(file.parent)] == [0, 1, 2, 3]
    assert os.listdir(file.parents[1]) == ["out"]


@pytest.mark.slow
def test_killed_at_any_moment_there_is_the_old_set_or_nothing(tmp_path):
    options = ("--images", 20, "--mindrecord_partitions", 6, "--workers", 2)
    converted("template", tmp_path / "expected/x/x.mindrecord", *options)
    expected = contents(tmp_path / "expected/x")
    file = tmp_path / "sets/x/x.mindrecord"
    moments = random.Random(0)
    for _ in range(25):
        child = subprocess.Popen(command("template", file, *options), stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.3, 3))
        child.kill()
        child.wait()
        if file.parent.exists():
            assert contents(file.parent) == expected
            break
    if not file.parent.exists():
        converted("template", file, *options)
    assert contents(file.parent) == expected
    assert len(names_of(rows_of(file.parent))) == 60
