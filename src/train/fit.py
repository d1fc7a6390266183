"""A training run: builds everything once, then one pipeline and one Model.train call per epoch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Sequence

import mindspore as ms
from mindspore import nn
from mindspore.train import Callback, Model

from src import models
from src.data import sampling
from src.data.pipeline import TrainPipeline, ValPipeline
from src.evaluate.validate import Validation
from src.models.precision import compute_in
from src.train import agreement
from src.train import callbacks as cb
from src.train.continuing import Beginning, continued
from src.train.ema import MovingAverage
from src.train.graph_cache import GraphCache, key_of
from src.train.loss import WithLossCell, training_loss
from src.train.loss_scale import loss_scale
from src.train.normalizing import Normalize, normalization
from src.train.optimizer import optimizer
from src.train.record import EpochRecord
from src.train.saver import Saver
from src.train.schedule import Schedule, schedule
from src.train.step import TrainStep
from src.weights import checkpoint, keeping, pretrained
from src.weights.keeping import CheckpointFiles

if TYPE_CHECKING:
    from src.config import Config, Training
    from src.data.splits import Splits
    from src.platform.distributed import World
    from src.platform.signals import Requests
    from src.report.journal import Journal

# Seconds that compiling a training graph was measured to take on two cores, by network and depth; only to
# tell a person.
COMPILE_SECONDS = {
    "resnet": {18: 4, 34: 6, 50: 9, 101: 17, 152: 25},
    "resnext": {50: 9, 101: 17, 152: 25},
    "xception": {50: 9},
}
CLOSING = (cb.Validate, cb.Checkpoints, cb.EndOfEpoch, cb.OfferResults)  # of an epoch, after its figures


@dataclass(frozen=True)
class Fitting:
    """What a run is made of; `meta` goes into checkpoints."""

    network: nn.Cell
    num_classes: int
    step: TrainStep
    schedule: Schedule
    pipeline: TrainPipeline
    validation: Validation | None
    record: EpochRecord
    begin: Beginning
    meta: dict[str, Any]
    origin: str  # of the weights, for the person

    def last_epoch(self, config: Config) -> int:
        """The number of epochs that will be done when this run ends."""
        end, run_epochs = config.training.num_epochs, config.training.run_epochs
        return end if run_epochs is None else min(end, self.begin.epoch + run_epochs)

    def graph_key(self, config: Config, world: World) -> dict[str, Any]:
        """What tells the first graph that this run compiles from others (--compile-cache)."""
        facts = {
            "classes": self.num_classes,
            "size": config.train_size(self.begin.epoch),
            "images": len(self.pipeline.rows),
            "steps per epoch": self.record.num_steps,
            "parameters": [
                (p.name, p.shape, str(p.dtype), p.requires_grad) for p in self.step.get_parameters()
            ],
        }
        return key_of(config, world, facts)


def build(
    config: Config,
    world: World,
    splits: Splits,
    seed: int,
    resume_from: Sequence[Path] = (),
    warn: Callable[[str], None] = lambda sentence: None,
) -> Fitting:
    """Network, step and pipelines, with weights drawn from `seed`, from --load, or from `resume_from`.

    Of its checkpoints the first that is whole. Raises DataError when the epoch holds no whole update.
    """
    assert splits.train is not None
    num_classes = config.model.num_classes or len(splits.classes)
    pipeline = TrainPipeline(config, splits.train, world, seed)
    ms.set_seed(seed)
    network = models.build(config.model, num_classes)
    origin = "" if resume_from else first_weights(network, config)
    global_batch_size = config.global_batch_size(world.size)
    plan = schedule(config.training, config.peak_lr(global_batch_size))
    updates = sampling.steps_per_epoch(len(pipeline.rows), global_batch_size)
    updates = min(updates, pipeline.steps // config.training.accumulation)  # fewer with --benchmark-iters
    step = training_step(network, config.training, plan, updates, normalization(config))
    record = EpochRecord(updates * config.training.accumulation, config.training.accumulation)
    begin = Beginning()
    if resume_from:
        saved = keeping.read_newest(resume_from, warn)
        origin = str(saved.path)
        begin = continued(step, saved, record, pipeline, world, warn)
    validation = None
    if splits.val is not None:
        validation = Validation(network, ValPipeline(config, splits.val, world), world)
    same = {"steps in an epoch": record.num_steps, "epochs done": begin.epoch, "steps into it": begin.step}
    agreement.begin_together(step, world, config, splits, same, resumed=bool(resume_from), warn=warn)
    meta = _checkpoint_meta(config, network, splits, seed, world, pipeline, record)
    meta["best"] = begin.best
    return Fitting(network, num_classes, step, plan, pipeline, validation, record, begin, meta, origin)


def first_weights(network: nn.Cell, config: Config) -> str:
    """The weights of --load or --pretrained, put into the network if given; where they come from."""
    if config.output.load is not None:
        loaded = checkpoint.read(config.output.load)
        checkpoint.check_model(loaded, config)
        checkpoint.load_network(network, loaded, averaged=config.output.use_ema)
        return checkpoint.origin(loaded, config.output.use_ema)
    if config.model.pretrained is not None:
        return pretrained.load(network, config)
    return "drawn from the seed"


def training_step(
    network: nn.Cell,
    training: Training,
    plan: Schedule,
    updates_per_epoch: int,
    normalize: Normalize | None = None,
) -> TrainStep:
    """The step that the options ask for. The network has its first weights: averages start from them."""
    compute_in(network, training.dtype, training.amp)
    return TrainStep(
        WithLossCell(network, training_loss(training), normalize),
        optimizer(network, training, plan, updates_per_epoch),
        count_right=training.counts_right,
        accumulation=training.accumulation,
        grad_clip=training.grad_clip,
        average=MovingAverage(network, training.ema) if training.ema > 0 else None,
        loss_scale=loss_scale(training.loss_scale, training.dtype),
    )


def _checkpoint_meta(
    config: Config,
    network: nn.Cell,
    splits: Splits,
    seed: int,
    world: World,
    pipeline: TrainPipeline,
    record: EpochRecord,
) -> dict[str, Any]:
    return {
        "network": [p.name for p in network.get_parameters()],
        "classes": [list(label) for label in splits.classes],
        "config": config.plain(),
        "seed": seed,
        "world_size": world.size,
        "data_workers": pipeline.workers,
        "num_training_images": len(pipeline.rows),
        "steps_per_epoch": record.num_steps,
    }


def callbacks(
    f: Fitting, config: Config, world: World, journal: Journal, requests: Requests
) -> list[Callback]:
    """The programme of an epoch, in order."""
    files = CheckpointFiles(config)
    if world.is_main:
        files.clean()
    saver = Saver(f.step, f.record, world, files, f.meta)
    last = f.last_epoch(config)
    output, cached, profiled = config.output, [], []
    if output.compile_cache:
        cached = [cb.CachedGraph(GraphCache(output.compile_cache, f.graph_key(config, world)), journal)]
    if output.profile and world.is_main:
        profiled = [cb.Profile(f.record, journal, output.workspace / "profile", output.profile)]
    programme: list[Callback] = [
        cb.StepClock(f.record),
        *cached,  # inside the step's time
        cb.Pulses(f.record),
        *profiled,
        cb.Sums(f.record, f.step, world, config.training.disp_batches),
        cb.StopOnDivergence(f.record, f.step, config.training),
        cb.Progress(f.record, journal, f.schedule, config, world),
        cb.Agreement(f.record, requests, world, saver, output.save_every_minutes),
        cb.CheckpointsWithinEpochs(f.record, saver, config, requests, journal),
        cb.StopOnSignal(requests),
        cb.WholeEpoch(f.record, requests),
        cb.AverageStatistics(f.record, f.step, world),
        cb.StopOnBrokenState(f.record, f.step, world),
        cb.TrainMetrics(f.record, f.step, config, f.schedule, world),
    ]
    if f.validation is not None:
        programme.append(cb.Validate(f.record, f.step, f.validation, journal, requests, last))
    programme.append(cb.Checkpoints(f.record, saver, config, f.meta))
    num_epochs = config.training.num_epochs
    programme.append(cb.EndOfEpoch(f.record, journal, num_epochs, last, f.meta, saver))
    return [*programme, cb.OfferResults(f.record, journal), cb.DataClock(f.record)]


def fit(f: Fitting, config: Config, world: World, journal: Journal, requests: Requests) -> None:
    """Train from the first epoch that is not done to the last that is asked for, or to an agreed stop."""
    model = Model(f.step)  # the step holds loss and optimizer; Model owns the loop
    programme = callbacks(f, config, world, journal, requests)
    about = COMPILE_SECONDS[config.model.family][config.model.num_layers]
    size = None
    for epoch in range(f.begin.epoch, f.last_epoch(config)):
        f.record.restart(epoch, compiles=config.train_size(epoch) != size)
        if epoch == f.begin.epoch and f.begin.progress:
            f.record.go_on_from(f.begin.progress)
        if f.record.complete:  # a stop came before it was scored
            for callback in programme:
                if isinstance(callback, CLOSING):
                    callback.on_train_epoch_end(None)
        else:
            if f.record.compiles:  # a graph for each size of progressive resizing
                size = config.train_size(epoch)
                told = f"compiling the graph for {size[1]}x{size[0]} pixels, about {about} s on two cores"
                journal.console.waiting(told)
            dataset = f.pipeline.epoch(epoch, f.record.first_step)
            if config.training.accumulation > 1:
                dataset = dataset.take(f.record.num_steps - f.record.first_step)  # whole updates only
            # One pass over this epoch's own dataset; data sinking would want one dataset for all epochs.
            model.train(1, dataset, callbacks=programme, dataset_sink_mode=False)
        requests.stop_agreed = requests.stop_agreed or world.any(requests.stop_asked)
        if requests.stop_agreed:
            break
