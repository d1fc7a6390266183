"""Changing parameters between steps."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops


def assign(parameter: ms.Parameter, value: np.ndarray) -> None:
    """Give a parameter that a compiled step uses another value.

    Not by `set_data`: after a step that holds an `if` has run, the host would see the value set for ever and
    none that a later step writes (MindSpore 2.10, CPU); the assign operator is right in all cases.
    """
    ops.assign(parameter, ms.Tensor(np.array(value, ms.dtype_to_nptype(parameter.dtype))))
