"""What all ranks must know alike, told by rank 0, and files that all of them must be able to read."""

import json
import time
import zlib
from pathlib import Path
from typing import Any

from src.errors import CheckpointError
from src.platform.distributed import LEAVE_DELAY_S, World

CHUNK_BYTES = 1 << 24
UNREADABLE = -1.0


def told_by_main(world: World, value: Any) -> Any:
    """Rank 0's `value` (anything that JSON holds) on every rank. A collective."""
    text = json.dumps(value).encode() if world.is_main else b""
    length = int(world.sum([len(text)])[0])
    return json.loads(bytes(int(byte) for byte in world.sum([*text] if world.is_main else [0.0] * length)))


def require_everywhere(world: World, path: Path) -> None:
    """Raises CheckpointError on every rank unless all of them read the same bytes at `path`. A collective."""
    sums = [row[0] for row in world.gather([_checksum(path)])]
    lacking = [rank for rank, found in enumerate(sums) if found == UNREADABLE]
    other = [rank for rank, found in enumerate(sums) if found not in (UNREADABLE, sums[0])]
    if lacking or other:
        time.sleep(LEAVE_DELAY_S)  # or a rank that leaves now takes with it what another still waits for
        what = f"rank {lacking[0]} cannot read" if lacking else f"rank {other[0]} finds another file as"
        raise CheckpointError(
            f"{what} {path}, from which rank 0 continues; use a --workspace on a disk that all nodes share, "
            "or copy the file to the same place on each node"
        )


def _checksum(path: Path) -> float:
    try:
        with path.open("rb") as file:
            found = 0
            while chunk := file.read(CHUNK_BYTES):
                found = zlib.crc32(chunk, found)
            return float(found)
    except OSError:
        return UNREADABLE
