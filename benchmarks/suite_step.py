"""Training steps of the suite, or of stock MindSpore, as a contestant of benchmarks/training_step.py.

    python -m benchmarks.suite_step suite|settings|stock STEPS [options of train.py]

`suite` is the step that train.py runs. `stock` is the same network in MindSpore's own cells, with the
environment as it is; `settings` is `stock` with the suite's environment. STEPS make a round; the batch is of
noise and stays in memory.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from benchmarks.peers.serving import repeated, serve
from src import cli
from src.config import Config
from src.platform import environment

NUM_CLASSES = 1000


def suites(config: Config) -> Any:
    """The suite's step, as train.py builds it."""
    from src.data.splits import open_splits
    from src.platform.distributed import init
    from src.train.fit import build

    world = init("CPU")
    return build(config, world, open_splits(config, train=True, val=False), seed=1).step


def stock(config: Config) -> Any:
    """The same network in MindSpore's own cells, in graph mode."""
    import mindspore as ms
    from mindspore import nn

    from src import models

    ms.set_device("CPU")
    ms.set_context(mode=ms.GRAPH_MODE)
    training = config.training
    network = models.build(config.model, NUM_CLASSES)
    loss = nn.CrossEntropyLoss(label_smoothing=training.label_smoothing)
    update = nn.SGD(network.trainable_params(), 0.1, training.mom, weight_decay=training.wd)
    return nn.TrainOneStepCell(nn.WithLossCell(network, loss), update)


def step_rounds(cell: Any, config: Config, steps: int) -> Callable[[], dict[str, Any]]:
    """A function that makes a round of steps on a batch of noise, compiled already."""
    import mindspore as ms
    import numpy as np

    generator = np.random.default_rng(1)
    batch_size = config.training.batch_size
    images = generator.standard_normal((batch_size, *config.data.image_shape), np.float32)
    labels = generator.integers(NUM_CLASSES, size=batch_size).astype(np.int32)
    cell.set_train()

    def step() -> None:
        cell(ms.Tensor(images), ms.Tensor(labels)).asnumpy()

    step()
    return lambda: repeated(step, steps, batch_size)


def main() -> None:
    kind, steps = sys.argv[1], int(sys.argv[2])
    synthetic = ["--data-backend", "synthetic", "--num-classes", str(NUM_CLASSES)]
    config = cli.parse([*synthetic, *sys.argv[3:]], "benchmark")
    if kind != "stock":
        environment.prepare("CPU")
    import mindspore

    measure = step_rounds(suites(config) if kind == "suite" else stock(config), config, steps)
    serve({"versions": f"MindSpore {mindspore.__version__}"}, measure)


if __name__ == "__main__":
    main()
