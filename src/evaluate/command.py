"""The modes that only use a network or a pipeline: score a checkpoint, classify images, measure the input."""

from __future__ import annotations

import json
import signal
from typing import Any

import mindspore as ms

from src import models
from src.data.images import fault, find_images
from src.data.pipeline import ValPipeline
from src.data.sources import ClassLabel
from src.data.speed import measure
from src.errors import DataError
from src.evaluate import predict
from src.evaluate.validate import Validation
from src.job import Job
from src.models.precision import compute_in
from src.report.report import write_atomically
from src.weights import checkpoint
from src.weights.checkpoint import Checkpoint

INPUT_OPTIONS = (
    "image-shape", "image-size-steps", "val-image-size", "rgb-mean", "rgb-std", "interpolation",
    "val-interpolation",
)  # fmt: skip


def _load_network(job: Job) -> tuple[Any, Checkpoint]:
    """The network with the weights of --load, and what the checkpoint says of itself."""
    config = job.config
    assert config.output.load is not None
    loaded = checkpoint.read(config.output.load)
    checkpoint.check_model(loaded, config)
    recorded = len(loaded.meta.get("classes", [])) or (len(job.splits.classes) if job.splits else 0)
    network = models.build(config.model, config.model.num_classes or recorded or 1000)
    checkpoint.load_network(network, loaded, averaged=config.output.use_ema)
    compute_in(network, config.training.dtype, config.training.amp)
    then, now = loaded.meta.get("config", {}), config.plain()
    for name in INPUT_OPTIONS:
        if name in then and then[name] != now[name]:
            job.journal.console.warn(f"--{name} is {now[name]}; {loaded.path} was trained with {then[name]}")
    return network, loaded


def _network_to_score(job: Job) -> tuple[Any, str, int]:
    """The network, where its weights come from, and the epoch that they are of.

    Without --load they are drawn at random: --benchmark-iters asks for speed only.
    """
    config, classes = job.config, job.data.classes
    if config.output.load is None:
        ms.set_seed(job.seed)
        network = models.build(config.model, config.model.num_classes or len(classes))
        compute_in(network, config.training.dtype, config.training.amp)
        return network, "none, weights drawn from the seed: figures of speed only", 0
    network, loaded = _load_network(job)
    wnids = [row[0] for row in loaded.meta.get("classes", [])]
    if wnids and wnids != [label.wnid for label in classes]:
        raise DataError(f"{config.val_folder} has other classes, or another order, than {loaded.path}")
    origin = checkpoint.origin(loaded, config.output.use_ema)
    return network, origin, max(0, int(loaded.meta.get("epochs_done", 1)) - 1)


def score(job: Job) -> int:
    """--mode val: score a checkpoint once, or --run-epochs times, which are then the report's epochs."""
    config, splits = job.config, job.data
    assert splits.val is not None
    network, origin, epoch = _network_to_score(job)
    pipeline = ValPipeline(config, splits.val, job.world)
    facts = {"checkpoint": origin, "data": f"{pipeline.num_images} images, {len(splits.classes)} classes"}
    job.note_top5(len(splits.classes))
    job.journal.start("scoring", facts, job.options())
    validation, times = Validation(network, pipeline, job.world), config.training.run_epochs
    keep_answers = config.training.benchmark_iters is None  # else only the speed is of interest
    for number in [epoch] if times is None else range(times):
        with job.journal.console.waiting("scoring"):
            result = validation.run(lambda: job.requests.stop_asked, keep_answers)
        if result is None:
            signal_number = job.requests.stop_signal or signal.SIGTERM  # another rank's, if not this one's
            job.journal.interrupted(signal_number, "nothing was scored")
            return 128 + signal_number
        metrics = result.metrics()
        job.journal.note(num_samples=result.num_samples)
        job.journal.record(number, metrics)
    assert result is not None  # scored at least once, as --run-epochs is above 0
    validation.tell(result, number, job.journal)
    loss = metrics["val.loss"]
    found = {
        "images": result.num_samples,
        "top-1": f"{result.top1:.2%}",
        "top-5": f"{result.top5:.2%}",
        "loss": "not finite" if loss is None else f"{loss:.4f}",
    }
    job.journal.finish("done", found)
    return 0


def classify(job: Job) -> int:
    """--mode pred: the likeliest classes of each image; a bad file is told, and the others are done."""
    config = job.config
    assert config.data.data_pred is not None
    files = find_images(config.data.data_pred)
    network, loaded = _load_network(job)
    classes = [ClassLabel(*row) for row in loaded.meta.get("classes", [])]
    faults = {file: why for file, why in ((file, fault(file)) for file in files) if why}
    good = [file for file in files if file not in faults]
    predictions = predict.predict(network, config, good, classes) if good else []
    for prediction in predictions:
        job.journal.console.say("\n".join(_lines(prediction, loaded)))
    target = config.output.workspace / "predictions.json"
    found = {"checkpoint": str(loaded.path), "predictions": [p.as_dict() for p in predictions]}
    write_atomically(target, json.dumps({**found, "refused": faults}, indent=1, ensure_ascii=False) + "\n")
    for file, why in faults.items():
        job.journal.console.error(f"{file} {why}")
    job.journal.finish("done", {"images": len(good), "refused": len(faults), "predictions": target})
    return DataError.exit_code if faults else 0


def _lines(prediction: predict.Prediction, loaded: Checkpoint) -> list[str]:
    lines = [f"{prediction.file}, by {loaded.path}"]
    for place, (index, wnid, name, probability) in enumerate(prediction.classes, 1):
        lines.append(f"  {place:2d}. {probability:8.2%}  {name} ({wnid}, index {index})")
    return lines


def measure_input(job: Job) -> int:
    """--test-io: images per second of the input pipeline alone, all devices together."""
    training = job.config.training
    prefix = training.test_io_mode
    source = job.data.train or job.data.val
    assert source is not None
    job.journal.start(f"measuring the {prefix} pipeline", {"images": len(source)}, job.options())
    ips: float | None = None
    for epoch in range(training.run_epochs or 1):
        times = measure(job.config, job.data, job.world, job.seed, epoch)
        metrics = times.metrics(prefix, training.batch_size)
        ips = job.world.sum([metrics[f"{prefix}.total_ips"] or 0.0])[0] or None
        metrics[f"{prefix}.total_ips"] = ips
        job.journal.record(epoch, metrics)
    told = f"{ips:.1f} images/s" if ips else "too few batches to tell; use a smaller -b or more images"
    job.journal.finish("done", {f"{prefix} pipeline": told})
    return 0
