"""The suite's own training pipeline, epoch by epoch, as a contestant of benchmarks/input_pipeline.py.

    python -m benchmarks.suite_input SKIP [options of train.py]

SKIP batches at the start of each epoch do not count. With --normalize-on-device the step's own cell
normalises every batch, so that what is measured ends with the same numbers.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any, Iterator

from benchmarks.peers.serving import serve, steady
from src import cli
from src.platform import environment, jpeg

SEED = 1


def main() -> None:
    skip, config = int(sys.argv[1]), cli.parse(sys.argv[2:], "benchmark")
    environment.prepare("CPU")
    jpeg.choose(config.pipeline.vector_decoder)
    import mindspore

    from src.data.pipeline import TrainPipeline
    from src.data.splits import open_splits
    from src.platform.distributed import World, init
    from src.train.normalizing import normalization

    source = open_splits(config, train=True, val=False).train
    assert source is not None
    pipeline = TrainPipeline(config, source, World(), SEED)
    epochs = itertools.count()

    normalize = None
    if config.pipeline.normalize_on_device:
        init("CPU")
        normalize = normalization(config)

    def batches() -> Iterator[tuple[Any, Any]]:
        dataset = pipeline.epoch(next(epochs))
        for images, labels in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
            if normalize is not None:
                images = normalize(mindspore.Tensor(images)).asnumpy()
            yield images, labels

    serve({"versions": f"MindSpore {mindspore.__version__}"}, lambda: steady(batches(), skip))


if __name__ == "__main__":
    main()
