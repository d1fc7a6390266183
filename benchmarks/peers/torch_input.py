#!/usr/bin/env python3
"""The suite's training preprocessing by PyTorch's DataLoader and torchvision on Pillow, from a folder.

As in torchvision's and PyTorch's ImageNet examples; the resize of a Pillow picture always antialiases.
Threads are worker processes.
"""

from __future__ import annotations

import argparse

import input_options
import PIL
import torch
import vision
from serving import serve, steady
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def loader(args: argparse.Namespace) -> DataLoader:
    o = args.options
    mean, std = ([value / 255 for value in o[name]] for name in ("rgb-mean", "rgb-std"))
    operators = [
        transforms.RandomResizedCrop(
            tuple(o["image-shape"][1:]),
            (o["min-random-area"], o["max-random-area"]),
            (o["min-random-aspect-ratio"], o["max-random-aspect-ratio"]),
        ),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(mean, std),
    ]
    images = datasets.ImageFolder(str(args.data), transforms.Compose(operators))
    return DataLoader(
        images,
        args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.threads,
        persistent_workers=True,
    )


def main() -> None:
    args = input_options.parse()
    data = loader(args)
    versions = (
        f"PyTorch {torch.__version__}, torchvision {vision.torchvision.__version__}, Pillow {PIL.__version__}"
    )
    serve({"versions": versions}, lambda: steady(data, args.skip))


if __name__ == "__main__":
    main()
