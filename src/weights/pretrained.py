"""Weights of another run, or of PyTorch, to begin a new run with (--pretrained)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Mapping

import numpy as np

from src.errors import CheckpointError
from src.weights import checkpoint, record
from src.weights.checkpoint import Checkpoint
from src.weights.resume import Plan

if TYPE_CHECKING:
    from mindspore import nn

    from src.config import Config

HEAD = ("fc.weight", "fc.bias")  # of every network here, and of PyTorch's
# PyTorch's names of what a batch norm holds; `num_batches_tracked`, a count, has no place here.
TORCH_NORM = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}
TORCH_COUNT = "num_batches_tracked"


def prepare(config: Config, plan: Plan) -> Plan:
    """Look at --pretrained before anything is started; the plan, which says so where it is not read again.

    Raises CheckpointError for a file that is missing, damaged, of another kind of network, or without the
    averages that --use-ema asks for.
    """
    path = config.model.pretrained
    if path is None or plan.action == "finished":
        return plan
    if plan.action == "continue":
        sentence = f"{plan.sentence}; --pretrained {path} was its beginning and is not read again"
        return dataclasses.replace(plan, sentence=sentence)
    if not path.is_file():
        raise CheckpointError(f"--pretrained {path}: no such checkpoint")
    meta, names = record.read_head(path)
    checkpoint.check_model(Checkpoint(path, {}, meta), config)
    if config.output.use_ema and names:
        checkpoint.require_averages(path, names)
    return plan


def load(network: nn.Cell, config: Config) -> str:
    """Put the weights of --pretrained into the network, by name and shape; what was done, in one line.

    With --use-ema their moving averages. A head for another number of classes, or none, leaves the network's
    own as it is. Raises CheckpointError for anything else that is missing, does not fit, or has no place.
    """
    assert config.model.pretrained is not None
    found = checkpoint.read(config.model.pretrained)
    checkpoint.check_model(found, config)
    origin = checkpoint.origin(found, config.output.use_ema)
    if config.output.use_ema:
        found = checkpoint.averages(found)
    theirs = with_mindspore_names({name: found.tensors[name] for name in found.network_names})
    shapes = {p.name: tuple(p.shape) for p in network.get_parameters()}
    told = "all of it"
    if any(name not in theirs or theirs[name].shape != shapes[name] for name in HEAD):
        left_out = [f"{name} {theirs[name].shape}" for name in HEAD if name in theirs]
        told = f"all but {' and '.join(left_out)}" if left_out else "which has no head"
        told += f"; the head for {shapes['fc.bias'][0]} classes is drawn anew"
        theirs.update({p.name: p.asnumpy() for p in network.get_parameters() if p.name in HEAD})
    checkpoint.load_network(network, Checkpoint(found.path, theirs))
    return f"{origin}, {told}"


def with_mindspore_names(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same tensors, those of batch norms under MindSpore's names if they have PyTorch's.

    A batch norm is what holds a `running_mean`. The networks here name the rest as torchvision and timm do.
    """
    renamed = {}
    for name, value in tensors.items():
        layer, _, kind = name.rpartition(".")
        if kind == TORCH_COUNT:
            continue
        of_torch_norm = f"{layer}.running_mean" in tensors
        renamed[f"{layer}.{TORCH_NORM[kind]}" if of_torch_norm else name] = value
    return renamed
