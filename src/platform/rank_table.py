"""Ascend's rank table: the JSON file that lists all devices of a job, with their ranks (version 1.0)."""

import json
from pathlib import Path
from typing import Any, Dict, NamedTuple

from src.errors import OptionError


class Entry(NamedTuple):
    """A device of the table."""

    device_id: int
    local_rank: int
    local_size: int


def read(path: str) -> Dict[int, Entry]:
    """Rank -> device. Raises OptionError if the table is absent, unfinished, or not complete."""
    try:
        table = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise OptionError(f"RANK_TABLE_FILE {path} cannot be read: {what}") from None
    status = table.get("status") if isinstance(table, dict) else None
    if status != "completed":
        raise OptionError(f"RANK_TABLE_FILE {path} has the status {status!r}; it must be 'completed'")
    if "server_list" not in table:
        hint = "; it is the platform's own form, from which it makes another" if "group_list" in table else ""
        raise OptionError(f"RANK_TABLE_FILE {path} has no server_list{hint}")
    try:
        found = _entries(table)
    except (KeyError, TypeError, ValueError) as error:
        raise OptionError(
            f"RANK_TABLE_FILE {path}: every server needs a list `device`, and every device a number "
            f"`device_id` and `rank_id` ({type(error).__name__}: {error})"
        ) from None
    if sorted(found) != list(range(len(found))) or not found:
        raise OptionError(f"RANK_TABLE_FILE {path}: the ranks are {sorted(found)}, not 0, 1, 2, ...")
    return found


def _entries(table: Dict[str, Any]) -> Dict[int, Entry]:
    found: Dict[int, Entry] = {}
    for server in table["server_list"]:
        devices = sorted(server["device"], key=lambda device: int(device["rank_id"]))
        for local_rank, device in enumerate(devices):
            rank = int(device["rank_id"])
            if rank in found:
                raise ValueError(f"rank {rank} occurs twice")
            found[rank] = Entry(int(device["device_id"]), local_rank, len(devices))
    return found
