"""A rank of the two-process test: three steps on given batches, their losses and final weights to a file."""

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

    from tests.golden import spec
    from tests.train.test_step import build

    network, step = build(Training(wd=1e-3))
    losses = []
    for i in range(3):
        images, labels = spec.step_batch(i, size=32)
        if samples == "own":  # each rank another half of the batch
            images, labels = images[world.rank :: world.size], labels[world.rank :: world.size]
        losses.append(float(step(ms.Tensor(images), ms.Tensor(labels.astype(np.int32))).asnumpy()))
    weights = {p.name: p.asnumpy() for p in network.get_parameters()}
    np.savez(target / f"rank_{world.rank}_of_{world.size}.npz", losses=np.array(losses), **weights)
    return distributed.leave(0, world)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
