"""Convert a data set to MindRecord in parallel: whole shards, one serial writer per process.

    python writer.py --mindrecord_script imagenet --mindrecord_file DATA/train/train.mindrecord \\
        --mindrecord_workers 8 --dir IMAGES/train

Exit codes: 0 done, 2 wrong options, 3 data unusable, 1 anything else, 130/143 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn, Optional

from failure import DATA_UNUSABLE, WRONG_OPTIONS, ConvertError
from layout import Layout, choose_layout, shard_names
from manifest import build_manifest
from plugin import PlugIn, load_plugin
from progress import Progress
from publish import Staging, check_target, split_target
from shards import Job, PageTooSmall
from workers import write_all

HERE = Path(__file__).resolve().parent


class Parser(argparse.ArgumentParser):
    """One sentence instead of argparse's usage screen; `-` and `_` are the same in option names."""

    def error(self, message: str) -> NoReturn:
        raise ConvertError(f"{message}; see --help", WRONG_OPTIONS)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known = {name.replace("-", "_"): name for name in self._option_string_actions}
        spelled = []
        for word in sys.argv[1:] if args is None else args:
            name, equals, value = word.partition("=")
            spelled.append(known.get(name.replace("-", "_"), name) + equals + value)
        return super().parse_known_args(spelled, namespace)


def partitions(text: str) -> Optional[int]:
    return None if text == "auto" else whole(text, 1, 1000)


def whole(text: str, lowest: int, highest: int) -> int:
    if not text.isdecimal() or not lowest <= int(text) <= highest:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {lowest} to {highest}")
    return int(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--mindrecord_script", required=True, metavar="XYZ", help="plug-in: a folder that holds mr_api.py")
    add(
        "--mindrecord_file",
        required=True,
        metavar="FOLDER/NAME",
        help="base name of the shards, in their own folder",
    )
    add(
        "--mindrecord_partitions",
        type=partitions,
        metavar="P",
        help="number of shards (auto: one for 64 MB, <= 64)",
    )
    add(
        "--mindrecord_workers",
        type=lambda text: whole(text, 1, 1024),
        default=os.cpu_count() or 1,
        metavar="W",
        help="processes; each writes one shard at a time (%(default)s); changes nothing in the result",
    )
    add(
        "--mindrecord_seed",
        type=lambda text: whole(text, 0, 2**32 - 1),
        default=0,
        metavar="S",
        help="for plug-ins that shuffle (%(default)s); recorded in the manifest",
    )
    add("--overwrite", action="store_true", help="replace an existing set, once the new one is whole")
    add(
        "--on_bad_image",
        choices=("error", "skip"),
        default="error",
        help="error (default): name every bad image, publish nothing; skip: leave them out and list them",
    )


def parse(argv: list[str]) -> tuple[argparse.Namespace, PlugIn]:
    first = Parser(add_help=False, allow_abbrev=False)
    first.add_argument("--mindrecord_script")
    script = first.parse_known_args(argv)[0].mindrecord_script
    parser = Parser(
        prog="writer.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_options(parser)
    plugin = load_plugin(script, HERE) if script else None
    if plugin is not None:
        plugin.add_options(parser)
    args = parser.parse_args(argv)
    assert plugin is not None  # --mindrecord_script is required
    return args, plugin


def convert(argv: list[str]) -> None:
    args, plugin = parse(argv)
    folder, base = split_target(args.mindrecord_file)
    check_target(folder, args.overwrite)
    plugin.configure(args)
    num_tasks, classes, sizes = plugin.task_number(), plugin.classes(), plugin.sizes()
    layout = choose_layout(sizes, args.mindrecord_partitions, num_tasks)
    progress = Progress(folder.name, num_tasks, "images" if plugin.image_fields else "rows")
    with Staging(folder) as staging:
        check_space(staging.path, sizes)
        names = shard_names(base, layout.num_shards)
        job = Job(plugin, layout, num_tasks, staging.path, names, len(classes) if classes else None)
        job, reports = write_with_growing_pages(job, args.mindrecord_workers, staging, progress)
        manifest = build_manifest(args, job, reports, classes, folder.name)
        stop_at_bad_images(manifest, args.on_bad_image)
        path = staging.path / "manifest.json"
        path.write_text(json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
        path.chmod(0o644)
        staging.publish()
    progress.close()
    print(summary(manifest, folder, progress))


def write_with_growing_pages(
    job: Job, num_workers: int, staging: Staging, progress: Progress
) -> tuple[Job, list[dict]]:
    """Shards that are read together must agree on the page size, so a larger row means starting again."""
    while True:
        try:
            return job, write_all(job, num_workers, progress)
        except PageTooSmall as error:
            layout: Layout = job.layout.with_room_for(error.row_bytes)
            progress.close()
            note(f"a row of {error.row_bytes:,} bytes needs larger pages: starting again")
            job = Job(job.plugin, layout, job.num_tasks, job.folder, job.names, job.num_classes)
            staging.clear()
            progress.restart()


def check_space(folder: Path, sizes: Optional[tuple[int, int]]) -> None:
    free = shutil.disk_usage(folder).free
    if sizes and free < sizes[0]:
        raise ConvertError(
            f"{folder.parent} has {free / 1e6:,.0f} MB free, and the images need {sizes[0] / 1e6:,.0f} MB: "
            "free some space or name another disk"
        )


def stop_at_bad_images(manifest: dict[str, Any], policy: str) -> None:
    refused = manifest["refused"]
    if refused and policy == "error":
        for bad in refused:
            print(f"{bad['file']} {bad['reason']}", file=sys.stderr)
        raise ConvertError(
            f"{len(refused)} bad image(s), named above: mend or remove them, or leave them out with "
            "--on-bad-image skip; nothing was published",
            DATA_UNUSABLE,
        )
    if not manifest["num_images"]:
        raise ConvertError("there is not one usable row, so nothing was published", DATA_UNUSABLE)


def summary(manifest: dict[str, Any], folder: Path, progress: Progress) -> str:
    num_bytes = sum(shard["num_bytes"] for shard in manifest["shards"])
    repaired, refused = len(manifest["repaired"]), len(manifest["refused"])
    return (
        f"{folder}: {manifest['num_images']:,} {progress.unit} of {len(manifest['classes'])} classes in "
        f"{len(manifest['shards'])} shard(s), {num_bytes / 1e6:,.1f} MB, in {progress.seconds:.1f} s "
        f"({progress.speed:,.0f} {progress.unit}/s); {repaired} repaired, {refused} refused.\n"
        f"Next: with train and val side by side, train with --data-root {folder.parent}"
    )


def note(sentence: str) -> None:
    print(f"writer.py: {sentence}", file=sys.stderr)


def end_by_signal(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def main(argv: list[str]) -> int:
    signal.signal(signal.SIGTERM, end_by_signal)
    try:
        convert(argv)
    except ConvertError as error:
        note(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        note("interrupted; nothing was published")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
