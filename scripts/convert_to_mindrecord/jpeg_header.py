"""The header of the plainest kind of JPEG file, down to where its scan begins; anything else is `Unusual`.

Sections are those of ITU-T T.81.  Where it and libjpeg differ, the stricter of the two is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

SOI = b"\xff\xd8"
BASELINE, EXTENDED = 0xC0, 0xC1  # frames of one interleaved, Huffman-coded scan
DHT, SOS, DQT, DRI, COM = 0xC4, 0xDA, 0xDB, 0xDD, 0xFE
APP0, APP15 = 0xE0, 0xEF
MOST_PIXELS = 65_500  # of a side: libjpeg's JPEG_MAX_DIMENSION
MOST_BLOCKS_IN_MCU = 10  # B.2.3
MOST_DC_BITS = 11  # F.1.2.1.1; libjpeg refuses a table with more than 15, used or not
MOST_BLOCKS_IN_COMPONENT = (1 << 31 - MOST_DC_BITS) - 1  # libjpeg refuses sums of differences beyond 31 bits
CODE_BYTES = 1 + 16 + 256  # class and number, codes of each length, symbols
WHOLE_SPECTRUM = bytes((0, 63, 0))  # Ss, Se, Ah and Al of a sequential scan


class Unusual(Exception):
    """Damaged, or of a kind that is not understood here."""


class Component(NamedTuple):
    identifier: int
    across: int  # blocks of an MCU
    down: int


class Frame(NamedTuple):
    width: int
    height: int
    components: list[Component]
    quantisation: set[int]  # numbers of the tables that it needs


class Header(NamedTuple):
    """`codes`: CODE_BYTES for each Huffman code in use, as in a DHT segment, filled up with zeros."""

    scan: int  # where the entropy-coded data begin
    num_mcus: int
    restart_interval: int  # in MCUs; 0: no restart markers
    codes: bytes
    pairs: list[tuple[int, int]]  # (DC, AC): positions in `codes`, for each component
    blocks: list[int]  # for each block of an MCU, its component


def demand(holds: bool) -> None:
    if not holds:
        raise Unusual


def read_header(data: bytes) -> Header:
    """Raises Unusual."""
    demand(data[:2] == SOI)
    frame, restart_interval, at = None, 0, 2
    codes: dict[int, bytes] = {}
    quantisation: set[int] = set()
    while True:
        demand(at + 4 <= len(data) and data[at] == 0xFF)
        marker, length = data[at + 1], data[at + 2] << 8 | data[at + 3]
        segment = data[at + 4 : at + 2 + length]
        demand(length >= 2 and len(segment) == length - 2)
        at += 2 + length
        if marker == DHT:
            codes.update(huffman_codes(segment))
        elif marker == DQT:
            quantisation |= quantisation_tables(segment)
        elif marker in (BASELINE, EXTENDED):
            demand(frame is None)
            frame = read_frame(segment)
        elif marker == DRI:
            demand(len(segment) == 2)
            restart_interval = segment[0] << 8 | segment[1]
        elif marker == SOS:
            if frame is None or not frame.quantisation <= quantisation:
                raise Unusual
            return read_scan(segment, frame, codes, restart_interval, at)
        else:
            demand(APP0 <= marker <= APP15 or marker == COM)


def huffman_codes(segment: bytes) -> dict[int, bytes]:
    """B.2.4.2.  16 x class (0: DC, 1: AC) + number -> the code in CODE_BYTES bytes."""
    found = {}
    while segment:
        demand(len(segment) > 17 and segment[0] & ~0x10 < 4)
        num_symbols = sum(segment[1:17])
        code, segment = segment[: 17 + num_symbols], segment[17 + num_symbols :]
        demand(1 <= num_symbols <= 256 and len(code) == 17 + num_symbols)
        demand(code[0] >= 16 or max(code[17:]) <= MOST_DC_BITS)
        found[code[0]] = code.ljust(CODE_BYTES, b"\0")
    return found


def quantisation_tables(segment: bytes) -> set[int]:
    """B.2.4.1: 8-bit tables of 64 elements, none of them 0."""
    demand(len(segment) % 65 == 0)
    demand(not any(0 in segment[start + 1 : start + 65] for start in range(0, len(segment), 65)))
    numbers = set(segment[::65])
    demand(numbers <= {0, 1, 2, 3})
    return numbers


def read_frame(segment: bytes) -> Frame:
    """B.2.2: 8 bits a sample, grey or three components, none of them at a fraction of the others' size."""
    demand(
        len(segment) >= 6 and segment[0] == 8 and segment[5] in (1, 3) and len(segment) == 6 + 3 * segment[5]
    )
    height, width = segment[1] << 8 | segment[2], segment[3] << 8 | segment[4]
    demand(1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS)
    components = [
        Component(segment[i], segment[i + 1] >> 4, segment[i + 1] & 15) for i in range(6, len(segment), 3)
    ]
    demand(len({component.identifier for component in components}) == len(components))
    for sampling in zip(*(component[1:] for component in components)):
        demand(all(1 <= factor <= 4 and max(sampling) % factor == 0 for factor in sampling))
    return Frame(width, height, components, set(segment[8::3]))


def read_scan(
    segment: bytes, frame: Frame, codes: dict[int, bytes], restart_interval: int, at: int
) -> Header:
    """B.2.3: all components at once, each with a DC and an AC code that is known."""
    components = frame.components
    demand(len(segment) == 4 + 2 * len(components) and segment[0] == len(components))
    demand(list(segment[1:-3:2]) == [component.identifier for component in components])
    demand(segment[-3:] == WHOLE_SPECTRUM)
    slots = [(selectors >> 4, 16 | selectors & 15) for selectors in segment[2:-3:2]]
    used = sorted({slot for pair in slots for slot in pair})
    demand(all(slot in codes for slot in used))
    if len(components) == 1:  # A.2.2: then an MCU is one block, whatever the sampling factors
        components = [components[0]._replace(across=1, down=1)]
    across = max(component.across for component in components)
    down = max(component.down for component in components)
    num_mcus = -(-frame.width // (8 * across)) * -(-frame.height // (8 * down))  # A.2.4
    blocks = [n for n, component in enumerate(components) for _ in range(component.across * component.down)]
    demand(len(blocks) <= MOST_BLOCKS_IN_MCU and num_mcus * across * down <= MOST_BLOCKS_IN_COMPONENT)
    pairs = [(used.index(dc), used.index(ac)) for dc, ac in slots]
    return Header(at, num_mcus, restart_interval, b"".join(codes[slot] for slot in used), pairs, blocks)
