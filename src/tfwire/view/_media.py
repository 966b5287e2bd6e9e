"""What byte strings hold: images and sounds by their first bytes, pixels that are stored raw.

Nothing is decoded here. A browser decodes it, after the size that the header declares was checked.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import NamedTuple

__all__ = ["Media", "data_uri", "find_media", "png_of_pixels", "raw_image_shape"]

# A browser needs some 4 bytes for each pixel; images of more are named, not shown.
_MOST_PIXELS = 64 << 20
_WAV_HEADER = 44


class Media(NamedTuple):
    """An image or a sound.

    Attributes:
        type: The MIME type: one of five kinds of images, or of WAV.
        width, height: In pixels; 0 for sounds, and where the header does not say.
    """

    type: str
    width: int = 0
    height: int = 0

    @property
    def is_shown(self) -> bool:
        """Whether a browser can show it without harm: an image of known and moderate size."""
        return self.type == "audio/wav" or 0 < self.width * self.height <= _MOST_PIXELS

    @property
    def title(self) -> str:
        name = self.type.partition("/")[2].upper()
        return f"{name} {self.width} x {self.height}" if self.width else name


def find_media(contents: bytes) -> Media | None:
    """The kind of image or sound that bytes begin as; None for all others, such as SVG."""
    if contents.startswith(b"\x89PNG\r\n\x1a\n") and contents[12:16] == b"IHDR":
        return Media("image/png", *_big_endian(contents[16:24]))
    if contents.startswith(b"\xff\xd8\xff"):
        return Media("image/jpeg", *_jpeg_size(contents))
    if contents[:6] in (b"GIF87a", b"GIF89a") and len(contents) > 9:
        return Media("image/gif", *struct.unpack_from("<HH", contents, 6))
    if contents[:4] == b"RIFF" and contents[8:12] == b"WEBP":
        return Media("image/webp", *_webp_size(contents))
    if contents[:4] == b"RIFF" and contents[8:12] == b"WAVE" and len(contents) >= _WAV_HEADER:
        return Media("audio/wav")
    return None


def _big_endian(data: bytes) -> tuple[int, int]:
    return struct.unpack(">II", data) if len(data) == 8 else (0, 0)


def _jpeg_size(contents: bytes) -> tuple[int, int]:
    """Of the first segment that holds the size of a frame."""
    at = 2
    while contents[at : at + 1] == b"\xff" and at + 9 <= len(contents):
        kind = contents[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", contents, at + 5)
            return width, height
        at += 2 + int.from_bytes(contents[at + 2 : at + 4], "big")
    return 0, 0


def _webp_size(contents: bytes) -> tuple[int, int]:
    """Of the three forms of WebP: lossy, lossless and extended."""
    form = contents[12:16]
    if form == b"VP8 " and len(contents) >= 30:
        width, height = struct.unpack_from("<HH", contents, 26)
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L" and len(contents) >= 25:
        bits = int.from_bytes(contents[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8X" and len(contents) >= 30:
        size = contents[24:27], contents[27:30]
        width, height = (int.from_bytes(part, "little") + 1 for part in size)
        return width, height
    return 0, 0


def data_uri(media: Media, contents: bytes) -> str:
    return f"data:{media.type};base64,{b64encode(contents).decode('ascii')}"


# ---- Pixels that are stored raw -----------------------------------------------------------------

_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}  # PNG's, by the number of channels
_PALETTE = 3
_MOST_CLASSES = 32  # an image of fewer different values is a mask: its classes get colours


def raw_image_shape(
    size: int, height: int | None, width: int | None
) -> tuple[int, int, int] | None:
    """The shape of pixels of one byte per channel, if as many bytes are stored."""
    if not height or not width or height < 0 or width < 0 or height * width > _MOST_PIXELS:
        return None
    channels, rest = divmod(size, height * width)
    return (height, width, channels) if rest == 0 and channels in _COLOUR_TYPES else None


def png_of_pixels(pixels: bytes, shape: tuple[int, int, int]) -> bytes:
    """Pixels as a PNG file; of a mask, whose values are few and small, with a colour per class."""
    height, width, channels = shape
    row = width * channels
    lines = b"".join(b"\0" + pixels[y * row : (y + 1) * row] for y in range(height))
    is_mask = channels == 1 and max(pixels, default=0) < _MOST_CLASSES
    kind = _PALETTE if is_mask else _COLOUR_TYPES[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    palette = _chunk(b"PLTE", _class_colours()) if is_mask else b""
    body = _chunk(b"IDAT", zlib.compress(lines, 1))
    start = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header)
    return start + palette + body + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _class_colours() -> bytes:
    """Of class 0 black; the next ones differ in the bits of their numbers, as PASCAL VOC's do."""
    colours = bytearray()
    for number in range(_MOST_CLASSES):
        for channel in range(3):
            bits = [number >> (3 * level + channel) & 1 for level in range(3)]
            colours.append(sum(bit << (7 - level) for level, bit in enumerate(bits)))
    return bytes(colours)
