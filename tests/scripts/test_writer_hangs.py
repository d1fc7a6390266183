"""A decoder in an endless loop, and a source that does not answer, are noticed and told by name."""

from __future__ import annotations

import json

import pytest
from converting import module_of, rows_of, run, write_plugin

HANGING = """
from PIL import Image, ImageFile
mindrecord_schema.update(image={'type': 'bytes'}, file_name={'type': 'string'})
class Hanging(ImageFile.ImageFile):
    format = 'HANGING'
    def _open(self):
        while True:
            pass
Image.register_open('HANGING', Hanging, lambda prefix: prefix.startswith(b'HANGING'))
BMP = b'BM:\\0\\0\\0\\0\\0\\0\\x006\\0\\0\\0(\\0\\0\\0\\1\\0\\0\\0\\1\\0\\0\\0\\1\\0\\x18' + bytes(28)
"""
ROWS = (
    "for name in ('x', 'y'):\n"
    "    image = b'HANGING' * 9 if (task_id, name) == (1, 'y') else BMP\n"
    "    yield {'data': b'x', 'label': 0, 'image': image, 'file_name': f'{task_id}{name}'}"
)


@pytest.mark.parametrize("policy", [pytest.param("error", marks=pytest.mark.slow), "skip"])
def test_an_image_that_is_decoded_for_ever_is_a_bad_image(policy, tmp_path):
    plugin = write_plugin(tmp_path / "p", ROWS, HANGING)
    options = ("--mindrecord_partitions", 2, "--image-timeout", 2, "--on_bad_image", policy)
    done = run(plugin, tmp_path / "out/x.mindrecord", *options)
    if policy == "error":
        assert done.returncode == 3
        assert "1y ended the process that decoded it (it took longer than 2 s)" in done.stderr
        assert not (tmp_path / "out").exists()
        return
    assert done.returncode == 0, done.stderr
    assert [str(row["file_name"]) for row in rows_of(tmp_path / "out")] == [
        f"{task}{name}" for task in range(4) for name in "xy" if (task, name) != (1, "y")
    ]
    manifest = json.loads((tmp_path / "out/manifest.json").read_text("utf-8"))
    assert [item["file"] for item in manifest["refused"]] == ["1y"]


SILENT = {
    "a disk that does not answer": (0, "time.sleep(60)", "it waits"),
    "a plug-in in a loop": (1, "pass", "it computes"),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_source_that_gives_no_row_ends_the_run(name, tmp_path):
    """The first row of a task or another; the shard that is finished waits for a better time."""
    number, deed, state = SILENT[name]
    body = (
        "for number in range(2):\n"
        f"    while (task_id, number) == (3, {number}) and os.path.exists(HOLD):\n        {deed}\n"
        "    yield {'data': b'x', 'label': 0}"
    )
    hold = tmp_path / "hold"
    hold.touch()
    plugin = write_plugin(tmp_path / "p", body, f"HOLD = {str(hold)!r}")
    options = ("--mindrecord_partitions", 2, "--image-timeout")
    done = run(plugin, tmp_path / "out/x.mindrecord", *options, 1)
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert f"the plug-in p has not given row {number} of task 3 within 1 s ({state})" in told
    assert "does the disk or network folder of the data answer?" in told
    assert "1 finished shard(s) are kept in" in done.stderr
    hold.unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.converting", "p"]
    done = run(plugin, tmp_path / "out/x.mindrecord", *options, 9)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 shards are finished" in done.stderr


def test_a_stop_of_the_whole_program_is_nobodys_fault(monkeypatch):
    """Ctrl-Z, a laptop that sleeps: the next round comes late, and counts for one second."""
    watch = module_of("watch")
    now = [100.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    patience = watch.Patience()
    seconds = []
    for passed, state in ((0, "a"), (0.3, "a"), (4000, "a"), (0.3, "a"), (0.3, "b"), (0.3, "b")):
        now[0] += passed
        seconds.append(round(patience.with_state(state), 3))
    assert seconds == [0, 0.3, 1.3, 1.6, 0, 0.3]


def test_a_silent_flush_is_told_and_not_ended(monkeypatch):
    """Nobody knows how long a disk takes to swallow a large shard."""
    from converting import WRITER

    monkeypatch.syspath_prepend(str(WRITER.parent))
    import workers

    class Worker:
        shard, gone, place = 0, False, "while writing x.mindrecord0"
        doing = (workers.WRITING, (0, 0))
        patience = workers.Patience()
        process = type("Process", (), {"pid": 0})

    class Progress:
        notes: list = []
        log = type("Log", (), {"note": notes.append})
        show = staticmethod(lambda: None)

    crew = workers.Crew(type("Job", (), {"shards": [0]}), Progress, timeout_s=0)
    crew.workers = [Worker]
    monkeypatch.setattr(workers, "wait", lambda *args, **kwargs: [])
    Worker.connection = None
    for _ in range(3):
        crew.work()
    assert len(Progress.notes) == 1, "not at each round"
    assert "silent for 0 s while writing x.mindrecord0: is the disk at work?" in Progress.notes[0]
