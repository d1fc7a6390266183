#!/usr/bin/env python3
"""The suite's training preprocessing by DALI's CPU operators, from a record file or a folder.

As in NVIDIA's ResNet-50 examples: the crop is drawn before decoding, and only it is decoded. DALI's resize
antialiases unless told otherwise; without --antialias it takes two neighbours a side, as the suite's does.
"""

from __future__ import annotations

import argparse
from typing import Any, Iterator

import input_options
import nvidia.dali as dali
from nvidia.dali import fn, types
from serving import serve, steady


def pipeline(args: argparse.Namespace) -> Any:
    o, (_, height, width) = args.options, args.options["image-shape"]

    @dali.pipeline_def(batch_size=args.batch_size, num_threads=args.threads, device_id=None, seed=1)
    def training() -> Any:
        if args.data.is_dir():
            files, labels = fn.readers.file(file_root=str(args.data), random_shuffle=True, name="reader")
        else:
            files, labels = fn.readers.mxnet(
                path=[f"{args.data}.rec"],
                index_path=[f"{args.data}.idx"],
                random_shuffle=True,
                name="reader",
            )
        images = fn.decoders.image_random_crop(
            files,
            device="cpu",
            output_type=types.RGB,
            random_area=[o["min-random-area"], o["max-random-area"]],
            random_aspect_ratio=[o["min-random-aspect-ratio"], o["max-random-aspect-ratio"]],
            num_attempts=10,
        )
        images = fn.resize(
            images,
            resize_x=width,
            resize_y=height,
            interp_type=types.INTERP_LINEAR,
            antialias=args.antialias,
        )
        images = fn.crop_mirror_normalize(
            images,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=list(o["rgb-mean"]),
            std=list(o["rgb-std"]),
            mirror=fn.random.coin_flip(probability=0.5),
        )
        return images, labels

    return training()


def batches(pipe: Any, count: int) -> Iterator[tuple[Any, Any]]:
    for _ in range(count):
        images, labels = pipe.run()
        yield images.as_array(), labels.as_array()


def main() -> None:
    args = input_options.parse()
    pipe = pipeline(args)
    pipe.build()
    count = pipe.reader_meta("reader")["epoch_size"] // args.batch_size
    serve({"versions": f"DALI {dali.__version__}"}, lambda: steady(batches(pipe, count), args.skip))


if __name__ == "__main__":
    main()
