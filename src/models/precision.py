"""Computing in a 16-bit type, with parameters that stay float32."""

from __future__ import annotations

import mindspore as ms
from mindspore import nn

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
MATRIX_PRODUCTS = (nn.Conv2d, nn.Dense)


def compute_in(network: nn.Cell, dtype: str, amp: bool) -> nn.Cell:
    """Let the network compute in `dtype`; returns it. Its parameters, and so its checkpoints, stay float32.

    Batch norm always computes in float32: sums over a batch overflow float16 (Micikevicius et al., 2018).
    With `amp` all else but convolutions and dense layers does too. The logits come in the type of the last
    layer: cast them to float32 before a softmax.
    """
    if dtype == "float32":
        return network
    short = getattr(ms, dtype)
    if not amp:
        network.to_float(short)
    for _, cell in network.cells_and_names():
        if isinstance(cell, BATCH_NORMS):
            cell.to_float(ms.float32)
        elif isinstance(cell, MATRIX_PRODUCTS):
            cell.to_float(short)
    return network
