#!/usr/bin/env python3
"""Calculates, not measures, how a training step scales: from bytes, bandwidths and latencies.

    python -m benchmarks.scaling_model [--preset dgx-a100|ascend-910] [--devices 8 64 ...] [--batch 192]

step = compute + max(0, all-reduce - overlap x backward), backward being 2/3 of compute (it does two of the
three matrix products of a layer). S bytes of gradients are reduced over n devices, in m nodes of g:

ring          2 (n-1)/n S/B + 2 (n-1) a: one ring through all devices (Patarasuk and Yuan, 2009, bandwidth
              optimal), at the bandwidth B and latency a of its slowest link.
hierarchical  reduce-scatter in the node, all-reduce of S/g between nodes over a link of each device by
              recursive halving and doubling (Thakur, Rabenseifner and Gropp, 2005:
              2 lg m a + 2 (m-1)/m S/g/B), all-gather in the node.

The sums themselves are taken as free, links as never contended, and no rank as late. Every assumption is an
option; a preset's values are published ones, by whom is printed. What has no published value we know of has
no default there: it is left out (0, or no table), and said.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace

from benchmarks.measuring import table

PARAMETERS = 25_557_032  # of ResNet-50 with 1000 classes
TRAIN_IMAGES = 1_281_167
BACKWARD_SHARE = 2 / 3
# The largest global batches at which ResNet-50's accuracy was published as kept, and with what.
LIMITS = (
    (8192, "SGD, linear rate and warm-up (published by Goyal et al., 2017)"),
    (32768, "LARS (published by You et al., 2018)"),
)


@dataclass(frozen=True)
class Machine:
    """GB/s per device and direction, and us per message; 0 is unknown, and left out."""

    images_per_s: float  # of one device, computing alone
    node: int  # devices
    inside_gbs: float
    between_gbs: float
    inside_us: float
    between_us: float
    sources: str


PRESETS = {
    "dgx-a100": Machine(
        3411,
        8,
        235,
        25,
        3.4,
        9.6,
        "3,411 images/s of one A100 in mixed precision (published by NVIDIA for its MXNet example); "
        "235 GB/s: an assumption; 3.4 us and 9.6 us (constants of NCCL's own cost model, published by NVIDIA "
        "in src/graph/tuning.cc: ring, Simple protocol, NVLink and network; newer versions: 14 us for the "
        "network); 25 GB/s: one 200 Gb/s port per GPU (published by NVIDIA for the DGX A100)",
    ),
    "ascend-910": Machine(
        2115,
        8,
        0,
        12.5,
        0,
        0,
        "2,115 images/s of one Ascend 910 in mixed precision, 256 images per device (published by MindSpore, "
        "docs r0.5, benchmark.md; there 16,600 with 8 and 32,768 with 16, which is 98 % and 97 % of as many "
        "single ones). 12.5 GB/s: one 100 Gb/s port per device, an assumption. Bandwidth inside a node and "
        "latencies: no published value known to us; give --inside-gbs, --inside-us and --between-us. Without "
        "them the inside of a node and all latencies cost nothing here, so that the times are lower bounds",
    ),
}


def transfer_s(gigabytes: float, gbs: float) -> float:
    return gigabytes / gbs if gbs else 0.0


def ring_s(m: Machine, n: int, gigabytes: float) -> float:
    """One ring through all devices, those of a node in a row."""
    if n == 1:
        return 0.0
    nodes = math.ceil(n / m.node)
    gbs = m.between_gbs if nodes > 1 else m.inside_gbs
    crossings = 2 * (nodes - 1) if nodes > 1 else 0  # as NCCL counts them
    latency_us = crossings * m.between_us + (2 * (n - 1) - crossings) * m.inside_us
    return 2 * (n - 1) / n * transfer_s(gigabytes, gbs) + latency_us * 1e-6


def hierarchical_s(m: Machine, n: int, gigabytes: float) -> float:
    """Inside the nodes, between them, inside again."""
    inside = min(n, m.node)
    nodes = math.ceil(n / inside)
    seconds = 2 * (inside - 1) / inside * transfer_s(gigabytes, m.inside_gbs)
    seconds += 2 * (inside - 1) * m.inside_us * 1e-6
    seconds += 2 * (nodes - 1) / nodes * transfer_s(gigabytes / inside, m.between_gbs)
    return seconds + 2 * math.log2(nodes) * m.between_us * 1e-6


def step_s(compute_s: float, all_reduce_s: float, overlap: float) -> float:
    return compute_s + max(0.0, all_reduce_s - overlap * BACKWARD_SHARE * compute_s)


def limit(global_batch: int) -> str:
    """With what a global batch of this size was published to keep the accuracy."""
    known = (how for largest, how in LIMITS if global_batch <= largest)
    return next(known, "beyond both: lower the batch per device")


def rows(m: Machine, devices: list[int], batch: int, gigabytes: float, overlap: float) -> list[list[object]]:
    found: list[list[object]] = []
    compute = batch / m.images_per_s
    for n in devices:
        ring, hierarchical = ring_s(m, n, gigabytes), hierarchical_s(m, n, gigabytes)
        cells = [f"{n:,}", f"{1e3 * compute:.1f}", f"{1e3 * ring:.2f}", f"{1e3 * hierarchical:.2f}"]
        for all_reduce in (ring, hierarchical):
            for share in (0.0, overlap):
                step = step_s(compute, all_reduce, share)
                cells.append(f"{1e3 * step:.1f} ({compute / step:.0%})")
        step = step_s(compute, hierarchical, overlap)
        cells.append(f"{min(n, m.node) * batch / step:,.0f}")
        found.append(cells)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", choices=PRESETS, default="dgx-a100")
    parser.add_argument("--devices", type=int, nargs="+", default=[8, 64, 512, 4096])
    parser.add_argument("--batch", type=int, default=192, help="images per device")
    parser.add_argument("--bytes", type=int, nargs="+", default=[4, 2], help="per gradient: float32, float16")
    parser.add_argument("--parameters", type=int, default=PARAMETERS)
    parser.add_argument("--overlap", type=float, default=1.0, help="share of backward that hides all-reduce")
    parser.add_argument("--lr", type=float, default=0.256, help="per 256 images")
    for name in ("images_per_s", "inside_gbs", "between_gbs", "inside_us", "between_us"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, help="instead of the preset's")
    parser.add_argument("--node", type=int, help="devices in a node, instead of the preset's")
    args = parser.parse_args()
    machine = PRESETS[args.preset]
    own = {f: getattr(args, f) for f in vars(machine) if getattr(args, f, None) is not None}
    machine = replace(machine, **own)
    told = f"; instead of its values: {own}" if own else ""
    print(f"Calculated, preset {args.preset}{told}: {machine.sources}. {args.batch} images per device.\n")
    head = [
        "devices", "compute, ms", "ring, ms", "hierarchical, ms",
        "step, ring, nothing hidden, ms (efficiency)",
        f"ring, {args.overlap:.0%} of backward hides", "hierarchical, nothing hidden",
        f"hierarchical, {args.overlap:.0%} hides", "input, images/s per node",
    ]  # fmt: skip
    for size in args.bytes:
        gigabytes = args.parameters * size / 1e9
        print(f"{size} bytes per gradient, {1e3 * gigabytes:.1f} MB:\n")
        print(table(head, rows(machine, args.devices, args.batch, gigabytes, args.overlap)) + "\n")
    consequences = [
        [f"{n:,}", f"{n * args.batch:,}", f"{args.lr * n * args.batch / 256:.3f}",
         TRAIN_IMAGES // (n * args.batch), limit(n * args.batch)]
        for n in args.devices
    ]  # fmt: skip
    print(
        table(
            ["devices", "global batch", "peak rate", "updates per epoch", "accuracy kept with"], consequences
        )
    )


if __name__ == "__main__":
    main()
