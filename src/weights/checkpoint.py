"""Checkpoints: safetensors files that are whole or not there, and say what they hold.

Tensors are canonical float32 in NCHW under their parameter names, so that other tools read them too;
everything else (epoch, best, options, classes, a checksum) is JSON in the file's metadata.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping

import numpy as np

from src.errors import CheckpointError
from src.weights.record import parse_record

if TYPE_CHECKING:
    import mindspore as ms
    from mindspore import nn

    from src.config import Config

FORMAT = "resnet-mindspore-checkpoint"
FORMAT_VERSION = 1
EMA_PREFIX = "ema."  # before a weight's name: the moving average of it
# What MindSpore's optimizers and step cells add beside the network, in checkpoints of unknown origin.
STATE_PREFIXES = (
    EMA_PREFIX, "accumulated.", "moments.", "moment1.", "moment2.", "accum.", "stat.", "velocity.",
    "learning_rate",
)  # fmt: skip
STATE_NAMES = ("global_step", "momentum", "sums", "scale_sense", "epoch_num", "step_num", "loss_scale")
MAX_NAMED = 3  # tensors that an error lists by name


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by parameter name, and what was recorded with them (empty for files of other origin)."""

    path: Path
    tensors: dict[str, np.ndarray]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def network_names(self) -> list[str]:
        """Names of the network's own tensors."""
        if "network" in self.meta:
            return list(self.meta["network"])
        return [n for n in self.tensors if n not in STATE_NAMES and not n.startswith(STATE_PREFIXES)]


