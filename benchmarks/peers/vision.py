"""torchvision, also beside a CPU build of torch, where its detection operators are missing: none is used."""

from __future__ import annotations

import torch

try:
    import torchvision
except RuntimeError:
    for _name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{_name}", "(Tensor a, Tensor b, float c) -> Tensor")
    import torchvision

__all__ = ["torchvision"]
