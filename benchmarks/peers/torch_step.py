#!/usr/bin/env python3
"""ResNet-50 in PyTorch, eager, on the CPU: training steps with the suite's recipe, or inference.

    python benchmarks/peers/torch_step.py --batch-size B --steps K [--channels-last] [--inference]

float32 batches of noise that stay in memory. Reads lines and answers with figures, as serving.py says.
"""

from __future__ import annotations

import argparse

import torch
import vision
from serving import repeated, serve
from torch import nn

NUM_CLASSES = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="in a round")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--momentum", type=float, default=0.875)
    parser.add_argument("--weight-decay", type=float, default=2**-15)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--inference", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    network = vision.torchvision.models.resnet50(num_classes=NUM_CLASSES, zero_init_residual=True)
    network = network.to(memory_format=layout)
    images = torch.randn(args.batch_size, 3, args.size, args.size).to(memory_format=layout)
    labels = torch.randint(NUM_CLASSES, (args.batch_size,))
    loss_of = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    decay, momentum = args.weight_decay, args.momentum
    update = torch.optim.SGD(network.parameters(), lr=0.1, momentum=momentum, weight_decay=decay)

    def train() -> None:
        update.zero_grad(set_to_none=True)
        loss = loss_of(network(images), labels)
        loss.backward()
        update.step()
        loss.item()

    @torch.inference_mode()
    def infer() -> None:
        network(images).softmax(-1).numpy()

    network.train(not args.inference)
    step = infer if args.inference else train
    step()
    versions = f"PyTorch {torch.__version__} with {torch.get_num_threads()} threads"
    serve({"versions": versions}, lambda: repeated(step, args.steps, args.batch_size))


if __name__ == "__main__":
    main()
