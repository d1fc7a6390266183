"""Convert a folder of images to MindRecord: SRC/train and SRC/val -> DST/train and DST/val.

    python scripts/prepare_dataset.py SRC DST [--map-file FILE] [--workers W] [--partitions P] [--overwrite]

SRC/train/<class>/*.JPEG is needed; SRC/val/<class>/*.JPEG is converted with the classes of train.  The work
is done by scripts/convert_to_mindrecord/writer.py, once for each split.  Exit codes: 0 done, 2 wrong options,
3 data unusable, 1 anything else.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

WRITER = Path(__file__).resolve().parent / "convert_to_mindrecord" / "writer.py"
VENV = WRITER.parents[2] / ".venv"
WRONG_OPTIONS, DATA_UNUSABLE = 2, 3


class PrepareError(Exception):
    """One sentence and an exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def find_splits(source: Path) -> list[str]:
    """`train`, and `val` where there is one.  Raises PrepareError, saying which folder was probably meant."""
    if not source.is_dir():
        raise PrepareError(f"{source} is no folder", DATA_UNUSABLE)
    if (source / "train").is_dir():
        return ["train", "val"] if (source / "val").is_dir() else ["train"]
    if (source.parent / "train").is_dir():
        hint = f": did you mean {source.parent}?"
    else:
        below = [path.parent for path in sorted(source.glob("*/train"))]
        hint = f": did you mean {below[0]}?" if below else f": expected {source}/train/<class>/*.JPEG"
    raise PrepareError(f"{source} holds no folder train{hint}", DATA_UNUSABLE)


def check_targets(target: Path, splits: list[str], overwrite: bool) -> None:
    """Both, before the work on the first."""
    for split in splits:
        folder = target / split
        if not overwrite and folder.exists() and (not folder.is_dir() or os.listdir(folder)):
            raise PrepareError(f"{folder} exists already: add --overwrite to replace it", WRONG_OPTIONS)


def interpreter() -> str:
    """This Python if it has MindSpore, else the one of the suite's own environment, if that was made."""
    own = VENV / "bin" / "python"
    return sys.executable if importlib.util.find_spec("mindspore") or not own.exists() else str(own)


def writer_command(args: argparse.Namespace, split: str) -> list[str]:
    target = Path(args.target)
    command = [interpreter(), str(WRITER), "--mindrecord_script=imagenet"]
    command += [
        f"--mindrecord_file={target / split / split}.mindrecord",
        f"--dir={Path(args.source) / split}",
    ]
    if args.map_file:
        command.append(f"--map_file={args.map_file}")
    elif split != "train":
        command.append(f"--classes_from={target / 'train' / 'manifest.json'}")
    given = {"workers": args.workers, "partitions": args.partitions, "seed": args.seed}
    command += [f"--mindrecord_{name}={value}" for name, value in given.items() if value is not None]
    command.append(f"--on_bad_image={args.on_bad_image}")
    return command + ["--overwrite"] * args.overwrite


def run(command: list[str]) -> int:
    """The command's exit code; signals are passed on, so that it can clean up."""
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda number, frame: child.send_signal(number))
    signal.signal(signal.SIGINT, lambda number, frame: None)  # the terminal sends it to the child as well
    code = child.wait()
    return code if code >= 0 else 128 - code


def prepare(args: argparse.Namespace) -> int:
    splits = find_splits(Path(args.source))
    check_targets(Path(args.target), splits, args.overwrite)
    if "val" not in splits:
        print(f"prepare_dataset.py: {args.source} holds no folder val: training data only", file=sys.stderr)
    for split in splits:
        code = run(writer_command(args, split))
        if code:
            return code
    return 0


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("source", metavar="SRC", help="folder with train/<class>/ and, if there is one, val/<class>/")
    add("target", metavar="DST", help="data root to write: DST/train, DST/val")
    add("--map-file", "--map_file", help="class folder, label, name (default: sorted class folders)")
    add("--workers", metavar="W", help="processes (default: all processors); changes nothing in the result")
    add("--partitions", metavar="P", help="shards of each split (default: by size)")
    add("--seed", metavar="S", help="of the order of the rows (default: 0)")
    add("--overwrite", action="store_true", help="replace existing sets, each once the new one is whole")
    add(
        "--on-bad-image",
        "--on_bad_image",
        choices=("error", "skip"),
        default="error",
        help="default: %(default)s",
    )
    args = parser.parse_args(argv)
    try:
        return prepare(args)
    except PrepareError as error:
        print(f"prepare_dataset.py: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
