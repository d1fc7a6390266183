"""Records that MXNet and DALI read, checked against the format's description."""

from __future__ import annotations

import struct

import pytest

from benchmarks.peers import recordio


def test_rows_stand_where_the_index_says(tmp_path):
    files = [(b"\xff\xd8" + bytes(length), label) for length, label in ((5, 3), (6, 900), (7, 0))]
    assert recordio.write(tmp_path / "some", files) == 3
    data = (tmp_path / "some.rec").read_bytes()
    index = [line.split("\t") for line in (tmp_path / "some.idx").read_text().splitlines()]
    assert [key for key, _ in index] == ["0", "1", "2"]
    for number, ((_, at), (file, label)) in enumerate(zip(index, files)):
        magic, length = struct.unpack_from("<II", data, int(at))
        assert magic == 0xCED7230A
        payload = data[int(at) + 8 :][:length]
        assert struct.unpack_from("<IfQQ", payload) == (0, label, number, 0)
        assert payload[24:] == file
    assert len(data) % 4 == 0


def test_a_file_that_holds_the_magic_number_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="row 1"):
        recordio.write(tmp_path / "bad", [(b"1234", 0), (b"1234" + recordio.MAGIC, 0)])
    recordio.write(tmp_path / "shifted", [(b"12345" + recordio.MAGIC, 0)])
