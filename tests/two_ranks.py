"""A rank of the two-process test: five steps on given batches, their losses and final weights to a file.

The network is small: the CPU's all-reduce moves about 0.04 GB/s.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from src.config import Training
from src.platform import distributed, environment

environment.prepare("CPU", environment.this_rank().size)


def main(target: Path, samples: str) -> int:
    world = distributed.init("CPU")

    import mindspore as ms
    from mindspore import nn

    from src.models.layers import ConvSpec, Norms
    from src.models.resnet import Residual
    from tests.golden import spec
    from tests.train.test_step import build

    ms.set_seed(3)
    branch = [ConvSpec(3, 8, 3, 2), ConvSpec(8, 8, 3)]
    block = Residual(branch, Norms(eps=1e-5, momentum=0.9))
    network = nn.SequentialCell(block, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(8, 10))
    more = {"grad_clip": 0.1, "ema": 0.9, "accumulation": 2} if samples == "broken" else {}
    _, step = build(Training(wd=1e-3, **more), network)
    losses = []
    for i in range(5 if samples != "broken" else 8):
        images, labels = spec.step_batch(i, size=16)
        if samples != "same":  # each rank another half of the batch
            images, labels = images[world.rank :: world.size], labels[world.rank :: world.size]
        if samples == "broken" and i == 4 and world.rank == 1:  # in the third update of four
            images = np.where(np.arange(images.size).reshape(images.shape) == 0, np.inf, images)
            images = images.astype(np.float32)
        losses.append(float(step(ms.Tensor(images), ms.Tensor(labels.astype(np.int32))).asnumpy()))
    weights = {p.name: p.asnumpy() for p in (step if samples == "broken" else network).get_parameters()}
    np.savez(target / f"rank_{world.rank}_of_{world.size}.npz", losses=np.array(losses), **weights)
    return distributed.leave(0, world)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
