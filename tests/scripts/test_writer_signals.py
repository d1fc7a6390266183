"""Ctrl-C and SIGTERM, whatever the program is at: the right exit code, and nothing half-done in sight."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from converting import RECORDS, command, contents, converted, records, write_plugin

NUMBERS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM}
SIGNALS = ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)]
BODY = """while task_id == 2 and os.path.exists(f'{HERE}/hold'):
    open(f'{HERE}/at-work', 'w').close()
    time.sleep(0.02)
yield {'data': b'x' * (task_id + 1), 'label': task_id}"""
HEAD = "HERE = os.path.dirname(os.path.abspath(__file__))"
OPTIONS = ("--mindrecord_partitions", 4, "--workers", 2)


def end(line, at_work, number):
    """Run it, as the leader of a process group, and signal the whole group once it is at work."""
    child = subprocess.Popen(
        list(map(str, line)),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A job in the background of a shell ignores Ctrl-C, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not at_work.exists():
        assert time.monotonic() < deadline
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.02)
    time.sleep(0.5)  # the other worker finishes what it can
    os.killpg(child.pid, number)
    child.told = child.communicate(timeout=30)[1]  # ends when the workers have ended too
    return child


@pytest.mark.parametrize("name", SIGNALS)
def test_a_conversion_that_is_ended_goes_on_from_there(name, tmp_path):
    plugin = write_plugin(tmp_path / "p", BODY, HEAD)
    converted(plugin, tmp_path / "expected/out/out.mindrecord", *OPTIONS)
    (plugin / "hold").touch()
    file = tmp_path / "sets/out/out.mindrecord"
    child = end(command(plugin, file, *OPTIONS), plugin / "at-work", NUMBERS[name])
    assert child.returncode == 128 + NUMBERS[name]
    assert child.told.splitlines()[-1] == f"writer.py: ended by {name}; nothing was published"
    assert "3 finished shard(s) are kept in" in child.told.splitlines()[-2]
    assert "Traceback" not in child.told
    assert os.listdir(file.parents[1]) == [".out.converting"]
    (plugin / "hold").unlink()
    converted(plugin, file, *OPTIONS)
    assert "kept from before" in (file.parent / "convert.log").read_text("utf-8")
    assert contents(file.parent) == contents(tmp_path / "expected/out")
    assert os.listdir(file.parents[1]) == ["out"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    converted("template", folder / "set/x.mindrecord", "--images", 4, "--mindrecord_partitions", 3)
    return folder / "set"


# Runs records.py, in which the third shard (or the image that is extracted as the third) does `deed`.
PATCHED = """
import os, signal, sys, time
sys.path.insert(0, {folder!r})
import extract, records, reshard, verify
def deed():
    {deed}
def read_shard(folder, shard, original=verify.read_shard):
    return deed() if shard["file"].endswith("2") else original(folder, shard)
def rows(self, task, original=reshard.RecordSource.rows):
    if task == 2:
        deed()
    return original(self, task)
def read_rows(*args, original=extract.read_rows, **options):
    for number, row in enumerate(original(*args, **options)):
        if number == 2:
            deed()
        yield row
verify.read_shard, reshard.RecordSource.rows, extract.read_rows = read_shard, rows, read_rows
records.leave(records.run("records.py", records.work, sys.argv[1:]))
"""


def patched(deed, *words):
    code = PATCHED.format(folder=str(RECORDS.parent), deed=deed)
    return [sys.executable, "-c", code, *map(str, words)]


def hold(place):
    return f"open({str(place)!r}, 'w').close(); time.sleep(60)"


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("words", [("verify",), ("extract", "OUT"), ("reshard", "OUT", "--partitions", "4")])
def test_the_tool_for_records_ends_at_once_and_leaves_nothing(words, name, source, tmp_path):
    target = tmp_path / "new/out"
    words = (words[0], source, *(target if word == "OUT" else word for word in words[1:]))
    if words[0] != "extract":
        words = (*words, "--workers", 1)
    child = end(patched(hold(tmp_path / "at-work"), *words), tmp_path / "at-work", NUMBERS[name])
    assert child.returncode == 128 + NUMBERS[name]
    assert child.told.splitlines()[-1] == f"records.py: ended by {name}; nothing was published"
    assert "Traceback" not in child.told
    if words[0] == "reshard":
        assert os.listdir(target.parent) == [".out.converting"]
        assert "2 finished shard(s) are kept in" in child.told
    else:
        assert not target.parent.exists() or os.listdir(target.parent) == []


@pytest.mark.slow
def test_resharding_goes_on_where_it_was_ended_and_only_with_the_same_rows(source, tmp_path):
    words = ("reshard", source, tmp_path / "a/x", "--partitions", 4)
    end(
        [*patched(hold(tmp_path / "at-work"), *words), "--workers", "1"], tmp_path / "at-work", signal.SIGTERM
    )
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    done = records(*words)
    assert done.returncode == 0, done.stderr
    assert "2 of 4 shards are finished" in done.stderr
    assert records("reshard", source, tmp_path / "c/x", "--partitions", 4).returncode == 0
    assert contents(tmp_path / "a/x") == contents(tmp_path / "c/x")
    converted("template", tmp_path / "other/x.mindrecord", "--images", 5, "--mindrecord_partitions", 3)
    done = records("reshard", tmp_path / "other", tmp_path / "b/x", "--partitions", 4)
    assert done.returncode == 0, done.stderr
    assert "starting over" in done.stderr
    assert records("verify", tmp_path / "b/x").returncode == 0


DEATHS = {
    "SIGKILL": (1, "the process that read x.mindrecord2 was ended by SIGKILL", "out of memory?"),
    "SIGSEGV": (3, "x.mindrecord2: reading it ends MindSpore's process (SIGSEGV)", "1 thing(s) wrong"),
}


@pytest.mark.parametrize("name", DEATHS)
def test_a_reader_that_dies_is_told_with_its_shard(name, source, tmp_path):
    code, *told = DEATHS[name]
    line = patched(f"os.kill(os.getpid(), signal.{name})", "verify", source, "--workers", 2)
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert [words for words in told if words not in done.stderr] == []
    assert "x.mindrecord1" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("num_processes", [1, 3])
def test_every_item_is_answered_though_processes_die(num_processes, monkeypatch):
    monkeypatch.syspath_prepend(str(RECORDS.parent))
    import children

    def work(item):
        return os._exit(item) if item % 3 == 1 else -item

    answers = dict(children.in_processes(work, range(8), num_processes))
    assert {item: str(answer) for item, answer in answers.items()} == {
        item: f"exit code {item}" if item % 3 == 1 else str(-item) for item in range(8)
    }
    assert not children.multiprocessing.active_children()


def test_a_process_that_nothing_ends_does_not_hold_the_program(monkeypatch):
    monkeypatch.syspath_prepend(str(RECORDS.parent))
    import program

    left = []
    monkeypatch.setattr(program.multiprocessing, "active_children", lambda: ["one that waits for a disk"])
    monkeypatch.setattr(program.os, "_exit", left.append)
    with pytest.raises(SystemExit):
        program.leave(3)
    assert left == [3]