def digest(tensors: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over names, types, shapes and bytes, in the order of the names."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name]
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def tensors_of(parameters: Iterable[ms.Parameter]) -> dict[str, np.ndarray]:
    """Parameters as arrays on the host, by name."""
    return {p.name: np.array(p.asnumpy(), order="C") for p in parameters}


def nonfinite(tensors: Mapping[str, np.ndarray]) -> list[str]:
    """The names of those that hold an infinity or a NaN."""
    return [name for name, value in tensors.items() if not np.isfinite(value).all()]


def save(path: Path, tensors: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """Write beside `path`, flush, read back, then rename: the old file lasts until the new one is whole.

    Raises CheckpointError when the disk does not take or hold what was written.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    path = Path(path)
    checksum = digest(tensors)
    record = {"format": FORMAT, "format_version": FORMAT_VERSION, "sha256": checksum, **meta}
    with _replacing(path) as beside:
        try:
            save_file(dict(tensors), str(beside), metadata={"record": json.dumps(record, allow_nan=False)})
        except SafetensorError as error:  # its own, also where the disk is full
            raise CheckpointError(f"{path} could not be written: {error}") from error
        beside.chmod(0o666 & ~_umask())  # the library writes files that only their owner can read
        _flush(beside)
        if digest(_read_safetensors(beside)[0]) != checksum:
            raise CheckpointError(f"{beside} reads back otherwise than it was written; is the disk sound?")


def also_as(path: Path, other: Path) -> None:
    """Give the file at `path` a second name, replacing what had it; a copy where there are no hard links.

    Raises CheckpointError.
    """
    with _replacing(other) as beside:
        try:
            os.link(path, beside)
        except OSError:  # FAT, some network and object storages
            shutil.copyfile(path, beside)
            _flush(beside)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A name to write to, beside `path`, whose place the file then takes. Raises CheckpointError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield beside
        os.replace(beside, path)
        _flush(path.parent)
    except OSError as error:
        raise CheckpointError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> Checkpoint:
    """Read `.safetensors` (ours are verified against their checksum) or MindSpore's `.ckpt`.

    Raises CheckpointError for a file that is missing, damaged, or of another kind.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {path}")
    if path.suffix == ".ckpt":
        return Checkpoint(path, _read_ckpt(path))
    try:
        tensors, metadata = _read_safetensors(path)
        meta = parse_record(metadata)
    except Exception as error:  # the library's own error types are many
        raise CheckpointError(f"{path} ({path.stat().st_size} bytes) is damaged: {error}") from None
    if meta and meta.get("format_version", 0) > FORMAT_VERSION:
        raise CheckpointError(f"{path} was written by a newer version of this suite")
    if "sha256" in meta and digest(tensors) != meta["sha256"]:
        raise CheckpointError(f"{path} is damaged: its content does not match its checksum")
    return Checkpoint(path, tensors, meta)


def _read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


def _read_ckpt(path: Path) -> dict[str, np.ndarray]:
    import mindspore as ms

    try:
        loaded = ms.load_checkpoint(str(path))
    except (ValueError, RuntimeError, TypeError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise CheckpointError(f"{path} ({path.stat().st_size} bytes) is damaged: {first_line}") from None
    return {name: value.asnumpy() for name, value in loaded.items() if hasattr(value, "asnumpy")}


def load_network(network: nn.Cell, checkpoint: Checkpoint, averaged: bool = False) -> None:
    """Put the checkpoint's weights into the network: all of them, or CheckpointError with the names.

    `averaged`: their moving average instead (--use-ema).
    """
    if averaged:
        checkpoint = averages(checkpoint)
    wanted = {p.name: p for p in network.get_parameters()}
    extra = [name for name in checkpoint.network_names if name not in wanted]
    _refuse(checkpoint.path, "holds weights that this network does not have", extra)
    _assign(wanted, checkpoint)


def averages(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with the averages in the places of the weights that they average, and nothing else."""
    require_averages(checkpoint.path, checkpoint.tensors)
    held = [name for name in checkpoint.network_names if EMA_PREFIX + name in checkpoint.tensors]
    tensors = {name: checkpoint.tensors[EMA_PREFIX + name] for name in held}
    return dataclasses.replace(checkpoint, tensors=tensors)


def require_averages(path: Path, names: Iterable[str]) -> None:
    """Raises CheckpointError if none of a checkpoint's tensors is a moving average, where --use-ema asks."""
    if not any(name.startswith(EMA_PREFIX) for name in names):
        raise CheckpointError(f"{path} holds no averaged weights (--ema); leave out --use-ema")


def origin(checkpoint: Checkpoint, averaged: bool) -> str:
    """Which weights of which file are used, for the person: those not taken should not be unknown either."""
    if averaged:
        return f"{checkpoint.path}, averaged weights (--use-ema)"
    if any(name.startswith(EMA_PREFIX) for name in checkpoint.tensors):
        return f"{checkpoint.path}, raw weights (--use-ema takes the averaged ones)"
    return str(checkpoint.path)


def load_training_state(parameters: Iterable[ms.Parameter], checkpoint: Checkpoint) -> None:
    """Put everything a training step holds (weights, optimizer, counters) back, strictly."""
    wanted = {p.name: p for p in parameters}
    extra = [name for name in checkpoint.tensors if name not in wanted]
    _refuse(checkpoint.path, "holds state that this run does not have", extra)
    _assign(wanted, checkpoint)


def _assign(wanted: Mapping[str, Any], checkpoint: Checkpoint) -> None:
    import mindspore as ms

    have = checkpoint.tensors
    _refuse(checkpoint.path, "lacks", [name for name in wanted if name not in have])
    misfits = [
        f"{name} {have[name].shape} where {tuple(p.shape)} is needed"
        for name, p in wanted.items()
        if tuple(have[name].shape) != tuple(p.shape)
    ]
    _refuse(checkpoint.path, "holds", misfits)
    for name, parameter in wanted.items():
        value = have[name].astype(ms.dtype_to_nptype(parameter.dtype), copy=False)
        parameter.set_data(ms.Tensor(value))


def _refuse(path: Path, what: str, names: Iterable[str]) -> None:
    names = list(names)
    if names:
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        raise CheckpointError(
            f"{path} {what}: {', '.join(names[:MAX_NAMED])}{more}; "
            "are --arch, --num-layers and --num-classes those it was trained with?"
        )


def check_model(checkpoint: Checkpoint, config: Config) -> None:
    """Raises CheckpointError if the checkpoint says that it belongs to another kind of network.

    v1 and v1.5 have the same tensors, so names and shapes alone would not tell.
    """
    then = checkpoint.meta.get("config", {})
    for name in ("arch", "num-layers", "num-groups", "width-per-group", "batchnorm-eps"):
        now = config.flat()[name]
        if name in then and then[name] != now:
            raise CheckpointError(f"{checkpoint.path} was trained with --{name} {then[name]}, not {now}")
