"""Rows of a finished set, through MindSpore's own reader, in the order in which they are stored."""

from __future__ import annotations

import importlib.util
import re
import sqlite3
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

from failure import DATA_UNUSABLE, ConvertError
from manifest import FILE_NAME
from record_files import read_header

READER_THREADS = 2


def need_mindspore() -> None:
    """Raises ConvertError before the work, rather than at the first row."""
    if importlib.util.find_spec("mindspore") is None:
        raise ConvertError(
            "rows are read back by MindSpore's own reader, and this Python has no MindSpore: use one with "
            "it, or pip install mindspore"
        )


def sets_below(given: str) -> list[Path]:
    """The folder itself if it is a set, or the sets in it (train, val, ...).  Raises ConvertError."""
    folder = Path(given)
    if (folder / FILE_NAME).is_file():
        return [folder]
    below = sorted(path.parent for path in folder.glob(f"*/{FILE_NAME}") if path.parent.name[0] != ".")
    if below:
        return below
    what = f"holds no {FILE_NAME}, nor does a folder in it" if folder.is_dir() else "is no folder"
    raise ConvertError(f"{given} {what}: name a set of records, or the folder of several", DATA_UNUSABLE)


def shard_paths(folder: Path, manifest: dict[str, Any]) -> list[str]:
    return [str(folder / shard["file"]) for shard in manifest["shards"]]


def base_name(manifest: dict[str, Any]) -> str:
    """`train.mindrecord` of train.mindrecord00 to 63."""
    name = manifest["shards"][0]["file"]
    partitions = manifest["options"].get("mindrecord_partitions", len(manifest["shards"]))
    return name if partitions == 1 else re.sub(rf"\d{{{len(str(partitions - 1))}}}$", "", name)


def schema_of(path: str) -> tuple[str, dict[str, dict], list[str]]:
    """(description, schema, index fields) as they stand in the header of a file."""
    header = read_header(Path(path))
    schema = header["schema"][0]
    return schema["desc"], schema["schema"], [item["index_field"] for item in header["index_fields"] or []]


def row_sizes(path: str) -> list[int]:
    """Bytes of each row of one file, by its index."""
    database = sqlite3.connect(f"{Path(path + '.db').absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return [
            raw + blob
            for raw, blob in database.execute(
                "SELECT PAGE_OFFSET_RAW_END - PAGE_OFFSET_RAW, PAGE_OFFSET_BLOB_END - PAGE_OFFSET_BLOB "
                "FROM INDEXES ORDER BY ROW_ID"
            )
        ]
    finally:
        database.close()


def read_rows(
    files: list[str],
    schema: dict[str, dict],
    span: Optional[range] = None,
    rows: Optional[Sequence[int]] = None,
    columns: Optional[list[str]] = None,
) -> Iterator[dict[str, Any]]:
    """All rows, or those of a span, or those of a list in its order; as a plug-in would yield them."""
    import mindspore.dataset as ds

    order: dict[str, Any] = {"shuffle": False}
    if span is not None:
        order = {"sampler": ds.SequentialSampler(span.start, len(span))}
    elif rows is not None:
        order = {"sampler": ds.SubsetSampler(list(rows))}
    dataset = ds.MindDataset(files, columns_list=columns, num_parallel_workers=READER_THREADS, **order)
    for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
        yield {name: plain(value, schema[name]) for name, value in row.items()}


def plain(value: Any, description: dict) -> Any:
    """What was written, of what MindSpore gives."""
    if "shape" in description:
        return value
    if description["type"] == "bytes":
        return value.tobytes()  # item() would drop trailing zeros
    return value.item()


def read_labels(files: list[str], schema: dict[str, dict]) -> list[int]:
    if "label" not in schema:
        raise ConvertError(f"{files[0]} has no field 'label'", DATA_UNUSABLE)
    return [row["label"] for row in read_rows(files, schema, columns=["label"])]
