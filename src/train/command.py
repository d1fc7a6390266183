"""Training mode: what is told before and after, around `fit`."""

from __future__ import annotations

import signal
import statistics
from typing import Any, Mapping

from src import cli
from src.config import Config, Data
from src.job import Job
from src.report.breakdown import bound_by
from src.train.fit import Fitting, build, fit
from src.weights import keeping, resume


def train(job: Job) -> int:
    """Train, and return the exit code."""
    warn = job.journal.console.warn
    fitting = build(job.config, job.world, job.data, job.seed, job.plan.checkpoints, warn)
    begin = fitting.begin
    job.journal.go_on(begin.epoch, begin.step, job.config.training.num_epochs, begin.finished)
    job.note_top5(fitting.num_classes)
    job.journal.start("training", _facts(job, fitting), job.options())
    fit(fitting, job.config, job.world, job.journal, job.requests)
    if job.requests.stop_agreed:
        last = keeping.checkpoint_path(job.config, keeping.LAST)
        saves = job.config.output.save_frequency != 0
        kept = (
            f"the same command continues from {last}" if saves else "nothing was saved (--save-frequency 0)"
        )
        number = job.requests.stop_signal or signal.SIGTERM  # another rank's, if not this one's
        job.journal.interrupted(number, kept)
        return 128 + number
    best = fitting.meta["best"]
    job.journal.finish("done", _results(job, fitting), _next_steps(job.config, best))
    return 0


def _facts(job: Job, fitting: Fitting) -> dict[str, Any]:
    config, pipeline, splits = job.config, fitting.pipeline, job.data
    parameters = sum(p.size for p in fitting.network.trainable_params())
    stages = config.model.freeze
    frozen = f" to train, the first {stages} of 5 stages frozen" if stages else ""
    num_val = f", {len(splits.val)} to validate" if splits.val is not None else ""
    global_batch = config.global_batch_size(job.world.size)
    last, peak = fitting.last_epoch(config), config.peak_lr(global_batch)
    k = config.training.accumulation
    after = f", from step {fitting.begin.step} on" if fitting.begin.step else ""
    batches = f" in {k} batches each" if k > 1 else ""
    return {
        "network": f"{config.model.title}, {parameters:,} parameters{frozen}",
        "weights": fitting.origin,
        "data": f"{len(pipeline.rows)} training images{num_val}, {len(splits.classes)} classes",
        "devices": f"{job.world.size} x {job.world.device}",
        "batch": f"{config.training.batch_size} per device, {global_batch} in all{batches}",
        "epochs": f"{fitting.begin.epoch + 1} to {last} of {config.training.num_epochs}, "
        f"{fitting.record.num_steps} steps each{after}",
        "peak rate": f"{peak:g} ({config.training.lr:g} per 256 images)",
        "input threads": pipeline.workers,
        "seed": job.seed,
        "workspace": config.output.workspace.resolve(),
    }


def _results(job: Job, fitting: Fitting) -> dict[str, Any]:
    config, best = job.config, fitting.meta["best"]
    metrics = job.journal.report.as_dict()["metrics"] if job.journal.report else {}
    facts = _accuracies(metrics, best)
    if best and config.output.save_frequency:
        facts["best checkpoint"] = keeping.checkpoint_path(config, keeping.BEST)
    rates = [rate for rate in metrics.get("train.total_ips", []) if rate]
    if rates:
        facts["training"] = f"{statistics.median(rates):.1f} images/s (median epoch)"
    bound = bound_by(metrics)
    if bound:
        facts["bound by"] = bound
    facts["log"] = resume.output_file(config, config.output.log)
    return facts


def _accuracies(metrics: Mapping[str, Any], best: Mapping[str, Any] | None) -> dict[str, Any]:
    """Best and last top-1 of the report's metrics; with a moving average, which weights each belongs to."""
    facts, averaged = {}, metrics.get("val.ema_top1")
    if best:
        weights = " with averaged weights" if averaged else ""
        facts["best top-1"] = f"{best['top1']:.2%}{weights}, in epoch {best['epoch'] + 1}"
    if metrics.get("val.top1"):
        raw = f"{metrics['val.top1'][-1]:.2%}"
        facts["last top-1"] = f"{averaged[-1]:.2%} with averaged weights, {raw} without" if averaged else raw
    return facts


def _next_steps(config: Config, best: Any) -> list[str]:
    """Commands that use what this run made."""
    if not best or not config.output.save_frequency:
        return []
    load = ["--load", str(keeping.checkpoint_path(config, keeping.BEST))]
    load += ["--use-ema"] * (config.training.ema > 0)
    folders = Data(
        data_root=config.data.data_root,
        data_val=config.data.data_val,
        data_backend=config.data.data_backend,
        data_source=config.data.data_source,
        num_examples=config.data.num_examples,
        on_bad_image=config.data.on_bad_image,
    )
    score = ["python", "eval.py", *load, *cli.to_argv(Config(data=folders))]
    classify = ["python", "train.py", "--mode", "pred", *load, "--data-pred", "IMAGE"]
    return [f"score it again:     {cli.join(score)}", f"classify an image:  {cli.join(classify)}"]
