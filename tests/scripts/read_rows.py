"""Every row of a set through the suite's input, in a process that may die: tests.scripts.read_rows FOLDER.

With a number behind it: row by row from there, each row's file name printed before it is decoded, so that the
last line names the row that ended the process, and "FILE: ERROR" where MindSpore refused one.
"""

from __future__ import annotations

import os
import sys
import tempfile

import numpy as np

from src.config import Config, Data, Pipeline, Training
from src.data.manifest import read_manifest
from src.data.sources import MindRecordSource
from src.platform import environment
from src.platform.distributed import World

EPOCHS = 3  # of random crops, which decode only a part of a file


def main(folder: str, first: int | None) -> None:
    from src.data import transforms
    from src.data.pipeline import TrainPipeline, ValPipeline

    source = MindRecordSource(read_manifest(folder))
    config = Config(
        training=Training(batch_size=1),
        data=Data(image_shape=(3, 64, 64)),
        pipeline=Pipeline(data_threads=min(2, environment.num_cores())),
    )
    if first is not None:
        row_by_row(config, source, first, transforms)
        return
    pipeline = TrainPipeline(config, source, World(), seed=1)
    for epoch in range(EPOCHS):
        batches = pipeline.epoch(epoch).create_tuple_iterator(num_epochs=1, output_numpy=True)
        assert sum(1 for _ in batches) == len(source)
    assert sum(1 for _ in ValPipeline(config, source, World())) == len(source)
    print("read", len(source))


def row_by_row(config, source, first, transforms) -> None:
    import mindspore.dataset as ds

    order = ds.SubsetSampler(list(range(first, len(source))))
    rows = ds.MindDataset(source.manifest.files, ["image", "file_name"], sampler=order)
    for image, name in rows.create_tuple_iterator(num_epochs=1, output_numpy=True):
        print(str(name), flush=True)
        data = np.frombuffer(image.tobytes(), np.uint8)
        try:
            for op in (transforms.train_ops(config, True)[0], transforms.val_ops(config, True)[0]):
                op(data)
        except RuntimeError as error:
            reason = [line for line in str(error).splitlines() if line.strip()][-1]
            print(f"{name}: ERROR {reason}", flush=True)


if __name__ == "__main__":
    environment.prepare("CPU")
    with tempfile.TemporaryDirectory() as scratch:  # MindSpore leaves the images that it refuses there
        target = os.path.abspath(sys.argv[1])
        os.chdir(scratch)
        main(target, int(sys.argv[2]) if len(sys.argv) > 2 else None)
