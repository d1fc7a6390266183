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


def mode(config: Config) -> None:
    """What is run, and with what."""
    t, out = config.training, config.output
    refuse(
        t.mode in ("val", "pred") and out.load is None and not t.test_io,
        f"--mode {t.mode} needs weights: --load CHECKPOINT",
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
