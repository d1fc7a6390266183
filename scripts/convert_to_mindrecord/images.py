"""Decode every image once with Pillow, and make sure that MindSpore sees the same pixels.

MindSpore's decoder ends the whole process (SIGFPE, no exception) on a JPEG that is cut inside its header, and
it cannot read GIF or WEBP at all.  So damaged files must be found here, before training, by another decoder.
"""

from __future__ import annotations

import io
import warnings

from PIL import Image

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
PNG_BIT_DEPTH_AT = 24  # byte of the IHDR chunk, which always comes first


class BadImage(Exception):
    """These bytes are no image, or a damaged one; the text says why."""


def check_image(data: bytes) -> tuple[bytes, str]:
    """The bytes to store and, where they are not the given ones, what was done to them (else "").

    Raises BadImage.  The format is taken from the content; file names lie.
    """
    if not data:
        raise BadImage("is empty (0 bytes)")
    image = decode(data)
    form, mode = image.format or "?", image.mode
    deep = form == "PNG" and data[PNG_BIT_DEPTH_AT] == 16
    if mode in KEPT_AS_THEY_ARE.get(form, ()) and not deep:
        return data, ""
    frames = getattr(image, "n_frames", 1)
    target = "JPEG" if form in LOSSY else "PNG"
    frame_note = f", first of {frames} frames" if frames > 1 and form != "MPO" else ""
    return encode(to_8_bit(image), target), f"{form} ({mode}) re-encoded as {target}{frame_note}"


def decode(data: bytes) -> Image.Image:
    """The first frame, fully decoded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata is no reason to alarm; odd pixels raise
            image = Image.open(io.BytesIO(data))
            image.load()
    except Image.UnidentifiedImageError:
        raise BadImage(f"is not an image (begins with {data[:12]!r}, {len(data)} bytes)") from None
    # Pillow's plug-ins raise nearly anything on damaged input (OSError, SyntaxError, struct.error, ...).
    except Exception as error:
        raise BadImage(f"cannot be decoded: {error} ({len(data)} bytes)") from None
    return image


def to_8_bit(image: Image.Image) -> Image.Image:
    """RGB or grey with 8 bits; alpha is dropped, as MindSpore's decoder does."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        # Image.convert would clip everything above 255 to white.
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode in ("1", "L"):
        return image.convert("L")
    if image.mode in ("I", "F"):
        raise BadImage(f"holds {image.format} pixels of mode {image.mode}, whose range is unknown")
    return image.convert("RGB")


def encode(image: Image.Image, form: str) -> bytes:
    buffer = io.BytesIO()
    if form == "JPEG":
        image.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    else:
        image.save(buffer, "PNG")
    return buffer.getvalue()
