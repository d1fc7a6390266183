"""The disk fills up: told before, or noticed on the way; nothing remains."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from converting import command, write_plugin

INSIDE = "mount -t tmpfs -o size=40m tmpfs {folder} || exit 99; {command}; echo code $?; ls -A {folder}"
TWELVE_MB = "yield {'data': os.urandom(12_000_000), 'label': 0}"


def on_a_small_disk(folder, plugin, *options):
    """Convert onto a tmpfs of 40 MB that only this command sees; prints its code and the files left."""
    folder.mkdir()
    words = shlex.join(command(plugin, folder / "out/out.mindrecord", *options))
    line = INSIDE.format(folder=shlex.quote(str(folder)), command=words)
    try:
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", line],
            capture_output=True,
            text=True,
            timeout=120,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here, to mount a small disk with")
    if "code" not in done.stdout:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    return done


def test_too_little_space_is_told_before_any_work(tmp_path):
    ran = tmp_path / "ran"
    body = f"open({str(ran)!r}, 'w')\n{TWELVE_MB}"
    head = "def mindrecord_sizes():\n    return 48_000_000, 12_000_000"
    done = on_a_small_disk(tmp_path / "disk", write_plugin(tmp_path / "p", body, head))
    assert done.stdout == "code 1\n"
    assert "has 42 MB free, and about" in done.stderr
    needed = int(done.stderr.split("and about ")[1].split(" MB are needed")[0])
    assert 48 < needed < 150
    assert not ran.exists()


def test_a_disk_that_fills_up_on_the_way(tmp_path):
    plugin = write_plugin(tmp_path / "p", TWELVE_MB)
    done = on_a_small_disk(tmp_path / "disk", plugin, "--mindrecord_partitions", 4, "--workers", 1)
    assert done.stdout == "code 1\n", "no file is left, hidden ones neither"
    last = done.stderr.splitlines()[-1]
    assert "the disk is full after" in last
    needed = int(last.split("about ")[1].split(" MB are needed")[0])
    assert 40 < needed < 90
