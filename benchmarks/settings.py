#!/usr/bin/env python3
"""What threads, memory, compilation and folded norms do to the speed of ResNet-50 on the CPU, float32.

    python -m benchmarks.settings [--batch 8] [--steps 2] [--rounds 5] [--size 224] [--limit SECONDS]

A process for each setting, with a batch of noise in memory; in every round each makes --steps training steps,
or predictions, beginning with another one each time. `as it is` is the suite; each other row differs from it
in what its name says. A folded norm is multiplied into the convolution before it, which evaluation allows:
its answers are then those of other roundings. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Callable, Mapping, Sequence

from benchmarks.measuring import machine, ratio, table
from benchmarks.peers.serving import serve
from benchmarks.rounds import Contestant, spread, take_turns
from benchmarks.suite_inference import predicted
from benchmarks.suite_step import NUM_CLASSES, step_rounds, suites
from src import cli
from src.config import Config
from src.platform import environment

AS_IT_IS, FOLDED = "as it is", "batch norms folded"
TRAIN, PREDICT = "training", "prediction"
# Name -> variables of the environment.
VARIABLES: dict[str, Mapping[str, str]] = {
    AS_IT_IS: {},
    "one thread": {"OMP_NUM_THREADS": "1"},
    "threads bound to cores": {"OMP_PROC_BIND": "true"},
    "threads that wait asleep": {"OMP_WAIT_POLICY": "passive"},
    "threads that wait awake": {"OMP_WAIT_POLICY": "active"},
    "huge pages": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
}
# Name -> MindSpore's level of compilation; O1 is where it fuses.
LEVELS = {"jit level O1": "O1", "jit level O2": "O2"}
SETTINGS = {TRAIN: [*VARIABLES, *LEVELS], PREDICT: [AS_IT_IS, FOLDED, "one thread", "jit level O1"]}


def fold(network: Any) -> None:
    """Multiply every batch norm that has a convolution before it into that; the norm is then the identity."""
    import mindspore as ms
    from mindspore import nn

    def pairs(cell: Any) -> Any:
        before: tuple[str, Any] | None = None
        for name, child in list(cell.name_cells().items()):
            if isinstance(child, nn.BatchNorm2d) and before is not None:
                yield cell, before[0], before[1], name, child
            yield from pairs(child)
            before = (name, child) if isinstance(child, nn.Conv2d) else None

    for owner, conv_name, conv, norm_name, norm in list(pairs(network)):
        variance, gamma = norm.moving_variance.asnumpy(), norm.gamma.asnumpy()
        factor = gamma / (variance + norm.eps) ** 0.5
        folded = nn.Conv2d(
            conv.in_channels,
            conv.out_channels,
            conv.kernel_size,
            conv.stride,
            pad_mode="pad",
            padding=conv.padding,
            group=conv.group,
            has_bias=True,
        )
        folded.weight.set_data(ms.Tensor(conv.weight.asnumpy() * factor.reshape(-1, 1, 1, 1)))
        folded.bias.set_data(ms.Tensor(norm.beta.asnumpy() - norm.moving_mean.asnumpy() * factor))
        if isinstance(owner, nn.SequentialCell):
            owner[int(conv_name)], owner[int(norm_name)] = folded, nn.Identity()
        else:
            setattr(owner, conv_name, folded)
            setattr(owner, norm_name, nn.Identity())


def measured(kind: str, setting: str, steps: int, config: Config) -> Callable[[], dict[str, Any]]:
    """A function that makes a round, compiled already; in this process."""
    import mindspore as ms

    from src import models
    from src.platform.distributed import init

    init("CPU")
    if setting in LEVELS:
        ms.set_context(jit_config={"jit_level": LEVELS[setting]})
    if kind == TRAIN:
        return step_rounds(suites(config), config, steps)
    ms.set_seed(1)
    network = models.build(config.model, NUM_CLASSES)
    if setting == FOLDED:
        fold(network)
    return predicted(network, config, steps)


def contestant(kind: str, setting: str, args: argparse.Namespace) -> Contestant:
    words = [sys.executable, "-m", "benchmarks.settings", "--serve", kind, setting]
    for name in ("batch", "steps", "size"):
        words += [f"--{name}", str(getattr(args, name))]
    return Contestant(f"{kind}, {setting}", words, VARIABLES.get(setting, {}))


def report(found: Mapping[str, Contestant]) -> str:
    """A row for each setting; how fast it is over the suite as it is, round by round."""
    lines = []
    for setting, each in found.items():
        times = "" if setting == AS_IT_IS else ratio(each.rates(), found[AS_IT_IS].rates())
        cpu = f"{each.cpu_ms():,.0f}"
        lines.append([setting, spread(each.rates(), ",.2f"), cpu, times])
    return table(
        ["", "images/s: median (min to max)", "core ms for an image", "over the suite as it is"], lines
    )


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=8, help="eight processes hold one each")
    parser.add_argument("--steps", type=int, default=2, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=224, help="of the images, in pixels")
    parser.add_argument(
        "--limit", type=float, default=float("inf"), help="seconds of a table after which no round begins"
    )
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def serve_one(args: argparse.Namespace) -> None:
    words = ["--data-backend", "synthetic", "--num-classes", str(NUM_CLASSES), "-b", str(args.batch)]
    words += ["--image-shape", f"3,{args.size},{args.size}", "--num-examples", str(10 * args.batch)]
    config = cli.parse(words, "benchmark")
    environment.prepare("CPU")
    serve({}, measured(*args.serve, args.steps, config))


def main() -> None:
    args = parse()
    if args.serve:
        serve_one(args)
        return
    load = os.getloadavg()[0]
    print(f"ResNet-50, {args.size} px, float32, batch {args.batch};")
    print(f"{machine()}; load average before it {load:.1f}.")
    for kind, settings in SETTINGS.items():
        found = {setting: contestant(kind, setting, args) for setting in settings}
        for each in found.values():
            each.start()
        take_turns(list(found.values()), args.rounds, args.limit)
        for each in found.values():
            each.stop()
        print(
            f"\n{kind}, {len(found[AS_IT_IS].rounds)} rounds of {args.steps} batches\n\n{report(found)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
