"""Writes one MindRecord file and its index, byte for byte what MindSpore's own serial FileWriter would write.

MindSpore itself is not needed, so a conversion starts at once and passes photographs on faster.

The file (format version 3.0): a header, then pages of one size.  The header is JSON behind its length, padded
with zeros.  Blob pages hold the bytes fields of consecutive rows, each row behind its length; the rows of one
blob page are a *row group*.  Raw pages hold the other fields of several row groups, a MessagePack map a row.
The SQLite table INDEXES says of each row in which pages and between which offsets it is, and its index
fields.
Lengths are 64-bit little-endian; but where a row has several blobs, each has a big-endian length of its own.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from pathlib import Path
from typing import Any, Optional

from messagepack import packed_map

FORMAT_VERSION = "3.0"
PENDING_BYTES, PENDING_BUFFERS = 1 << 19, 512  # a system call for each tiny row would cost more than the row
NO_BLOB, NO_RAW = bytes(4), {"id": 0}  # what MindSpore stores for rows without either
LENGTH, BIG_ENDIAN_LENGTH = struct.Struct("<Q"), struct.Struct(">Q")
SQL_TYPES = {"string": "TEXT", "int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL"}
PLACE = (
    "ROW_ID", "PAGE_ID_RAW", "PAGE_OFFSET_RAW", "PAGE_OFFSET_RAW_END",
    "ROW_GROUP_ID", "PAGE_ID_BLOB", "PAGE_OFFSET_BLOB", "PAGE_OFFSET_BLOB_END",
)  # fmt: skip


class HeaderTooSmall(Exception):
    """The list of pages does not fit into the header."""


class RawPage:
    """The rows of several row groups without their blobs, kept in memory until the page is full."""

    def __init__(self, type_id: int) -> None:
        self.type_id = type_id
        self.data = bytearray()
        self.groups: list[dict[str, int]] = []
        self.index: list[list[Any]] = []  # of its rows, still without the number of this page


class MindRecordFile:
    """One shard in the making.  Rows must fit the schema (see rows.py) and the page size.

    Raises OSError and sqlite3.Error where the disk does not take the files, HeaderTooSmall from `close`.
    """

    def __init__(
        self,
        path: Path,
        schema: dict[str, dict],
        index_fields: list[str],
        *,
        page_size: int,
        header_size: int,
        description: str,
    ) -> None:
        self.path, self.schema, self.description = path, schema, description
        self.page_size, self.header_size = page_size, header_size
        self.blob_fields = sorted(n for n, of in schema.items() if of["type"] == "bytes" or "shape" in of)
        self.raw_fields = sorted(name for name in schema if name not in self.blob_fields)
        self.index_fields = index_fields or self.raw_fields
        self.num_rows = self.num_pages = 0
        self.pages: dict[int, dict[str, Any]] = {}
        self.pending: list[bytes] = []
        self.pending_bytes = self.pending_at = 0
        self.raw: Optional[RawPage] = None
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self.database = index_database(Path(f"{path}.db"), schema, self.index_fields, path.name)
        marks = ",".join("?" * (len(PLACE) + 2 * len(self.index_fields)))
        self.insert = f"INSERT INTO INDEXES VALUES({marks})"
        self.num_groups = 0
        self.begin_group()

    def begin_group(self) -> None:
        """The next row opens a blob page."""
        self.blob_size = 0
        self.group_raw = bytearray()
        self.group_index: list[list[Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        """Append a row."""
        blobs = self.blobs_of(row)
        blob_size = LENGTH.size + sum(map(len, blobs))
        packed = packed_map([(n, row[n]) for n in self.raw_fields] or list(NO_RAW.items()))
        raw_size = LENGTH.size + len(packed)
        if self.blob_size and (
            self.blob_size + blob_size > self.page_size or len(self.group_raw) + raw_size > self.page_size
        ):
            self.end_group()
        if not self.blob_size:
            self.page_id, self.num_pages = self.num_pages, self.num_pages + 1
            self.pending_at = self.offset_of(self.page_id)
        raw_at, blob_at = len(self.group_raw), self.blob_size
        self.group_raw += LENGTH.pack(len(packed)) + packed
        self.blob_size += blob_size
        place = [self.num_rows, None, raw_at, raw_at + raw_size, self.num_groups, self.page_id]
        place += [blob_at, self.blob_size]
        for name in self.index_fields:
            place += [0, row[name]]
        self.group_index.append(place)
        self.num_rows += 1
        self.put([LENGTH.pack(blob_size - LENGTH.size), *blobs], blob_size)

    def blobs_of(self, row: dict[str, Any]) -> list[bytes]:
        """A row's blob in parts; a lone blob needs no length of its own."""
        values = [row[name] for name in self.blob_fields]
        datas = [value if isinstance(value, bytes) else value.tobytes() for value in values]
        if len(datas) == 1:
            return datas
        return [part for data in datas for part in (BIG_ENDIAN_LENGTH.pack(len(data)), data)] or [NO_BLOB]

    def put(self, parts: list[bytes], num_bytes: int) -> None:
        self.pending += parts
        self.pending_bytes += num_bytes
        if self.pending_bytes >= PENDING_BYTES or len(self.pending) >= PENDING_BUFFERS:
            self.flush()

    def flush(self) -> None:
        write_all(self.file, self.pending, self.pending_at, self.pending_bytes)
        self.pending_at += self.pending_bytes
        self.pending, self.pending_bytes = [], 0

    def offset_of(self, page_id: int) -> int:
        return self.header_size + page_id * self.page_size

    def end_group(self) -> None:
        """Close the blob page, and move its rows' other fields to the raw page, which may be full by then."""
        self.flush()
        first = self.group_index[0][0]
        self.describe(
            self.page_id,
            "BLOB_DATA",
            self.num_groups,
            self.blob_size,
            [{"id": 0, "offset": 0}],
            first,
            self.num_rows,
        )
        if self.raw and len(self.raw.data) + len(self.group_raw) > self.page_size:
            self.end_raw_page()
        self.raw = self.raw or RawPage(self.next_raw_type_id())
        base = len(self.raw.data)
        self.raw.groups.append({"id": self.num_groups, "offset": base})
        for place in self.group_index:
            place[2] += base
            place[3] += base
        self.raw.data += self.group_raw
        self.raw.index += self.group_index
        self.num_groups += 1
        self.begin_group()

    def next_raw_type_id(self) -> int:
        """MindSpore counts from the page number of the raw page before."""
        return max((n + 1 for n, page in self.pages.items() if page["page_type"] == "RAW_DATA"), default=0)

    def end_raw_page(self) -> None:
        assert self.raw is not None
        page_id, self.num_pages = self.num_pages, self.num_pages + 1
        size = len(self.raw.data)
        write_all(self.file, [bytes(self.raw.data)], self.offset_of(page_id), size)
        self.describe(page_id, "RAW_DATA", self.raw.type_id, size, self.raw.groups, 0, 0)
        for place in self.raw.index:
            place[1] = page_id
        self.database.executemany(self.insert, self.raw.index)
        self.raw = None

    def describe(
        self,
        page_id: int,
        kind: str,
        type_id: int,
        size: int,
        groups: list[dict[str, int]],
        first: int,
        end: int,
    ) -> None:
        """Note a page for the header."""
        self.pages[page_id] = {
            "end_row_id": end,
            "page_id": page_id,
            "page_size": size,
            "page_type": kind,
            "page_type_id": type_id,
            "row_group_ids": groups,
            "shard_id": 0,
            "start_row_id": first,
        }

    def header(self) -> bytes:
        schema = {name: dict(sorted(of.items())) for name, of in sorted(self.schema.items())}
        described = {"blob_fields": self.blob_fields, "desc": self.description, "schema": schema}
        header = {
            "header_size": self.header_size,
            "index_fields": [{"index_field": name, "schema_id": 0} for name in self.index_fields] or None,
            "page": [self.pages[page_id] for page_id in sorted(self.pages)],
            "page_size": self.page_size,
            "compression_size": 0,
            "schema": [described],
            "shard_addresses": [self.path.name],
            "shard_id": 0,
            "statistics": None,
            "version": FORMAT_VERSION,
        }
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        if LENGTH.size + len(text) > self.header_size:
            raise HeaderTooSmall(f"{len(text):,} bytes do not fit into a header of {self.header_size:,}")
        return LENGTH.pack(len(text)) + text

    def close(self) -> None:
        """Write what is left, the header, and the index.  There must be a row."""
        self.end_group()
        self.end_raw_page()
        header = self.header()
        write_all(self.file, [header], 0, len(header))
        os.close(self.file)
        self.database.commit()
        self.database.close()


def write_all(file: int, buffers: list[bytes], at: int, num_bytes: int) -> None:
    """Raises OSError; a full disk may take a part before it says so."""
    if not buffers:
        return
    done = os.pwritev(file, buffers, at)
    if done < num_bytes:
        rest = memoryview(b"".join(buffers))
        while done < num_bytes:
            done += os.pwrite(file, rest[done:], at + done)


def index_database(path: Path, schema: dict[str, dict], fields: list[str], name: str) -> sqlite3.Connection:
    """The tables as MindSpore makes them, in one transaction; a new file needs no journal."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=OFF")
    database.execute("PRAGMA synchronous=OFF")
    database.execute("BEGIN")
    columns = [f"{column} INT NOT NULL" for column in PLACE]
    columns += [
        f"INC_{i} INT, {field}_0 {SQL_TYPES[schema[field]['type']]}" for i, field in enumerate(fields)
    ]
    key = ",".join(["ROW_ID", *(f"INC_{i}" for i in range(len(fields)))])
    database.execute(f"CREATE TABLE INDEXES({', '.join(columns)}, PRIMARY KEY({key}))")
    database.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
    database.execute("INSERT INTO SHARD_NAME VALUES(?)", (name,))
    return database
