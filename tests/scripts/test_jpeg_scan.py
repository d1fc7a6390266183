"""The quick check of JPEG files says yes to every plain file, and to nothing that a decoder would refuse."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import tarfile

import numpy as np
import pytest
from converting import WRITER
from PIL import Image, ImageFilter

from tests.support import ROOT, shared_data

pytest.importorskip("numba")

KINDS = {
    "usual": {},
    "full colour": {"subsampling": 0},
    "half across": {"subsampling": 1},
    "optimised": {"optimize": True, "quality": 90},
    "poor": {"quality": 3},
    "finest": {"quality": 100, "subsampling": 0},
    "restarts in every row": {"restart_marker_rows": 1},
    "restarts": {"restart_marker_blocks": 5, "subsampling": 1, "quality": 40},
    "restarts everywhere": {"restart_marker_blocks": 1, "optimize": True},
    "metadata": {
        "comment": b"\xff\xd9\xff\xda",
        "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0",
        "icc_profile": b"x" * 9,
    },
}


@pytest.fixture
def scan(monkeypatch):
    monkeypatch.syspath_prepend(str(WRITER.parent))
    import jpeg_scan

    return jpeg_scan


def picture(width, height, blur, seed=0):
    noise = np.random.RandomState(seed).randint(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(noise).filter(ImageFilter.GaussianBlur(blur))


def jpeg(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **options)
    return buffer.getvalue()


def files(longest=90):
    """Every kind, in colours and grey, noisy and smooth, with sides of whole blocks, of more, and of less."""
    draw, found = random.Random(0), []
    for options in KINDS.values():
        for mode in ("RGB", "L"):
            width, height = draw.choice(
                [(64, 32), (draw.randint(9, longest), draw.randint(9, longest)), (1, 3)]
            )
            found.append(jpeg(picture(width, height, draw.choice([0, 1, 4])).convert(mode), **options))
    return found


def segment(data, marker):
    """(first, end) of the marker segment; of SOS, without the data behind it."""
    at = 2
    while data[at + 1] != marker:
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return at, at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")


def changed(data, at, *values):
    return data[:at] + bytes(values) + data[at + len(values) :]


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_files_are_told_from_cut_ones(scan, kind, mode):
    for size, blur in (((200, 150), 0), ((97, 61), 3), ((16, 16), 1), ((1, 1), 0), ((3, 300), 2)):
        data = jpeg(picture(*size, blur).convert(mode), **KINDS[kind])
        assert scan.is_whole(data), size
        assert scan.is_whole(data + b"what is behind the end is nobody's business")
        near_end = range(max(0, len(data) - 30), len(data))
        for length in [*range(0, len(data), 1 + len(data) // 60), *near_end]:
            assert not scan.is_whole(data[:length]), (size, length)
            assert length == len(data) - 2 or not scan.is_whole(data[:length] + b"\xff\xd9"), (size, length)


@pytest.mark.parametrize("options", [{"progressive": True}, {"mode": "CMYK"}, {"form": "PNG"}])
def test_other_kinds_are_left_to_pillow(scan, options):
    image = picture(40, 40, 1).convert(options.pop("mode", "RGB"))
    buffer = io.BytesIO()
    image.save(buffer, options.pop("form", "JPEG"), **options)
    assert not scan.is_whole(buffer.getvalue())


@pytest.mark.slow
def test_all_photographs_are_whole(scan):
    with tarfile.open(shared_data("imagenet-samples.tar")) as tar:
        members = [member for member in tar if member.name.lower().endswith((".jpeg", ".jpg"))]
        judged = [scan.is_whole(tar.extractfile(member).read()) for member in members]
    assert len(judged) == sum(judged) == 1000  # baseline, all of them; most with codes of their own


GREY = jpeg(picture(60, 44, 1).convert("L"), quality=80)
COLOUR = jpeg(picture(60, 44, 1), quality=80, restart_marker_blocks=2)


def odd_headers():
    """Name -> bytes, each of which differs in one thing from a whole file."""
    frame, sos, dht, dqt = (segment(GREY, marker)[0] for marker in (0xC0, 0xDA, 0xC4, 0xDB))
    colour_frame, colour_sos = segment(COLOUR, 0xC0)[0], segment(COLOUR, 0xDA)[0]
    twice = changed(COLOUR, colour_frame + 13, COLOUR[colour_frame + 10])
    return {
        "no height yet": changed(GREY, frame + 5, 0, 0),
        "larger than libjpeg reads": changed(GREY, frame + 5, 0xFF, 0xFF),
        "more blocks than libjpeg can add up": changed(GREY, frame + 5, 0xFF, 0, 0xFF, 0),
        "12 bits": changed(GREY, frame + 4, 12),
        "lossless": changed(GREY, frame + 1, 0xC3),
        "arithmetic": changed(GREY, frame + 1, 0xC9),
        "two frames": GREY[:sos] + GREY[slice(*segment(GREY, 0xC0))] + GREY[sos:],
        "a table of quantisation that is not there": changed(GREY, frame + 12, 3),
        "a code that is not there": changed(GREY, sos + 6, 0x11),
        "another component": changed(GREY, sos + 5, GREY[sos + 5] + 1),
        "part of the spectrum": changed(GREY, sos + 8, 62),
        "a further bit": changed(GREY, sos + 9, 0x10),
        "more codes than there are": changed(GREY, dht + 5, 3),
        "a difference of more bits than there are": changed(GREY, dht + 32, 12),
        "divided by 0": changed(GREY, dqt + 9, 0),
        "a table of 16 bits": changed(GREY, dqt + 4, 0x10),
        "one component twice": changed(twice, colour_sos + 7, COLOUR[colour_sos + 5]),
        "a fraction of a sampling factor": changed(COLOUR, colour_frame + 11, 0x32, 0, 2, 0x21),
        "too many blocks in an MCU": changed(COLOUR, colour_frame + 11, 0x44),
        "two of three components": COLOUR[: colour_sos + 3] + b"\x0a\x02" + COLOUR[colour_sos + 5 :],
        "cut in a segment": GREY[: dht + 9],
        "cut between segments": GREY[:dht],
    }


def odd_scans():
    frame, sos, begin = segment(GREY, 0xC0)[0], *segment(GREY, 0xDA)
    first, second = COLOUR.index(b"\xff\xd0"), COLOUR.index(b"\xff\xd1")
    return {
        "a row of blocks too many": changed(GREY, frame + 5, 0, 36),
        "a row of blocks too few": changed(GREY, frame + 5, 0, 52),
        "a column of blocks too few": changed(GREY, frame + 7, 0, 68),
        "a byte before the scan": GREY[:begin] + b"\x5a" + GREY[begin:],
        "a byte before the end": GREY[:-2] + b"\xff\0" + GREY[-2:],
        "restart markers that no DRI told of": GREY[:-2] + b"\xff\xd0" + GREY[-2:],
        "two scans": GREY[:-2] + GREY[sos:],
        "no end": GREY[:-2] + b"\xff\xd8",
        "restarts out of order": changed(changed(COLOUR, first + 1, 0xD1), second + 1, 0xD0),
        "a restart left out": COLOUR[:first] + COLOUR[first + 2 :],
        "an interval left out": COLOUR[:first] + COLOUR[second:],
        "another interval": changed(COLOUR, segment(COLOUR, 0xDD)[0] + 4, 0, 3),
    }


@pytest.mark.parametrize("name", odd_headers())
def test_odd_headers_are_left_to_pillow(scan, name):
    with pytest.raises(scan.Unusual):
        scan.read_header(odd_headers()[name])
    assert not scan.is_whole(odd_headers()[name])


@pytest.mark.parametrize("name", odd_scans())
def test_odd_scans_are_left_to_pillow(scan, name):
    assert scan.is_whole(GREY)
    assert scan.is_whole(COLOUR)
    assert not scan.is_whole(odd_scans()[name])


def test_sampling_factors_of_one_component_mean_nothing(scan):
    data = changed(GREY, segment(GREY, 0xC0)[0] + 11, 0x31)
    assert scan.is_whole(data)
    assert np.array_equal(Image.open(io.BytesIO(data)), Image.open(io.BytesIO(GREY)))


class Bits:
    """Grey blocks by hand: 0: no difference; then 0: the end, 10: a 1 after 15 zeros, 110: sixteen zeros."""

    def __init__(self, *blocks, symbols=(0x00, 0xF1, 0xF0), lengths=(1, 1, 1)):
        bits = "".join(blocks)
        bits += "1" * (-len(bits) % 8)
        coded = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
        height = 8 * len(blocks)
        dc, ac = bytes([0, 1, *[0] * 15, 0]), bytes([16, *lengths, *[0] * 13, *symbols])
        parts = [(0xDB, b"\0" + b"\1" * 64), (0xC0, bytes([8, height >> 8, height & 255, 0, 8, 1, 1, 17, 0]))]
        parts += [(0xC4, dc + ac), (0xDA, bytes([1, 1, 0, 0, 63, 0]))]
        head = b"".join(
            bytes([255, marker]) + (len(body) + 2).to_bytes(2, "big") + body for marker, body in parts
        )
        self.file = b"\xff\xd8" + head + coded + b"\xff\xd9"


ZEROS, LONE, END = "110", "101", "0"


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (["0" + END], True),
        (["0" + 3 * ZEROS + END] * 5, True),
        (["0" + 3 * LONE + END] * 40, True),
        (["0" + 3 * ZEROS + LONE], False),  # the last would be coefficient 64
        (["0" + 4 * LONE], False),
        (["0" + 5 * ZEROS + END], False),
        (["0" + "111"], False),  # no code
        (["0" + END, "0"], False),
        (["0" + END, "0" + END + 9 * "0"], False),
    ],
)
def test_blocks_have_64_coefficients(scan, blocks, expected):
    assert scan.is_whole(Bits(*blocks).file) == expected


def test_a_block_that_is_full_has_no_end(scan):
    """0x11: a 1 after one zero, so that the coefficients 1 to 62 are filled, and one is left."""
    symbols = (0x00, 0x11, 0x01)
    full = "0" + 31 * "101" + "1101"
    assert scan.is_whole(Bits(*[full] * 7, symbols=symbols).file)
    assert not scan.is_whole(Bits(*[full + END] * 7, symbols=symbols).file)
    assert not scan.is_whole(Bits("0" + 31 * "101" + "101", symbols=symbols).file)


def test_a_code_of_ones_alone_is_left_to_pillow(scan):
    assert scan.is_whole(Bits("0" + END, lengths=(1, 1, 1)).file)
    assert not scan.is_whole(Bits("0" + END, lengths=(1, 2, 0)).file)


@pytest.mark.parametrize("symbol", [0x10, 0xE0, 0x0B, 0x1F])
def test_symbols_that_mean_nothing_are_left_to_pillow(scan, symbol):
    """libjpeg takes them for an end, or for numbers of so many bits."""
    symbols, behind = (0, symbol, 0xF0), "1" * (symbol & 15)
    block = "0" + "10" + behind + (END if behind else "")
    assert scan.is_whole(Bits("0" + ZEROS + END, symbols=symbols).file), "it is not used"
    assert not scan.is_whole(Bits(block, "0" + END, symbols=symbols).file)
    assert scan.is_whole(Bits("0" + "10" + "1" * 10 + END, "0" + END, symbols=(0, 0x1A, 0xF0)).file)


def test_a_huge_image_of_little_data_ends_with_the_data(scan):
    frame = segment(GREY, 0xC0)[0]
    for height, width in ((8000, 8000), (65500, 65500), (65535, 65535), (65535, 1)):
        assert not scan.is_whole(changed(GREY, frame + 5, height >> 8, height & 255, width >> 8, width & 255))


def mutated(data, draw):
    """Cut, with changed or inserted or repeated bytes; half of it where the header is."""
    reach = min(len(data), draw.choice([650, len(data)]))
    at, kind = draw.randrange(reach), draw.random()
    if kind < 0.1:
        return data[:at] + draw.choice([b"", b"\xff\xd9"])
    if kind < 0.25:
        inserted = draw.choice(
            [b"\xff", b"\0", b"\xff\0", draw.randbytes(draw.randint(1, 9)), data[at : at + 40]]
        )
        return data[:at] + inserted + data[at:]
    if kind < 0.35:
        return data[:at] + data[at + draw.randint(1, 9) :]
    new = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        new[at] = draw.choice([new[at] ^ 1 << draw.randrange(8), draw.randrange(256), 0xFF, 0])
        at = draw.randrange(reach)
    return bytes(new)


def accepted(scan, count, seed):
    """Those of so many mutations that the quick check lets pass."""
    draw, originals = random.Random(seed), files()
    for number in range(count):
        data = originals[number % len(originals)]
        changes = mutated(data, draw)
        if changes != data and scan.is_whole(changes):
            yield changes


def check_against_decoders(passed):
    from mindspore.dataset import vision

    for number, data in enumerate(passed):
        try:
            image = Image.open(io.BytesIO(data))
        except Exception:  # the converter opens each file before, and would have refused this one
            continue
        image.load()  # raises if there is something wrong
        if number % 5 == 0:
            assert vision.Decode()(np.frombuffer(data, np.uint8)).shape[:2] == image.size[::-1]


def test_no_mutation_passes_that_a_decoder_refuses(scan):
    passed = list(accepted(scan, 1500, seed=1))
    assert 150 < len(passed) < 750, "mutations that all pass, or none, test nothing"
    check_against_decoders(passed)


@pytest.mark.deep
def test_none_of_a_hundred_thousand_mutations_passes_that_a_decoder_refuses(scan):
    check_against_decoders(accepted(scan, 100_000, seed=2))


@pytest.mark.slow
def test_no_index_is_ever_outside(tmp_path):
    """Interpreted, where NumPy sees an index beyond the end; and the answers are those of compiled code."""
    told, environment = [], {**os.environ, "PYTHONWARNINGS": "error:overflow"}
    folders = [str(WRITER.parent), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    for interpreted in ("0", "1"):
        environment.update(NUMBA_DISABLE_JIT=interpreted, PYTHONPATH=os.pathsep.join(folders))
        words = [sys.executable, __file__]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=600)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout)
    assert told[0] == told[1]
    assert {"0", "1"} <= set(told[0])


if __name__ == "__main__":
    import jpeg_scan

    chance, small = random.Random(3), files(longest=24)
    print(*(int(jpeg_scan.is_whole(mutated(small[i % len(small)], chance))) for i in range(len(small) * 8)))
