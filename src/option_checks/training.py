"""Optimisation, and what is run."""

from src.config import Config
from src.option_checks.refusing import listed, refuse


def schedule(config: Config) -> None:
    """The learning rate over the epochs."""
    t = config.training
    refuse(
        t.warmup_epochs >= t.num_epochs and t.warmup_epochs > 0,
        f"--warmup-epochs {t.warmup_epochs:g} leaves nothing of --num-epochs {t.num_epochs}; "
        "for a short run give a shorter warm-up, 0 for none",
    )
    refuse(
        t.lr_schedule == "multistep" and not t.lr_steps,
        "--lr-schedule multistep needs --lr-steps, for example --lr-steps 30,60,80",
    )
    refuse(
        t.lr_factor is not None and not t.lr_steps,
        "--lr-factor has no effect without --lr-steps",
    )
    refuse(list(t.lr_steps) != sorted(set(t.lr_steps)), "--lr-steps must grow: " + listed(t.lr_steps))
    start = t.warmup_epochs if t.lr_schedule == "cosine" else 0
    refuse(
        any(not start < step < t.num_epochs for step in t.lr_steps),
        f"--lr-steps {listed(t.lr_steps)}: each must lie between epoch {start:g} and {t.num_epochs}",
    )


# Options that only some optimizers read.
OPTIMIZERS_WITH = {
    "mom": ("sgd", "nag", "lars"),
    "adam-beta1": ("adamw", "lamb"),
    "adam-beta2": ("adamw", "lamb"),
    "adam-eps": ("adamw", "lamb"),
    "trust-coefficient": ("lars",),
}


def optimisation(config: Config) -> None:
    """The optimizer and its options."""
    t, given, default = config.training, config.flat(), Config().flat()
    for name, optimizers in OPTIMIZERS_WITH.items():
        refuse(
            t.optimizer not in optimizers and given[name] != default[name],
            f"--{name} has no effect with --optimizer {t.optimizer}; it belongs to {', '.join(optimizers)}",
        )
    refuse(
        t.benchmark_iters is not None and t.benchmark_iters < t.accumulation,
        f"--benchmark-iters {t.benchmark_iters} ends the epoch before the first update, which takes "
        f"--accumulation {t.accumulation} batches",
    )
    refuse(
        t.optimizer == "nag" and t.mom == 0,
        "--optimizer nag needs --mom above 0; without momentum it is sgd",
    )


def precision(config: Config) -> None:
    """The type in which the network computes."""
    t = config.training
    refuse(
        t.amp and t.dtype == "float32",
        "--amp mixes float32 with a shorter type; say which: --dtype float16 or bfloat16",
    )
    refuse(
        t.loss_scale is not None and t.dtype != "float16",
        f"--loss-scale has no effect with --dtype {t.dtype}, which holds small gradients as they are; "
        "it belongs to --dtype float16",
    )


def mode(config: Config) -> None:
    """What is run, and with what."""
    t, out = config.training, config.output
    measures = t.mode == "val" and t.benchmark_iters is not None  # speed does not depend on the weights
    refuse(
        t.mode in ("val", "pred") and out.load is None and not t.test_io and not measures,
        f"--mode {t.mode} needs weights: --load CHECKPOINT",
    )
    refuse(
        out.use_ema and out.load is None and config.model.pretrained is None,
        "--use-ema has no effect without --load CHECKPOINT or --pretrained CHECKPOINT",
    )
    refuse(t.mode == "pred" and not config.data.data_pred, "--mode pred needs --data-pred FILE, DIR or GLOB")
    refuse(
        bool(config.data.data_pred) and t.mode != "pred",
        f"--data-pred has no effect with --mode {t.mode}; add --mode pred",
    )
    refuse(
        t.mode in ("val", "pred") and out.resume != "auto",
        f"--resume has no effect with --mode {t.mode}; use --load",
    )
