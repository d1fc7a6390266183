"""Archives: read where they are, by any number of processes, and never trusted."""

from __future__ import annotations

import io
import os
import tarfile
import threading

import pytest
from imagenet_forms import SCRIPTS, picture, tar_bytes, write


@pytest.fixture
def tars(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from convert_to_mindrecord.imagenet import tars

    return tars


def images_of(tars, path):
    """class/name -> bytes."""
    source = tars.ClassTars(str(path))
    return {
        f"{wnid}/{os.fsdecode(item.name)}": source.read(wnid, item)
        for wnid in source.names
        for item in source.items_of(wnid)
    }, source


def test_a_tar_of_tars_is_read_by_offsets(tars, tmp_path):
    long = "n1_" + "x" * 150 + ".JPEG"
    inner = {
        "n2.tar": tar_bytes({"n2_1.JPEG": b"two"}, format=tarfile.GNU_FORMAT),
        "n1.tar": tar_bytes(
            {f"./{long}": b"long", "./._n1_3.JPEG": b"junk", "é.JPEG": b"u" * 2000}, format=tarfile.PAX_FORMAT
        ),
        "README": b"x",
    }
    write(tmp_path / "train.tar", tar_bytes({f"./{name}": data for name, data in inner.items()}))
    found, source = images_of(tars, tmp_path / "train.tar")
    assert found == {f"n1/{long}": b"long", "n1/é.JPEG": b"u" * 2000, "n2/n2_1.JPEG": b"two"}
    assert source.names == ["n1", "n2"]
    assert str(source.ignored).startswith("2 (README, ._n1_3.JPEG")


def test_several_processes_read_the_same_archive_at_once(tars, tmp_path):
    """Through descriptors of their own: nobody moves the place at which another one reads."""
    images = {f"n1_{number}.JPEG": picture(number) * (1 + number) for number in range(40)}
    write(tmp_path / "train.tar", tar_bytes({"n1.tar": tar_bytes(images)}))
    expected, source = images_of(tars, tmp_path / "train.tar")
    items = source.items_of("n1")
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            good = all(
                source.read("n1", item) == expected[f"n1/{os.fsdecode(item.name)}"] for item in items * 5
            )
            os._exit(0 if good else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert tars.opened(os.getpid(), str(tmp_path / "train.tar")) is not tars.opened(
        1, str(tmp_path / "train.tar")
    )


def member(name, kind=tarfile.REGTYPE, link="", size=0):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


MEMBERS = {
    "absolute": (member("/etc/a.JPEG"), "points outside"),
    "above": (member("n1/../../a.JPEG"), "points outside"),
    "symbolic link": (member("a.JPEG", tarfile.SYMTYPE, "/etc/passwd"), "is a link .to '/etc/passwd'"),
    "hard link": (member("a.JPEG", tarfile.LNKTYPE, "b.JPEG"), "is a link"),
    "device": (member("a.JPEG", tarfile.CHRTYPE), "neither a plain file nor a folder"),
    "pipe": (member("a.JPEG", tarfile.FIFOTYPE), "neither a plain file nor a folder"),
    "unknown kind": (member("a.JPEG", b"V"), "neither a plain file nor a folder"),
}


@pytest.mark.parametrize("where", ["outer", "inner"])
@pytest.mark.parametrize("name", MEMBERS)
def test_members_that_could_lead_outside_are_refused(name, where, tars, tmp_path):
    bad, expected = MEMBERS[name]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(bad)
        tar.addfile(member("b.JPEG", size=3), io.BytesIO(b"abc"))
    archive = buffer.getvalue()
    write(tmp_path / "t.tar", archive if where == "outer" else tar_bytes({"n1.tar": archive}))
    with pytest.raises(ValueError, match=expected):
        images_of(tars, tmp_path / "t.tar")


def whole_tar():
    inner = tar_bytes({f"n1_{number}.JPEG": bytes([number]) * 3000 for number in range(5)})
    return tar_bytes({"n1.tar": inner, "n2.tar": inner})


def test_a_tar_that_is_cut_anywhere_is_refused_or_whole(tars, tmp_path):
    data = whole_tar()
    path = tmp_path / "train.tar"
    write(path, data)
    expected = images_of(tars, path)[0]
    assert len(expected) == 10
    end = data.rindex(b"\x04" * 3000) + 3000  # of the last image
    for length in (0, 3, 511, 512, 700, *range(1024, len(data), 1111)):
        write(path, data[:length])
        if length < end:
            with pytest.raises(ValueError, match=r"train\.tar|n1\.tar|n2\.tar"):
                images_of(tars, path)


DAMAGES = {
    "html": (lambda data: b"<html>404</html>" * 100, "no tar file"),
    "gzip": (lambda data: b"\x1f\x8b\x08" + data, "compressed with gzip: decompress it"),
    "hole": (lambda data: hole(data, data.index(b"n1_3.JPEG")), "n1.tar in .* damaged at"),
    "allocated, not downloaded": (lambda data: data[:512] + bytes(len(data) + 2_000_000), "incomplete"),
    "header of the second": (lambda data: damaged(data, data.index(b"n2.tar")), r"damaged at byte"),
    "header of an image": (lambda data: damaged(data, data.index(b"n1_3.JPEG")), r"n1.tar in .* damaged at"),
    "a negative size": (
        lambda data: negative_size(data, data.index(b"n1_3.JPEG")),
        "neither a plain|is damaged at",
    ),
}


def hole(data, place):
    return data[:place] + bytes(512) + data[place + 512 :]


def damaged(data, place):
    return data[:place] + b"\xffgarbage" + data[place + 8 :]


def negative_size(data, start):
    header = bytearray(data[start : start + 512])
    header[124:136] = b"\xff" * 10 + b"\xfe\x00"  # -512: the next file would be this one
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return data[:start] + bytes(header) + data[start + 512 :]


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_tar_is_refused(name, tars, tmp_path):
    damage, expected = DAMAGES[name]
    write(tmp_path / "train.tar", damage(whole_tar()))
    failure = []

    def read():
        with pytest.raises(ValueError, match=expected) as caught:
            images_of(tars, tmp_path / "train.tar")
        failure.append(caught.value)

    thread = threading.Thread(target=read, daemon=True)  # a size below zero once made tarfile run in a circle
    thread.start()
    thread.join(10)
    assert failure


def test_the_same_image_or_class_twice_is_refused(tars, tmp_path):
    twice = io.BytesIO()
    with tarfile.open(fileobj=twice, mode="w") as tar:
        for name in ("n1/a.JPEG", "n2/a.JPEG"):
            tar.addfile(member(name, size=1), io.BytesIO(b"x"))
    write(tmp_path / "t.tar", tar_bytes({"n1.tar": twice.getvalue()}))
    with pytest.raises(ValueError, match=r"holds a.JPEG twice"):
        images_of(tars, tmp_path / "t.tar")
    write(tmp_path / "t.tar", tar_bytes({"n1.tar": b"", "x/n1.tar": b""}))
    with pytest.raises(ValueError, match=r"holds n1.tar twice"):
        images_of(tars, tmp_path / "t.tar")


def test_an_archive_that_shrinks_later_is_an_unreadable_image(tars, tmp_path):
    """What was found is no longer there: an OSError, which the converter reports with the bad images."""
    write(tmp_path / "train.tar", whole_tar())
    _, source = images_of(tars, tmp_path / "train.tar")
    item = source.items_of("n2")[0]
    os.truncate(tmp_path / "train.tar", 20000)
    with pytest.raises(OSError, match="only 0 of 3000 bytes are in"):
        source.read("n2", item)
