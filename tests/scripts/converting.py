"""For the tests of the converter: run it as a user does, read what it wrote, write plug-ins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

WRITER = Path(__file__).parents[2] / "scripts" / "convert_to_mindrecord" / "writer.py"


def command(plugin, file, *options):
    words = ["--mindrecord_script", plugin, "--mindrecord_file", file, *options]
    return [sys.executable, str(WRITER), *map(str, words)]


def run(plugin, file, *options):
    return subprocess.run(command(plugin, file, *options), capture_output=True, text=True, timeout=120)


def converted(plugin, file, *options):
    done = run(plugin, file, *options)
    assert done.returncode == 0, done.stderr
    return json.loads((Path(file).parent / "manifest.json").read_text("utf-8"))


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def rows_of(folder, sampler=None):
    import mindspore.dataset as ds

    manifest = json.loads((Path(folder) / "manifest.json").read_text("utf-8"))
    files = [str(Path(folder) / shard["file"]) for shard in manifest["shards"]]
    order = {"shuffle": False} if sampler is None else {"sampler": ds.SubsetSampler(sampler)}
    dataset = ds.MindDataset(files, num_parallel_workers=2, **order)
    return list(dataset.create_dict_iterator(num_epochs=1, output_numpy=True))


def names_of(rows):
    return [str(row["file_name"]) for row in rows]


def write_plugin(folder, body, head=""):
    """A plug-in with a label and no images, so that a test shows only what it is about."""
    folder.mkdir(parents=True)
    text = (
        "import os, signal, time\n"
        'mindrecord_schema = {"data": {"type": "bytes"}, "label": {"type": "int32"}}\n'
        f"{head}\n"
        "def mindrecord_task_number():\n    return 4\n"
        "def mindrecord_dict_data(task_id):\n"
    )
    text += "".join(f"    {line}\n" for line in body.splitlines())
    (folder / "mr_api.py").write_text(text, "utf-8")
    return folder
