"""How many shards, and how large MindRecord's header and pages are.

A MindRecord file is a header and whole pages: 48 MB with MindSpore's defaults, even for four rows.  Files
that are read together must agree on both sizes, so they are chosen once, from the amount of data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Sequence

import numpy as np
from failure import WRONG_OPTIONS, ConvertError

KIB, MIB = 1 << 10, 1 << 20
SMALLEST_PAGE, LARGEST_USEFUL_PAGE, LARGEST_PAGE = 32 * KIB, 32 * MIB, 256 * MIB
SMALLEST_HEADER, LARGEST_HEADER = 64 * KIB, 128 * MIB
ROW_OVERHEAD = 1 * KIB  # lengths that MindRecord stores with each row
PAGES_PER_SHARD = 32  # keeps the empty rest of the last pages near 6 % of a shard
HEADER_BYTES_PER_PAGE = 256  # about 200 measured: a JSON object per page
INDEX_BYTES, INDEX_BYTES_PER_ROW = 32 * KIB, 96  # measured; file names count with the rows
# Index rows wait in memory, about half a kB each, until the page that they share is full.
MOST_ROWS_AT_ONCE, PAGE_OF_MANY_ROWS = 1 << 15, 512 * KIB
AUTO_SHARD_BYTES, AUTO_MOST_SHARDS, MOST_SHARDS = 64 * MIB, 64, 1000
EQUAL_SHARES = 8  # many shards are a multiple of it: 2, 4 or 8 workers then have equally much to do


@dataclass(frozen=True)
class Layout:
    """Sizes in bytes."""

    num_shards: int
    page_size: int
    header_size: int

    def with_room_for(self, row_bytes: int) -> Layout:
        """The same, with pages that hold a row of `row_bytes`."""
        return replace(self, page_size=max(self.page_size, power_of_two(row_bytes + ROW_OVERHEAD)))


def power_of_two(size: float) -> int:
    """The smallest power of two that is not below `size`."""
    return 1 << max(0, int(-(-size // 1)) - 1).bit_length()


def choose_layout(
    sizes: Optional[tuple[int, int]], partitions: Optional[int], num_tasks: int, what: str = "tasks"
) -> Layout:
    """`sizes`: (all bytes, largest row) where the plug-in knows them; `partitions`: None chooses."""
    if partitions is None:
        by_size = -(-sizes[0] // AUTO_SHARD_BYTES) if sizes else 1
        if by_size > EQUAL_SHARES:
            by_size = -(-by_size // EQUAL_SHARES) * EQUAL_SHARES
        by_rows = -(-num_tasks // MOST_ROWS_AT_ONCE)
        partitions = max(1, min(max(min(by_size, AUTO_MOST_SHARDS), by_rows), num_tasks, MOST_SHARDS))
    if partitions > num_tasks:
        raise ConvertError(
            f"{partitions} partitions: there are only {num_tasks} {what} to deal to the shards; "
            f"use {num_tasks} or fewer",
            WRONG_OPTIONS,
        )
    if sizes is None:  # 4,096 pages of 4 MiB: up to 16 GiB a shard, and 9 MiB for the smallest
        return Layout(partitions, 4 * MIB, 1 * MIB)
    total, largest = sizes
    shard = total / partitions
    page = min(max(power_of_two(shard / PAGES_PER_SHARD), SMALLEST_PAGE), LARGEST_USEFUL_PAGE)
    if num_tasks / partitions > MOST_ROWS_AT_ONCE:
        page = min(page, PAGE_OF_MANY_ROWS)
    page = min(max(page, power_of_two(largest + ROW_OVERHEAD)), LARGEST_PAGE)
    # Twice for pages that large rows leave half empty, twice for shards above the average.
    header = power_of_two(HEADER_BYTES_PER_PAGE * (4 * shard / page + 64))
    return Layout(partitions, page, min(max(header, SMALLEST_HEADER), LARGEST_HEADER))


def deal_tasks(num_tasks: int, num_shards: int, task_sizes: Optional[Sequence[int]] = None) -> list[range]:
    """Contiguous runs of tasks, about equal in bytes where the sizes are known, and at least one task each.

    The rows of the whole set have the order of the tasks, for any number of shards.
    """
    if task_sizes is None:
        starts = [shard * num_tasks // num_shards for shard in range(num_shards + 1)]
    else:
        ends = np.concatenate([[0], np.cumsum(np.asarray(task_sizes, np.int64) + ROW_OVERHEAD)])
        starts = [0]
        for shard in range(1, num_shards):
            target = float(ends[-1]) * shard / num_shards
            after = int(np.searchsorted(ends, target))
            nearest = after - 1 if target - ends[after - 1] <= ends[after] - target else after
            starts.append(min(max(nearest, starts[-1] + 1), num_tasks - num_shards + shard))
        starts.append(num_tasks)
    return [range(first, end) for first, end in zip(starts, starts[1:])]


def shards_of_node(rank: int, num_nodes: int, num_shards: int) -> range:
    """The share of one machine.  Raises ConvertError if there is none."""
    if num_nodes > num_shards:
        raise ConvertError(
            f"--nodes {num_nodes}: there are only {num_shards} shards to share; give --mindrecord_partitions "
            f"{num_nodes} or more, or use fewer machines",
            WRONG_OPTIONS,
        )
    return range(rank * num_shards // num_nodes, (rank + 1) * num_shards // num_nodes)


def estimated_bytes(layout: Layout, num_shards: int, total: int, num_rows: int) -> int:
    """What shards will take on the disk: rows, pages left half empty, headers, indices."""
    of_shards = num_shards * (layout.header_size + 2 * layout.page_size + INDEX_BYTES)
    return int(total * (1 + 1 / PAGES_PER_SHARD)) + of_shards + num_rows * INDEX_BYTES_PER_ROW


def shard_names(base: str, num_shards: int) -> list[str]:
    """MindSpore's own names: `base` alone, or `base0` ... padded with zeros."""
    if num_shards == 1:
        return [base]
    width = len(str(num_shards - 1))
    return [f"{base}{index:0{width}d}" for index in range(num_shards)]
