#!/usr/bin/env python3
"""ResNet-18 on class folders of small images in plain PyTorch: the suite's recipe by another hand.

    python benchmarks/peers/tiny_imagenet.py --data DIR --options OPTIONS.json --seed 1 --out RESULT.json

OPTIONS.json holds the suite's options, name to value, so that the recipe stands in one place.
`benchmarks/tiny_imagenet.py` makes the environment, this file and the comparison. Needs torch and
torchvision, and nothing of the suite's code.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

try:
    import torchvision
except RuntimeError:
    # A CPU build of torch beside a CUDA build of torchvision: the compiled operators of detection, which
    # nothing here uses, are missing, and that ends the import.
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
    import torchvision
from torchvision import datasets, transforms

# What this script does of what the suite can do: other values would make two recipes of one.
ONLY = {
    "arch": "resnetv15", "num-layers": 18, "lr-schedule": "cosine", "lr-steps": [], "optimizer": "sgd",
    "bn-weight-decay": False, "random-resized-crop": True, "random-mirror": True, "interpolation": "bilinear",
    "mixup": 0.0, "cutmix": 0.0, "loss": "ce", "accumulation": 1, "grad-clip": 0.0, "ema": 0.0,
    "dtype": "float32",
}  # fmt: skip
MAX_WARMUP_STEPS = 20  # left out of images/s, as in the suite: a tenth of the epoch, at most 20 steps


def resnet18(options: dict[str, Any], num_classes: int) -> nn.Module:
    """torchvision's network with the suite's start: He-normal by fan-in, the last gamma of a branch zero."""
    network = torchvision.models.resnet18(num_classes=num_classes, zero_init_residual=True)
    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
        if isinstance(module, nn.BatchNorm2d):
            module.eps, module.momentum = options["batchnorm-eps"], 1 - options["batchnorm-mom"]
    nn.init.zeros_(network.fc.bias)
    return network


def image_operators(options: dict[str, Any]) -> tuple[Any, Any]:
    """Of training and of validation."""
    _, height, width = options["image-shape"]
    size, resize = (height, width), options["data-val-resize"]
    area = options["min-random-area"], options["max-random-area"]
    aspect = options["min-random-aspect-ratio"], options["max-random-aspect-ratio"]
    mean, std = ([value / 255 for value in options[name]] for name in ("rgb-mean", "rgb-std"))
    to_network = [transforms.ToTensor(), transforms.Normalize(mean, std)]
    augment = [transforms.RandomResizedCrop(size, area, aspect), transforms.RandomHorizontalFlip()]
    centre = [transforms.Resize(resize), transforms.CenterCrop(size)]
    return transforms.Compose([*augment, *to_network]), transforms.Compose([*centre, *to_network])


def learning_rate(options: dict[str, Any], x: float) -> float:
    """At epoch position x: linear warm-up, then a cosine to 0."""
    warmup, end = options["warmup-epochs"], options["num-epochs"]
    peak = options["lr"] * options["batch-size"] / 256
    if x < warmup:
        return peak * x / warmup
    return peak / 2 * (1 + math.cos(math.pi * (x - warmup) / (end - warmup)))


def optimizer(network: nn.Module, options: dict[str, Any]) -> torch.optim.Optimizer:
    """SGD; weight decay on convolution and dense parameters, the dense bias too, none on batch norm."""
    norms = [p for m in network.modules() if isinstance(m, nn.BatchNorm2d) for p in m.parameters()]
    others = [p for p in network.parameters() if all(p is not norm for norm in norms)]
    groups = [{"params": others, "weight_decay": options["wd"]}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=0.0, momentum=options["mom"])


def train_epoch(
    network: nn.Module, update: torch.optim.Optimizer, data: DataLoader, options: dict[str, Any], epoch: int
) -> dict[str, float]:
    """Mean loss, and images/s of the steady steps."""
    loss_of = nn.CrossEntropyLoss(label_smoothing=options["label-smoothing"])
    network.train()
    total, steps, ends = 0.0, len(data), [time.perf_counter()]
    for step, (images, labels) in enumerate(data):
        for group in update.param_groups:
            group["lr"] = learning_rate(options, epoch + step / steps)
        update.zero_grad(set_to_none=True)
        loss = loss_of(network(images), labels)
        loss.backward()
        update.step()
        total += loss.item()
        ends.append(time.perf_counter())
    skipped = min(MAX_WARMUP_STEPS, math.ceil(steps / 10))
    ips = (steps - skipped) * options["batch-size"] / (ends[-1] - ends[skipped])
    return {"loss": total / steps, "ips": ips}


def top1(network: nn.Module, data: DataLoader) -> float:
    network.eval()
    with torch.inference_mode():
        right = sum(int((network(images).argmax(1) == labels).sum()) for images, labels in data)
    return right / len(data.dataset)  # type: ignore[arg-type]


def run(data: Path, options: dict[str, Any], seed: int, epochs: int, workers: int) -> dict[str, Any]:
    torch.manual_seed(seed)
    training, validation = image_operators(options)
    train = datasets.ImageFolder(str(data / "train"), training)
    val = datasets.ImageFolder(str(data / "val"), validation)
    batch, keep = options["batch-size"], workers > 0
    # Whole batches only, as in the suite.
    train_data = DataLoader(
        train, batch, shuffle=True, drop_last=True, num_workers=workers, persistent_workers=keep
    )
    val_data = DataLoader(val, batch, num_workers=workers, persistent_workers=keep)
    network = resnet18(options, len(train.classes))
    update = optimizer(network, options)
    history: dict[str, Any] = {"loss": [], "ips": [], "top1": []}
    for epoch in range(epochs):
        figures = train_epoch(network, update, train_data, options, epoch)
        figures["top1"] = top1(network, val_data)
        for name, value in figures.items():
            history[name].append(value)
        shown = f"loss {figures['loss']:.4f}, {figures['ips']:.1f} images/s, top-1 {figures['top1']:.2%}"
        print(f"epoch {epoch + 1}: {shown}", flush=True)
    versions = f"PyTorch {torch.__version__}, torchvision {torchvision.__version__}"
    return {**history, "median_ips": statistics.median(history["ips"]), "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with train/ and val/")
    parser.add_argument("--options", type=Path, required=True, help="JSON: option of the suite -> value")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run-epochs", type=int, help="only so many; the schedule still spans all")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes that make batches")
    parser.add_argument("--out", type=Path, required=True, help="JSON file of the result")
    args = parser.parse_args()
    options = json.loads(args.options.read_text(encoding="utf-8"))
    unlike = [name for name, value in ONLY.items() if options.get(name, value) != value]
    if unlike:
        parser.error(f"this script has only --{unlike[0]} {ONLY[unlike[0]]}, not {options[unlike[0]]}")
    result = run(args.data, options, args.seed, args.run_epochs or options["num-epochs"], args.workers)
    args.out.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
