"""A rank of the test of what one rank cannot use: eight batches, one image of which holds an infinity.

The network is small: the CPU's all-reduce moves about 0.04 GB/s.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from src.config import Training
from src.platform import distributed, environment

environment.prepare("CPU", environment.this_rank().size)


def main(target: Path) -> int:
    world = distributed.init("CPU")

    import mindspore as ms

    from tests.golden import spec
    from tests.many_ranks import small_network
    from tests.train.test_step import build

    _, step = build(Training(wd=1e-3, grad_clip=0.1, ema=0.9, accumulation=2), small_network(3))
    losses = []
    for i in range(8):
        images, labels = spec.step_batch(i, size=16)
        images, labels = images[world.rank :: world.size], labels[world.rank :: world.size]
        if i == 4 and world.rank == 1:  # in the third update of four
            images = np.where(np.arange(images.size).reshape(images.shape) == 0, np.inf, images)
            images = images.astype(np.float32)
        losses.append(float(step(ms.Tensor(images), ms.Tensor(labels.astype(np.int32))).asnumpy()))
    state = {p.name: p.asnumpy() for p in step.get_parameters()}
    np.savez(target / f"rank_{world.rank}_of_{world.size}.npz", losses=np.array(losses), **state)
    return distributed.leave(0, world)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
