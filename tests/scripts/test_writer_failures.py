"""How a conversion fails: early, in one sentence, with the right code, and with nothing half-done left."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from converting import command, contents, converted, run, write_plugin


def test_an_existing_set_is_refused_before_any_work(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train/manifest.json").write_text("old", "utf-8")
    plugin = write_plugin(
        tmp_path / "p",
        "yield {}",
        head=f"def mindrecord_configure(args): open({str(tmp_path / 'ran')!r}, 'w')",
    )
    done = run(plugin, tmp_path / "train/train.mindrecord")
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert contents(tmp_path / "train") == {"manifest.json": b"old"}


def test_overwrite_replaces_the_whole_set_or_nothing(tmp_path):
    file = tmp_path / "train/train.mindrecord"
    converted("template", file, "--mindrecord_partitions", 2)
    old = contents(tmp_path / "train")
    bad = write_plugin(tmp_path / "p", "raise KeyError('oh')")
    assert run(bad, file, "--overwrite").returncode == 1
    assert contents(tmp_path / "train") == old
    converted("template", file, "--mindrecord_partitions", 1, "--overwrite")
    assert set(contents(tmp_path / "train")) == {"manifest.json", "train.mindrecord", "train.mindrecord.db"}
    assert {path.name for path in tmp_path.iterdir()} == {"train", "p"}


def test_overwrite_never_deletes_what_is_no_record_set(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train/photo.JPEG").write_bytes(b"precious")
    done = run("template", tmp_path / "train/train.mindrecord", "--overwrite")
    assert done.returncode == 2
    assert "photo.JPEG" in done.stderr
    assert contents(tmp_path / "train") == {"photo.JPEG": b"precious"}


BROKEN = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)\nyield {}", 1, "SIGKILL"),
    "exits": ("os._exit(7)\nyield {}", 1, "ended with exit code 7"),
    "raises": ("raise KeyError('oh')\nyield {}", 1, "KeyError"),
    "label": ("yield {'data': b'x', 'label': 5}", 3, "label 5 is outside 0..1"),
    "negative": ("yield {'data': b'x', 'label': -1}", 3, "label -1 is outside 0..1"),
    "type": ("yield {'data': b'x', 'label': 'cat'}", 3, "'cat', which is no int32"),
    "empty field": ("yield {'data': b'', 'label': 1}", 3, "'data' is empty"),
    "lacks": ("yield {'data': b'x'}", 3, "lacks the field 'label'"),
    "empty": ("return\nyield {}", 3, "not one usable row"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_ends_the_run_with_a_sentence(name, tmp_path):
    body, code, words = BROKEN[name]
    head = "def mindrecord_classes():\n    return [('a', 'a'), ('b', 'b')]"
    plugin = write_plugin(tmp_path / "p", body, head)
    done = run(
        plugin, tmp_path / "out/out.mindrecord", "--mindrecord_partitions", 2, "--mindrecord_workers", 2
    )
    assert done.returncode == code, done.stderr
    assert words in done.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


@pytest.mark.parametrize(
    ("number", "words"), [(5, "did not reach the disk: Input/output error"), (28, "the disk is full")]
)
def test_a_disk_that_loses_what_it_took_ends_the_run(number, words, tmp_path):
    """What fails after the writing, and beside it, counts before anything is published."""
    head = (
        "import os\nreal = os.fsync\ndef fsync(file):\n"
        "    if os.readlink(f'/proc/self/fd/{file}').endswith('mindrecord1'):\n"
        f"        raise OSError({number}, os.strerror({number}))\n"
        "    real(file)\nos.fsync = fsync"
    )
    plugin = write_plugin(tmp_path / "p", "yield {'data': b'x', 'label': 0}", head)
    options = ("--mindrecord_partitions", 3, "--mindrecord_workers", 1)
    done = run(plugin, tmp_path / "out/out.mindrecord", *options)
    assert done.returncode == 1, done.stderr
    assert words in done.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_sigterm_leaves_nothing_behind(tmp_path):
    plugin = write_plugin(
        tmp_path / "p", f"open({str(tmp_path / 'p/at-work')!r}, 'w')\ntime.sleep(60)\nyield {{}}"
    )
    child = subprocess.Popen(command(plugin, tmp_path / "out/out.mindrecord"), stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not (tmp_path / "p/at-work").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (tmp_path / ".out.converting").is_dir()
    other = run(plugin, tmp_path / "out/out.mindrecord")
    assert other.returncode == 1
    assert "another conversion" in other.stderr
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)  # returns only when no worker holds the pipe any more
    assert child.returncode == 143
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_an_option_that_writer_has_itself_is_no_option_of_a_plugin(tmp_path):
    head = "def mindrecord_options(parser):\n    parser.add_argument('--resize')"
    done = run(write_plugin(tmp_path / "p", "yield {}", head), tmp_path / "out/out.mindrecord")
    assert done.returncode == 2
    assert "--resize" in done.stderr
    assert len(done.stderr.splitlines()) == 1


WRONG = {
    "unknown option": (("template", "o/o.mindrecord", "--colour", "red"), "--colour"),
    "no shards": (("template", "o/o.mindrecord", "--mindrecord_partitions", "0"), "'0' is no whole number"),
    "more shards than tasks": (("template", "o/o.mindrecord", "--mindrecord-partitions", "99"), "24 tasks"),
    "workers in words": (("template", "o/o.mindrecord", "--mindrecord_workers", "two"), "'two'"),
    "unknown plug-in": (("nosuch", "o/o.mindrecord"), "imagenet, template"),
    "no folder": (("template", "o.mindrecord"), "folder of its own"),
    "forbidden name": (("template", "o/a:b.mindrecord"), "refuses this file name"),
    "a check of nothing": (
        ("template", "o/o.mindrecord", "--check", "none", "--resize", "64"),
        "--check none",
    ),
    "an image of no size": (("template", "o/o.mindrecord", "--resize", "0"), "'0' is no whole number"),
    "other option of the plug-in": (("template", "o/o.mindrecord", "--dir", "x"), "--dir"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_end_in_one_sentence(name, tmp_path):
    words, expected = WRONG[name]
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert os.listdir(tmp_path) == []
