"""Decode every image once with Pillow, and make sure that MindSpore sees the same pixels.

MindSpore's decoder ends the whole process (SIGFPE, no exception) on a JPEG that is cut inside its header, and
it cannot read GIF or WEBP at all.  So damaged files must be found here, before training, by another decoder.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import Callable, Optional

from PIL import Image, JpegImagePlugin

# What MindSpore 2.10 decodes to the same pixels as Pillow (measured on its CPU back end).
KEPT_AS_THEY_ARE = {
    "JPEG": {"RGB", "L"},
    "MPO": {"RGB", "L"},  # a JPEG followed by further pictures, which every JPEG decoder ignores
    "PNG": {"1", "L", "LA", "P", "RGB", "RGBA"},
    "BMP": {"1", "L", "P", "RGB"},
}
# Sources that have been through a lossy codec gain nothing from lossless storage.
LOSSY = {"JPEG", "MPO", "WEBP", "JPEG2000", "AVIF"}
JPEG_QUALITY = 95
HALF_COLOURS = 2  # 4:2:0
PNG_BIT_DEPTH_AT = 24  # byte of the IHDR chunk, which always comes first
ORIENTATION = 0x0112
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


IsWhole = Callable[[bytes], bool]  # True only for a JPEG file that every decoder reads; False says nothing


def judge_none(data: bytes) -> bool:
    return False


class BadImage(Exception):
    """These bytes are no image, or a damaged one; the text says why."""


@dataclass(frozen=True)
class ImageRules:
    """`check`: full decodes, header opens, none trusts.  `resize`: the shorter side is at most that."""

    check: str = "full"
    resize: Optional[int] = None
    quality: int = JPEG_QUALITY
    apply_orientation: bool = False


@dataclass(frozen=True)
class Stored:
    """The bytes to store, and what is to be told of them."""

    data: bytes
    repair: str = ""  # what was done to a format that MindSpore would not read, or read differently
    resized: bool = False
    rotated: bool = False  # EXIF says that the camera was turned, whether that is applied or not


def stored_image(data: bytes, rules: ImageRules, is_whole: IsWhole = judge_none) -> Stored:
    """Raises BadImage.  The format is taken from the content; file names lie.

    `is_whole` may spare a JPEG file the decoding; of all that it does not vouch for, Pillow alone decides.
    """
    if not data:  # MindRecord cannot store it either
        raise BadImage("is empty (0 bytes)")
    if rules.check == "none":
        return Stored(data)
    image = opened(data)
    form, mode = image.format or "?", image.mode
    deep = form == "PNG" and data[PNG_BIT_DEPTH_AT] == 16
    kept = mode in KEPT_AS_THEY_ARE.get(form, ()) and not deep
    orientation = orientation_of(image)
    rotated = orientation != 1
    resized = rules.resize is not None and min(image.size) > rules.resize
    if kept and not resized and not (rotated and rules.apply_orientation):
        if rules.check == "full" and not (form == "JPEG" and is_whole(data)):
            # At an eighth of the size, and without colours: libjpeg still reads every bit of a JPEG, but
            # leaves out most of the arithmetic.  Other formats ignore this.
            image.draft("L", (1, 1))
            image.decodermaxblock = len(data)  # type: ignore[attr-defined]  # Pillow's own are 64 kB
            load(image, len(data))
        return Stored(data, rotated=rotated)
    target = "JPEG" if form in LOSSY else "PNG"
    # Colours at half the resolution, as is usual, if the picture is made smaller; else as they were.
    sampling = HALF_COLOURS if resized else max(0, JpegImagePlugin.get_sampling(image))
    changed = reshaped(image, len(data), rules, orientation)
    frames = 1 if form == "MPO" else num_frames(image, len(data))
    frame_note = f", first of {frames} frames" if frames > 1 else ""
    repair = "" if kept else f"{form} ({mode}) re-encoded as {target}{frame_note}"
    return Stored(encoded(changed, target, rules.quality, sampling), repair, resized, rotated)


def opened(data: bytes) -> Image.Image:
    """The header read, no pixel yet."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata is no reason to alarm; odd pixels raise
            return Image.open(io.BytesIO(data))
    except Image.UnidentifiedImageError:
        raise BadImage(f"is not an image (begins with {data[:12]!r}, {len(data)} bytes)") from None
    # Pillow's plug-ins raise nearly anything on damaged input (OSError, SyntaxError, struct.error, ...).
    except Exception as error:
        raise BadImage(f"cannot be decoded: {error} ({len(data)} bytes)") from None


def load(image: Image.Image, num_bytes: int) -> None:
    """Decode the first frame."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image.load()
    except Exception as error:
        raise BadImage(f"cannot be decoded: {error} ({num_bytes} bytes)") from None


def num_frames(image: Image.Image, num_bytes: int) -> int:
    """Pillow reads through the file for that, and may come upon damage behind the first frame."""
    try:
        return getattr(image, "n_frames", 1)
    except Exception as error:
        raise BadImage(f"cannot be decoded: {error} ({num_bytes} bytes)") from None


def orientation_of(image: Image.Image) -> int:
    """EXIF's number, 1 (upright) where there is none that can be read."""
    if image.format in ("JPEG", "PNG") and "exif" not in image.info:
        return 1  # Pillow would decode a whole PNG to look behind the pixels
    try:
        orientation = image.getexif().get(ORIENTATION, 1)
    except Exception:  # broken metadata; the pixels may be fine
        return 1
    return orientation if orientation in UPRIGHT else 1


def reshaped(image: Image.Image, num_bytes: int, rules: ImageRules, orientation: int) -> Image.Image:
    """Decoded, 8 bits, shrunk and turned as the rules say, without metadata that a decoder might obey."""
    size = image.size
    shrunk = shrunk_size(size, rules.resize) if rules.resize else size
    if shrunk != size:
        image.draft(None, (2 * shrunk[0], 2 * shrunk[1]))  # a JPEG need not be decoded larger than that
    load(image, num_bytes)
    pixels = to_8_bit(image)
    if shrunk != size:
        pixels = pixels.resize(shrunk, Image.Resampling.LANCZOS)
    if rules.apply_orientation and orientation != 1 and image.format != "TIFF":  # Pillow did that itself
        pixels = pixels.transpose(UPRIGHT[orientation])
    pixels.info = {}
    return pixels


def shrunk_size(size: tuple[int, int], shorter: int) -> tuple[int, int]:
    """`size`, or the size of the same picture whose shorter side is `shorter`."""
    least = min(size)
    if least <= shorter:
        return size
    width, height = (max(1, round(side * shorter / least)) for side in size)
    return width, height


def to_8_bit(image: Image.Image) -> Image.Image:
    """RGB or grey with 8 bits; alpha is dropped, as MindSpore's decoder does."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        # Image.convert would clip everything above 255 to white.
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode in ("L", "RGB"):
        return image  # convert() would make a copy
    if image.mode == "1":
        return image.convert("L")
    if image.mode in ("I", "F"):
        raise BadImage(f"holds {image.format} pixels of mode {image.mode}, whose range is unknown")
    return image.convert("RGB")


def encoded(image: Image.Image, form: str, quality: int, sampling: int) -> bytes:
    buffer = io.BytesIO()
    try:
        if form == "JPEG":
            image.save(buffer, "JPEG", quality=quality, subsampling=sampling)
        else:
            image.save(buffer, "PNG")
    except (OSError, ValueError) as error:  # such as a side of more than 65,500 pixels
        raise BadImage(f"cannot be encoded as {form}: {error} ({image.size[0]}x{image.size[1]})") from None
    return buffer.getvalue()
