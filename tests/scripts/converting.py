"""For the tests of the converter: run it as a user does, read what it wrote, write plug-ins."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

WRITER = Path(__file__).parents[2] / "scripts" / "convert_to_mindrecord" / "writer.py"
RECORDS = WRITER.with_name("records.py")


def module_of(name):
    """One module of the converter that needs none of the others, which import each other by plain names."""
    spec = importlib.util.spec_from_file_location(f"converter_{name}", WRITER.with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def command(plugin, file, *options):
    """One worker where nothing else is said: each needs a second to import MindSpore."""
    words = ["--mindrecord_script", plugin, "--mindrecord_file", file, *options]
    if not any("workers" in str(option) for option in options):
        words += ["--workers", 1]
    return [sys.executable, str(WRITER), *map(str, words)]


def run(plugin, file, *options):
    return subprocess.run(command(plugin, file, *options), capture_output=True, text=True, timeout=120)


def converted(plugin, file, *options):
    done = run(plugin, file, *options)
    assert done.returncode == 0, done.stderr
    return json.loads((Path(file).parent / "manifest.json").read_text("utf-8"))


def records(*words):
    workers = ("--workers", 1) if words[0] in ("verify", "reshard", "merge") else ()
    line = [sys.executable, str(RECORDS), *map(str, (*words, *workers))]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def contents(folder):
    """Of all files but the log, which tells the time."""
    paths = [path for path in Path(folder).iterdir() if path.name != "convert.log"]
    return {path.name: path.read_bytes() for path in paths}


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
