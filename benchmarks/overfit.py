#!/usr/bin/env python3
"""Does each network learn 32 images by heart? Steps until the training accuracy is 1, and seconds per step.

    python -m benchmarks.overfit [--networks resnetv15-18 xception] [--steps 60] [--lr 0.256] [--size 64]

The suite's own training step on one batch of noise, 10 classes, no augmentation, an epoch being one step:
what is wrong in a network, its start or the optimizer shows as a batch that is not learnt. Branches start
silent, so the shortcuts alone nearly do it in the first updates (ResNet-50 and ResNeXt-50 come out alike):
that the gradients in the branches are right is shown by tests/models, not by this.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

from src.config import Config, Model, Training
from src.platform import environment, machine

NETWORKS = ("resnetv15-18", "resnetv1-50", "resnetv15-50", "resnextv15-50", "xception")
BATCH, CLASSES = 32, 10


@dataclass(frozen=True)
class Learnt:
    """What came out: the accuracy of each step, before its update; the first loss and the last."""

    accuracies: list[float]
    losses: list[float]
    compile_s: float  # the first step, which compiles the graph
    step_s: float  # the mean of the others

    @property
    def steps(self) -> int | None:
        """Updates until all images were classified right."""
        return next((step for step, top1 in enumerate(self.accuracies) if top1 == 1.0), None)


def learn(network: str, steps: int, lr: float, size: int) -> Learnt:
    """Train until every image is classified right, for at most `steps` updates."""
    import mindspore as ms

    from src import models
    from src.train.fit import training_step
    from src.train.schedule import schedule

    arch, _, layers = network.partition("-")
    model = Model(arch=arch, num_layers=int(layers or Model().num_layers))  # type: ignore[arg-type]
    config = Config(model, Training(batch_size=BATCH, num_epochs=steps, lr=lr, seed=0))
    ms.set_seed(0)
    plan = schedule(config.training, config.peak_lr(BATCH))
    step = training_step(models.build(model, CLASSES), config.training, plan, 1).set_train()
    rng = np.random.RandomState(0)
    images = ms.Tensor(rng.standard_normal((BATCH, 3, size, size)).astype(np.float32))
    labels = ms.Tensor((np.arange(BATCH) % CLASSES).astype(np.int32))
    accuracies, losses, times = [], [], [time.perf_counter()]
    for _ in range(steps + 1):
        losses.append(float(step(images, labels).asnumpy()))
        times.append(time.perf_counter())
        accuracies.append(step.take_sums()[2] / BATCH)
        if accuracies[-1] == 1.0:
            break
    durations = np.diff(times)
    return Learnt(accuracies, losses, float(durations[0]), float(durations[1:].mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="ARCH[-LAYERS]")
    for name, value in (("steps", 60), ("size", 64), ("lr", Training().lr)):
        parser.add_argument(f"--{name}", type=type(value), default=value)
    args = parser.parse_args()
    environment.prepare("CPU")

    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_device("CPU")
    facts = machine.describe("CPU")
    print(f"{facts['processor']}, {facts['cores']} cores, MindSpore {facts['mindspore']}; {vars(args)}")
    for network in args.networks:
        found = learn(network, args.steps, args.lr, args.size)
        reached = f"1.0 after {found.steps} updates" if found.steps is not None else "never 1.0"
        print(
            f"{network:14} {reached:24} top-1 {found.accuracies[-1]:.3f}, loss {found.losses[0]:.3f} to "
            f"{found.losses[-1]:.3f}, first step {found.compile_s:.1f} s, then {found.step_s:.2f} s each",
            flush=True,
        )


if __name__ == "__main__":
    main()
