#!/usr/bin/env python3
"""The suite's training preprocessing by MXNet's ImageRecordIter, from a record file."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

import input_options
import mxnet as mx
from serving import serve, steady

BILINEAR = 1


def iterator(args: argparse.Namespace) -> Any:
    o = args.options
    channels = [f"{kind}_{c}" for kind in ("mean", "std") for c in "rgb"]
    return mx.io.ImageRecordIter(
        path_imgrec=f"{args.data}.rec",
        path_imgidx=f"{args.data}.idx",
        data_shape=tuple(o["image-shape"]),
        batch_size=args.batch_size,
        preprocess_threads=args.threads,
        shuffle=True,
        random_resized_crop=True,
        min_random_area=o["min-random-area"],
        max_random_area=o["max-random-area"],
        min_aspect_ratio=o["min-random-aspect-ratio"],
        max_aspect_ratio=o["max-random-aspect-ratio"],
        rand_mirror=True,
        inter_method=BILINEAR,
        **dict(zip(channels, [*o["rgb-mean"], *o["rgb-std"]])),
    )


def batches(args: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """One epoch of a new iterator, which has made nothing yet.

    It decodes a whole chunk of the file, many batches, before it gives the first, and goes on when nobody
    waits: to leave batches out at the start would leave out their decoding, too.
    """
    for batch in iterator(args):
        images, labels = batch.data[0], batch.label[0]
        images.wait_to_read()
        whole = len(images) - batch.pad
        yield images[:whole], labels[:whole]


def main() -> None:
    args = input_options.parse()
    for _ in batches(args):  # the first use of a library costs more than the next
        break
    serve({"versions": f"MXNet {mx.__version__}"}, lambda: steady(batches(args), 0))


if __name__ == "__main__":
    main()
