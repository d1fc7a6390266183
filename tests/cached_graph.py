"""A process of the compile cache's test: a few steps of the smallest network, and its state to a file.

python -m tests.cached_graph FOLDER FOLDER_OF_THE_CACHE|- SEED [OPTIONS of train.py]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from src import cli
from src.platform import distributed, environment

environment.prepare("CPU", environment.this_rank().size)
BATCH, SIDE, STEPS = 8, 16, 4


def main(folder: Path, cache: str, seed: int, words: list[str]) -> int:
    world = distributed.init("CPU")

    import mindspore as ms
    from mindspore import nn

    from src.train.fit import training_step
    from src.train.graph_cache import GraphCache, key_of
    from src.train.schedule import Schedule, Segment

    config = cli.parse(words, "test")
    generator = np.random.RandomState(seed)
    ms.set_seed(seed)
    layers = [nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    network = nn.SequentialCell(*layers, nn.Dense(6, 10))
    plan = Schedule((Segment("linear", 0, 8, config.training.lr, 8),))
    step = training_step(network, config.training, plan, 1)
    step.set_train()
    # A file in FOLDER that says so stands for every key: what MindSpore's cache does by itself.
    key = {} if (folder / "one key for all").exists() else key_of(config, world, {"classes": 10})
    graph = GraphCache(Path(cache), key) if cache != "-" else None
    told, losses = "", []
    for number in range(STEPS):
        images = generator.standard_normal((BATCH, 3, SIDE, SIDE)).astype(np.float32)
        if number == 2:
            images[0, 0, 0, 0] = np.inf  # a step that is skipped
        labels = generator.randint(10, size=BATCH).astype(np.int32)
        if graph and not number:
            graph.begin()
        losses.append(float(step(ms.Tensor(images), ms.Tensor(labels)).asnumpy()))
        if graph and not number:
            told = graph.end()
    state = {p.name: p.asnumpy() for p in step.get_parameters()}
    np.savez(folder / f"rank_{world.rank}.npz", **state)
    found = {"told": told, "losses": [repr(loss) for loss in losses]}
    (folder / f"rank_{world.rank}.json").write_text(json.dumps(found))
    return distributed.leave(0, world)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
