"""The suite's evaluation or prediction, as a contestant of benchmarks/inference.py.

    python -m benchmarks.suite_inference evaluate|predict|score|classify STEPS [options of train.py]

`evaluate` scores STEPS batches of noise, `predict` classifies them: what the network and the counting cost.
`score` evaluates the whole validation set, and `classify` predicts the first STEPS files below DATA_ROOT/val:
files in, answers out.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

from benchmarks.peers.serving import cpu_seconds, repeated, serve
from src import cli
from src.config import Config
from src.platform import environment, jpeg

NUM_CLASSES = 1000


class NoiseBatches:
    """Stands in for ValPipeline: the same batch, again and again."""

    alone, num_bad = True, 0

    def __init__(self, config: Config, steps: int) -> None:
        import numpy as np

        generator = np.random.default_rng(1)
        self.config, self.batch_size, self.steps = config, config.training.batch_size, steps
        self.num_images = self.batch_size * steps
        self.source = range(self.num_images)
        shape = self.batch_size, *config.data.image_shape
        self.images = generator.standard_normal(shape, np.float32)
        self.labels = generator.integers(NUM_CLASSES, size=self.batch_size).astype(np.int32)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for _ in range(self.steps):
            yield self.images, self.labels


class Timed:
    """Stands in for a pipeline, too; `seconds` are those of each batch, from asking for it to its answers."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pipeline, name)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        self.seconds, begin = [], time.perf_counter()
        for batch in self.pipeline:
            yield batch
            begin, before = time.perf_counter(), begin
            self.seconds.append(begin - before)


def scored(network: Any, pipeline: Any) -> Callable[[], dict[str, Any]]:
    """A function that scores all batches of a pipeline, compiled already."""
    from src.evaluate.validate import Validation
    from src.platform.distributed import World

    timed = Timed(pipeline)
    validation = Validation(network, timed, World())  # type: ignore[arg-type]

    def measure() -> dict[str, Any]:
        begin, cpu_begin = time.perf_counter(), cpu_seconds()
        score = validation.run()
        assert score is not None  # nobody asks for a stop
        seconds, cpu = time.perf_counter() - begin, cpu_seconds() - cpu_begin
        return {
            "images": score.num_samples,
            "seconds": seconds,
            "cpu_seconds": cpu,
            "step_seconds": timed.seconds,
        }

    measure()
    return measure


def predicted(network: Any, config: Config, steps: int) -> Callable[[], dict[str, Any]]:
    """A function that classifies batches of noise, as src/evaluate/predict.py does; compiled already."""
    import mindspore as ms

    from src.evaluate.predict import Probabilities

    batch = NoiseBatches(config, steps)
    cell = Probabilities(network).set_train(False)

    def step() -> None:
        cell(ms.Tensor(batch.images)).asnumpy()

    step()
    return lambda: repeated(step, steps, batch.batch_size)


def classified(network: Any, config: Config, count: int) -> Callable[[], dict[str, Any]]:
    """A function that classifies image files, compilation included: `predict` compiles in each call."""
    from src.data.sources import ClassLabel
    from src.evaluate.predict import predict

    files = sorted(str(path) for path in Path(config.data.data_root, "val").rglob("*.*"))[:count]
    classes = [ClassLabel(str(k), str(k)) for k in range(NUM_CLASSES)]
    return lambda: repeated(lambda: predict(network, config, files, classes), 1, len(files))


def main() -> None:
    kind, steps = sys.argv[1], int(sys.argv[2])
    config = cli.parse(["--num-classes", str(NUM_CLASSES), *sys.argv[3:]], "benchmark")
    environment.prepare("CPU")
    jpeg.choose(config.pipeline.vector_decoder)
    import mindspore as ms

    from src import models
    from src.data.pipeline import ValPipeline
    from src.data.splits import open_splits
    from src.platform.distributed import World, init

    init("CPU")
    ms.set_seed(1)
    network = models.build(config.model, NUM_CLASSES)
    if kind == "score":
        source = open_splits(config, train=False, val=True).val
        assert source is not None
        measure = scored(network, ValPipeline(config, source, World()))
    elif kind == "evaluate":
        measure = scored(network, NoiseBatches(config, steps))
    else:
        measure = {"predict": predicted, "classify": classified}[kind](network, config, steps)
    serve({"versions": f"MindSpore {ms.__version__}"}, measure)


if __name__ == "__main__":
    main()
