#!/usr/bin/env python3
"""The floor: libjpeg-turbo decodes each file of a folder in full, from memory, and nothing else is done."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any, Iterator

import input_options
import simplejpeg
from serving import serve, steady


def decode(data: bytes) -> Any:
    return simplejpeg.decode_jpeg(data, colorspace="RGB")


def batches(files: list[bytes], args: argparse.Namespace, pool: ThreadPoolExecutor) -> Iterator[Any]:
    whole = len(files) // args.batch_size
    for number in range(whole):
        some = files[number * args.batch_size : (number + 1) * args.batch_size]
        yield list(pool.map(decode, some)), None


def main() -> None:
    args = input_options.parse()
    files = [path.read_bytes() for path in sorted(args.data.rglob("*")) if path.is_file()]
    with ThreadPoolExecutor(args.threads) as pool:
        serve(
            {"versions": f"simplejpeg {version('simplejpeg')}"},
            lambda: steady(batches(files, args, pool), args.skip),
        )


if __name__ == "__main__":
    main()
