"""The network, and the weights that it begins with."""

from src.config import Config, Model
from src.option_checks.refusing import refuse

RESNEXT_LAYERS = (50, 101, 152)  # those with bottlenecks, whose 3x3 convolution is grouped


def network(config: Config) -> None:
    """Options that belong to another network, or to none."""
    m, default = config.model, Model()
    refuse(
        m.family == "resnext" and m.num_layers not in RESNEXT_LAYERS,
        f"--num-layers {m.num_layers} has no bottlenecks to group: --arch {m.arch} has 50, 101 or 152",
    )
    refuse(
        m.family == "xception" and m.num_layers != default.num_layers,
        f"--num-layers {m.num_layers} has no effect with --arch xception, which has one depth; leave it out",
    )
    for name in ("num_groups", "width_per_group"):
        value, option = getattr(m, name), f"--{name.replace('_', '-')}"
        refuse(value < 1, f"{option} is {value}; it must be at least 1")
        refuse(
            m.family != "resnext" and value != getattr(default, name),
            f"{option} has no effect with --arch {m.arch}; it belongs to resnextv1 and resnextv15",
        )


def pretrained(config: Config) -> None:
    """Weights of another run, and what is kept of them."""
    m, t, out = config.model, config.training, config.output
    for option, given in (("--pretrained", m.pretrained is not None), ("--freeze", m.freeze > 0)):
        refuse(
            given and not config.trains,
            f"{option} has no effect " + ("with --test-io" if t.test_io else f"with --mode {t.mode}"),
        )
    refuse(
        m.pretrained is not None and out.load is not None,
        f"--load {out.load} and --pretrained {m.pretrained} both give the first weights; leave one out",
    )
    refuse(
        m.freeze > 0 and m.pretrained is None and out.load is None and out.resume in ("auto", "off"),
        f"--freeze {m.freeze} would keep weights drawn at random; add --pretrained FILE",
    )
