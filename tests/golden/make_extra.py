"""Makes extra.json: values of networks that golden.json and networks.json leave out, computed with PyTorch.

    python -m tests.golden.make_extra [--only resnet18_v1.5@75 ...] [--check]

ResNets and ResNeXts are torchvision's, in v1 with the strides of each bottleneck changed over; Xception is
written out below. Weights, images and labels come from their names (spec.py), computation is in float64; how
far PyTorch's own float32 is from that is printed beside each network, for the tests' tolerances. `--only`
makes some entries anew and keeps the others. `--check` computes entries of the other two files instead and
compares: by hand and by torchvision they are the same. Needs torch, torchvision and numpy, and nothing of
src/. The keys mean what they do in networks.json:

* `eval_logits`, `train_logits`: the first 5 of each image, and mean, standard deviation and largest
  magnitude of all; `train_...` is with the batch's statistics.
* `..._loss`: mean cross-entropy; `..._smooth` with smoothing 0.1 over all classes, `trap_...` over the
  others.
* `grad_norms`: L2, of the smoothed training loss, of some weights and of `ALL`.
* `bn_after_one_forward`: L2 norms of all moving means and variances after one training step; and of the
  first, the middle and the last batch norm the mean and norm of its moving mean, mean and norm of its moving
  variance, and that norm if it were fed the biased variance.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any, Iterable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.peers.tiny_imagenet import torchvision  # with its way around a mixed installation
from tests.golden import spec

HERE = Path(__file__).parent
# (network, batch, image side, classes).
EXTRA = [
    # The deepest, in both versions.
    ("resnext152_32x4d_v1", 4, 64, 10),
    ("resnext152_32x4d_v1.5", 4, 64, 10),
    # Other groups and widths: of about the same size in Xie et al. 2016, table 3; and torchvision's
    # resnext101_64x4d and wide_resnet50_2, whose one group is 128 wide.
    ("resnext50_2x40d_v1", 4, 64, 10),
    ("resnext50_8x14d_v1.5", 4, 64, 10),
    ("resnext101_64x4d_v1.5", 4, 64, 10),
    ("resnext50_1x128d_v1.5", 4, 64, 10),
    # Sides that strides do not divide, where padding on one side alone would show.
    ("resnet18_v1.5", 4, 75, 10),
    ("resnet50_v1", 4, 75, 10),
    ("xception", 4, 75, 10),
    # The size of the paper.
    ("xception", 2, 299, 1000),
]
CHECKED = [
    ("resnet18_v1.5", 4, 64, 10),
    ("resnet50_v1", 4, 64, 10),
    ("resnext50_32x4d_v1.5", 4, 64, 10),
    ("xception", 4, 96, 10),
]
DIGITS = 12  # significant, of the numbers written


class Separable(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)


class Block(nn.Module):
    """Separable convolutions, each with its norm and, but for the network's first, a ReLU before it."""

    def __init__(self, inputs: int, widths: list[int], shrinks: bool, begins_with_relu: bool) -> None:
        super().__init__()
        self.widths, self.shrinks, self.begins_with_relu = widths, shrinks, begins_with_relu
        for i, (before, width) in enumerate(zip([inputs, *widths], widths), 1):
            self.add_module(f"sep{i}", Separable(before, width))
            self.add_module(f"bn{i}", nn.BatchNorm2d(width))
        if shrinks:
            convolution = nn.Conv2d(inputs, widths[-1], 1, 2, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(widths[-1]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for i in range(1, len(self.widths) + 1):
            y = F.relu(y) if i > 1 or self.begins_with_relu else y
            y = self.get_submodule(f"bn{i}")(self.get_submodule(f"sep{i}")(y))
        return F.max_pool2d(y, 3, 2, 1) + self.shortcut(x) if self.shrinks else y + x


class Xception(nn.Module):
    """Chollet 2017, arXiv:1610.02357, figure 5, every convolution and pooling padded by half its size."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64)
        entry, middle = [(64, [128] * 2), (128, [256] * 2), (256, [728] * 2)], [(728, [728] * 3)] * 8
        plan = [*entry, *middle, (728, [728, 1024])]
        for i, (inputs, widths) in enumerate(plan, 1):
            self.add_module(f"block{i}", Block(inputs, widths, inputs != widths[-1], i > 1))
        self.sep3, self.bn3 = Separable(1024, 1536), nn.BatchNorm2d(1536)
        self.sep4, self.bn4 = Separable(1536, 2048), nn.BatchNorm2d(2048)
        self.fc = nn.Linear(2048, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        for i in range(1, 13):
            x = self.get_submodule(f"block{i}")(x)
        x = F.relu(self.bn4(self.sep4(F.relu(self.bn3(self.sep3(x))))))
        return self.fc(x.mean((2, 3)))


def build(network: str, classes: int) -> nn.Module:
    """`resnet18_v1.5`, `resnext152_32x4d_v1` or `xception`, without values: drawing them would cost most."""
    with torch.device("meta"):
        return described(network, classes)


def described(network: str, classes: int) -> nn.Module:
    if network == "xception":
        return Xception(classes)
    family, depth, groups, width, version = re.fullmatch(
        r"(resnet|resnext)(\d+)(?:_(\d+)x(\d+)d)?_v(.*)", network
    ).groups()
    block = torchvision.models.resnet.BasicBlock if int(depth) < 50 else torchvision.models.resnet.Bottleneck
    form = {"groups": int(groups), "width_per_group": int(width)} if family == "resnext" else {}
    built = torchvision.models.ResNet(block, spec.DEPTHS[int(depth)], num_classes=classes, **form)
    for module in built.modules():
        if version == "1" and isinstance(module, torchvision.models.resnet.Bottleneck):
            module.conv1.stride, module.conv2.stride = module.conv2.stride, module.conv1.stride
    return built


def with_weights(network: str, classes: int, dtype: torch.dtype) -> nn.Module:
    """Of their names; in float64 too they are the float32 values."""
    built = build(network, classes).to_empty(device="cpu")
    for name, tensor in built.state_dict().items():
        if name.endswith("num_batches_tracked"):
            tensor.zero_()
        else:
            tensor.copy_(torch.from_numpy(spec.param_value(name, tensor.shape, network)))
    return built.to(dtype)


def norm(tensors: Iterable[torch.Tensor]) -> float:
    return math.sqrt(sum(float((t.detach().double() ** 2).sum()) for t in tensors))


def cross_entropy(logits: torch.Tensor, targets: np.ndarray) -> torch.Tensor:
    return -(torch.from_numpy(targets).to(logits.dtype) * F.log_softmax(logits, 1)).sum(1).mean()


def summary(logits: torch.Tensor) -> dict[str, Any]:
    a = logits.detach().double().numpy()
    sizes = {"mean": a.mean(), "std": a.std(), "max_abs": np.abs(a).max()}
    return {"first5": a[:, :5].tolist(), **{name: float(size) for name, size in sizes.items()}}


def probes(network: str) -> list[str]:
    """The weights whose gradients are compared: first, last, and one of each kind between."""
    if network == "xception":
        names = ["block6.sep2.pointwise", "block6.sep2.depthwise", "block12.shortcut.0", "block12.bn2", "bn4"]
    else:
        depth = int(re.search(r"\d+", network).group())
        last = f"layer4.{spec.DEPTHS[depth][3] - 1}.bn{2 if depth < 50 else 3}"
        names = ["layer2.0.downsample.0", "layer3.0.conv2", last]
    return [f"{name}.weight" for name in ("conv1", *names, "fc")] + ["fc.bias"]


def statistics(norms: dict[str, nn.Module], before: dict[str, torch.Tensor], counts: dict[str, int]) -> dict:
    """After one training step; the biased variance follows from the unbiased, as the update is linear."""
    biased = {}
    for name, module in norms.items():
        kept = (1 - spec.BN_MOMENTUM) * before[name]
        biased[name] = kept + (module.running_var - kept) * (counts[name] - 1) / counts[name]
    names = list(norms)
    layers = {}
    for name in (names[0], names[len(names) // 2], names[-1]):
        mean, variance = norms[name].running_mean, norms[name].running_var
        means = [float(mean.double().mean()), float(variance.double().mean())]
        layers[name] = [means[0], norm([mean]), means[1], norm([variance]), norm([biased[name]])]
    return {
        "running_mean_norm": norm(m.running_mean for m in norms.values()),
        "running_var_norm": norm(m.running_var for m in norms.values()),
        "running_var_norm_biased": norm(biased.values()),
        "layers": layers,
    }


def computed(network: str, batch: int, size: int, classes: int, dtype: torch.dtype) -> dict[str, Any]:
    """What the network answers to the batch of `spec`, and what one training step makes of it."""
    images, labels = spec.static_batch(batch, size, classes)
    x = torch.from_numpy(images).to(dtype)
    hard, smooth = (spec.smooth_one_hot(labels, classes, share) for share in (0.0, spec.SMOOTHING))
    others = spec.SMOOTHING / (classes - 1)
    trap = hard * (1 - spec.SMOOTHING - others) + others
    built = with_weights(network, classes, dtype).eval()
    with torch.no_grad():
        answer = built(x)
    norms = {name: m for name, m in built.named_modules() if isinstance(m, nn.BatchNorm2d)}
    assert all((m.eps, m.momentum) == (spec.BN_EPS, spec.BN_MOMENTUM) for m in norms.values())
    before, counts = {name: m.running_var.clone() for name, m in norms.items()}, {}
    for name, module in norms.items():
        module.register_forward_pre_hook(
            lambda _, inputs, name=name: counts.update({name: inputs[0].numel() // inputs[0].shape[1]})
        )
    logits = built.train()(x)
    loss = cross_entropy(logits, smooth)
    loss.backward()
    gradients = {name: p.grad for name, p in built.named_parameters()}
    return {
        "eval_logits": summary(answer),
        "eval_loss": cross_entropy(answer, hard).item(),
        "eval_loss_smooth": cross_entropy(answer, smooth).item(),
        "train_logits": summary(logits),
        "train_loss": cross_entropy(logits, hard).item(),
        "train_loss_smooth": loss.item(),
        "trap_train_loss_smooth_k_minus_1": cross_entropy(logits, trap).item(),
        "grad_norms": {n: norm([gradients[n]]) for n in probes(network)} | {"ALL": norm(gradients.values())},
        "bn_after_one_forward": statistics(norms, before, counts),
    }


def entry(network: str, batch: int, size: int, classes: int) -> dict[str, Any]:
    """An entry of the file: the case, checksums of what goes in, and the float64 results."""
    images, labels = spec.static_batch(batch, size, classes)
    first = (32, 3, 3, 3) if network == "xception" else (64, 3, 7, 7)
    return {
        "batch": batch,
        "size": size,
        "classes": classes,
        "labels": labels.tolist(),
        "input_crc32": spec.crc(images),
        "conv1_crc32": spec.crc(spec.param_value("conv1.weight", first, network)),
        "params_1000_classes": sum(p.numel() for p in build(network, 1000).parameters()),
        **rounded(computed(network, batch, size, classes, torch.float64)),
    }


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(v) for name, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.{DIGITS}g}")


def distance(wanted: Any, found: Any) -> float:
    """The largest difference of two numbers at one place, relative to the largest one of their list."""
    if isinstance(wanted, dict):
        assert wanted.keys() == found.keys()
        return max(distance(wanted[name], found[name]) for name in wanted)
    return float(np.abs(np.subtract(wanted, found)).max() / max(np.abs(wanted).max(), 1e-300))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the other files; write nothing")
    parser.add_argument("--only", nargs="+", metavar="NETWORK@SIDE", help="entries to make anew")
    args = parser.parse_args()
    cases = {f"{case[0]}@{case[2]}": case for case in (CHECKED if args.check else EXTRA)}
    names = ("golden", "networks") if args.check else ("extra",)
    files = [HERE / f"{name}.json" for name in names]
    known: dict[str, Any] = {}
    for file in files if args.check or args.only else ():
        known |= json.loads(file.read_text(encoding="utf-8"))["static"]
    for key in args.only or cases:
        made = entry(*cases[key])
        if args.check:
            print(f"{key}: differs from what is there by {distance(known[key], made):.1e}", flush=True)
            continue
        known[key] = made
        single = computed(*cases[key], torch.float32)
        told = (f"{name} {distance(made[name], single[name]):.1e}" for name in single)
        print(f"{key}, float32 against float64, relative: {', '.join(told)}", flush=True)
    if not args.check:
        versions = {module.__name__: module.__version__ for module in (torch, torchvision, np)}
        static = {key: known[key] for key in cases if key in known}
        text = json.dumps({"made_with": versions, "static": static}, separators=(",", ":"))
        files[0].write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
