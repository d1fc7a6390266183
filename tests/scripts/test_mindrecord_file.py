"""Our MindRecord files beside MindSpore's own: the same bytes, the same index."""

from __future__ import annotations

import os
import sqlite3
import sys

import numpy as np
import pytest
from converting import WRITER

IMAGES = {"image": {"type": "bytes"}, "label": {"type": "int32"}, "file_name": {"type": "string"}}
WHOLE = (
    0,
    1,
    127,
    128,
    255,
    256,
    65535,
    65536,
    2**31 - 1,
    -1,
    -32,
    -33,
    -128,
    -129,
    -32768,
    -32769,
    -(2**31),
)
FLOATS = (0.0, -0.0, 1.5, 1 / 3, -3.0, 1e300, 1e-300, 1e39, 16777217.0)


@pytest.fixture(scope="module")
def mindrecord_file():
    """The converter's modules import each other by plain names, as they may be copied out of the suite."""
    sys.path.insert(0, str(WRITER.parent))
    try:
        import mindrecord_file

        yield mindrecord_file
    finally:
        sys.path.remove(str(WRITER.parent))


def image_rows(sizes):
    draws = np.random.RandomState(0)
    return [
        {"image": draws.bytes(size), "label": i % 3, "file_name": f"n0{i % 3}/é {i}.JPEG"}
        for i, size in enumerate(sizes)
    ]


def blob_rows():
    return [
        {"b": b"b" * (7 + i), "a": bytes([i]) * 90, "array": np.full((3, 2), i, np.float32), "label": i}
        for i in range(5)
    ]


# name -> schema, index fields, rows
CASES = {
    "photographs of several pages": (IMAGES, ["label"], image_rows(9000 + 137 * i for i in range(12))),
    "pages that a row fills": (IMAGES, ["label"], image_rows([32760, 32759, 1, 32760])),
    "no index fields given": (IMAGES, [], image_rows([90] * 12)),
    "whole numbers of all lengths": (
        {"z": {"type": "int64"}, "label": {"type": "int32"}},
        [],
        [{"label": value, "z": value * 2**31} for value in WHOLE],
    ),
    "floats, stored short where exact": (
        {"x": {"type": "float32"}, "image": {"type": "bytes"}, "y": {"type": "float64"}},
        [],
        [{"image": b"i", "x": float(np.float32(min(value, 1e30))), "y": value} for value in FLOATS],
    ),
    "strings of all lengths": (
        {"image": {"type": "bytes"}, "name": {"type": "string"}},
        ["name"],
        [{"image": b"i", "name": "q'\"\\é"[:n % 5 + 1] * n} for n in (1, 6, 31, 32, 60, 255, 256, 3000)],
    ),
    "nothing but a blob": ({"image": {"type": "bytes"}}, [], [{"image": b"i" * n} for n in range(1, 5)]),
    "several blobs and an array": (
        {
            "b": {"type": "bytes"},
            "a": {"type": "bytes"},
            "array": {"type": "float32", "shape": [-1, 2]},
            "label": {"type": "int32"},
        },
        ["label"],
        blob_rows(),
    ),
    "twenty fields": (
        {f"f{i}": {"type": "int32"} for i in range(20)},
        ["f3", "f1"],
        [{f"f{i}": i * n for i in range(20)} for n in range(3)],
    ),
}  # fmt: skip


def write_by_mindspore(path, schema, index_fields, rows, page_size):
    from mindspore.mindrecord import FileWriter

    writer = FileWriter(str(path), shard_num=1)
    writer.set_header_size(65536)
    writer.set_page_size(page_size)
    writer.add_schema(schema, "pictures")
    if index_fields:
        writer.add_index(index_fields)
    writer.write_raw_data([dict(row) for row in rows])
    writer.commit()


def write_by_ourselves(module, path, schema, index_fields, rows, page_size):
    file = module.MindRecordFile(
        path, schema, index_fields, page_size=page_size, header_size=65536, description="pictures"
    )
    for row in rows:
        file.add(row)
    file.close()


def index_of(path):
    database = sqlite3.connect(f"{path}.db")
    columns = [row[1:] for row in database.execute("PRAGMA table_info(INDEXES)")]
    rows = database.execute("SELECT * FROM INDEXES").fetchall()
    names = database.execute("SELECT * FROM SHARD_NAME").fetchall()
    database.close()
    return columns, rows, names


@pytest.mark.parametrize("case", CASES)
def test_the_bytes_and_the_index_are_those_of_mindspores_writer(case, mindrecord_file, tmp_path):
    schema, index_fields, rows = CASES[case]
    theirs, ours = tmp_path / "theirs/x.mindrecord", tmp_path / "ours/x.mindrecord"
    for path in (theirs, ours):
        path.parent.mkdir()
    write_by_mindspore(theirs, schema, index_fields, rows, 32768)
    write_by_ourselves(mindrecord_file, ours, schema, index_fields, rows, 32768)
    assert ours.read_bytes() == theirs.read_bytes()
    assert index_of(ours) == index_of(theirs)


def test_mindspore_reads_files_with_many_pages_of_both_kinds_in_any_order(mindrecord_file, tmp_path):
    import mindspore.dataset as ds

    draws = np.random.RandomState(1)
    rows = [
        {"image": draws.bytes(int(draws.randint(1, 3000))), "label": i, "file_name": "n" * (i % 700)}
        for i in range(1000)
    ]
    path = tmp_path / "x.mindrecord"
    write_by_ourselves(mindrecord_file, path, IMAGES, ["label"], rows, 32768)
    kinds = [place[1] for place in index_of(path)[1]]
    assert len(set(kinds)) > 5, "the rows must need several raw pages"
    order = draws.permutation(1000)[:300].tolist()
    dataset = ds.MindDataset([str(path)], sampler=ds.SubsetSampler(order), num_parallel_workers=2)
    read = list(dataset.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [int(row["label"]) for row in read] == order
    for row in read:
        wanted = rows[int(row["label"])]
        assert row["image"].tobytes() == wanted["image"]
        assert row["file_name"].item() == wanted["file_name"]


def test_a_write_that_the_system_cuts_short_is_completed(mindrecord_file, tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole.mindrecord", tmp_path / "cut.mindrecord"
    rows = image_rows([900] * 40)
    write_by_ourselves(mindrecord_file, whole, IMAGES, ["label"], rows, 32768)
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda file, parts, at: real(file, [b"".join(parts)[:100]], at))
    write_by_ourselves(mindrecord_file, cut, IMAGES, ["label"], rows, 32768)
    assert cut.read_bytes().replace(b"cut.mind", b"whole.mind")[8:2000] == whole.read_bytes()[8:2000]
    assert cut.read_bytes()[65536:] == whole.read_bytes()[65536:]


def test_a_list_of_pages_that_does_not_fit_into_the_header_is_refused(mindrecord_file, tmp_path):
    rows = image_rows([32000] * 400)
    with pytest.raises(mindrecord_file.HeaderTooSmall, match=r"[\d,]+ bytes do not fit .* 65,536"):
        write_by_ourselves(mindrecord_file, tmp_path / "x.mindrecord", IMAGES, ["label"], rows, 32768)
