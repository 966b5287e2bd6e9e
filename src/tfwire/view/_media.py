"""What byte strings hold: images and sounds by their first bytes, pixels that are stored raw.

Nothing is decoded here. A browser decodes it, after the size that the header declares was checked.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any, NamedTuple

import numpy as np

from tfwire.view._budget import Allowance

_MOST_SEGMENTS = 300  # of a JPEG before its size: a profile of colors takes up to 255
_WAV_HEADER = 44
_FIELDS_LOOKED_AT = 1000  # of a record that may be a protocol buffer
_LARGEST_FIELD = 1000  # number; those of real messages are small
_SHOWN_FIELDS = 12


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
    def is_sound(self) -> bool:
        return self.type == "audio/wav"

    @property
    def num_pixels(self) -> int:
        return self.width * self.height

    def is_shown(self, pixels: Allowance, seen: int = 0) -> bool:
        """Whether a browser can show it without harm: a sound, or an image of known and moderate
        size, which is spent; but not if it takes the place of one of ``seen`` pixels."""
        size = self.num_pixels
        return self.is_sound or 0 < size <= seen or (size > 0 and pixels.take(size))

    @property
    def title(self) -> str:
        name = self.type.partition("/")[2].upper()
        return f"{name} {self.width} x {self.height}" if self.width else name


def find_media(contents: bytes) -> Media | None:
    """The kind of image or sound that bytes begin as; None for all others, such as SVG."""
    if contents.startswith(_PNG_MAGIC) and contents[12:16] == b"IHDR":
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
    for _ in range(_MOST_SEGMENTS):
        if contents[at : at + 1] != b"\xff" or at + 9 > len(contents):
            break
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


def likely_content(record: bytes) -> str | None:
    """What a record that is not an Example may be: an image, a sound or another protocol buffer;
    None if it looks like none of them."""
    media = find_media(record)
    if media is not None:
        return media.title
    numbers = _field_numbers(record, _FIELDS_LOOKED_AT)
    if not numbers or not 0 < numbers[0] <= numbers[-1] <= _LARGEST_FIELD:  # by chance
        return None
    shown = ", ".join(map(str, numbers[:_SHOWN_FIELDS]))
    more = ", ..." if len(numbers) > _SHOWN_FIELDS else ""
    return f"another protocol buffer, with fields {shown}{more}"


def data_uri(media: Media, contents: bytes) -> str:
    return f"data:{media.type};base64,{b64encode(contents).decode('ascii')}"


# ---- Pixels that are stored raw -----------------------------------------------------------------

_COLOR_TYPES = {1: 0, 3: 2, 4: 6}  # PNG's, by the number of channels
_PALETTE = 3
_MOST_CLASSES = 32  # an image of smaller values is a mask: its classes get colors
_VOID = 255  # in masks, pixels of no known class
# The effort of looking for classes, in steps of Python: that of a line, of which some filters take
# one more for each pixel, and how many pixels take one otherwise.
_EFFORT_OF_LINE = 32
_PIXELS_AT_ONCE = 16
_MOST_CHUNKS = 1000
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
Row = np.ndarray[Any, np.dtype[np.uint8]]


def raw_image_shape(
    size: int, height: int | None, width: int | None
) -> tuple[int, int, int] | None:
    """The shape of pixels of one byte per channel, if as many bytes are stored."""
    if not height or not width or height < 0 or width < 0:
        return None
    channels, rest = divmod(size, height * width)
    return (height, width, channels) if rest == 0 and channels in _COLOR_TYPES else None


def png_of_pixels(pixels: bytes, shape: tuple[int, int, int]) -> bytes:
    """Pixels as a PNG file; of a mask, whose values are few and small, with a color per class."""
    height, width, channels = shape
    values = np.frombuffer(pixels, np.uint8).reshape(height, width * channels)
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each after its filter, which is 0
    lines[:, 1:] = values
    is_mask = channels == 1 and int(values.max(initial=0)) < _MOST_CLASSES
    kind = _PALETTE if is_mask else _COLOR_TYPES[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    palette = _chunk(b"PLTE", _class_colors()) if is_mask else b""
    body = _chunk(b"IDAT", zlib.compress(lines.data, 1))
    start = _PNG_MAGIC + _chunk(b"IHDR", header)
    return start + palette + body + _chunk(b"IEND", b"")


def colored_mask(png: bytes, effort: Allowance) -> bytes:
    """A PNG file of 8-bit grays, or with a palette of grays, with a color per class if it is a
    mask; another file as it is.

    The pixels are not written anew: a palette in place of grays makes the image.

    Args:
        png: The file.
        effort: Of looking at its pixels. A file that takes more than there is is left as it is.
    """
    found = _gray_chunks(png)
    if found is None:
        return png
    width, height, chunks = found
    if not effort.take(height * (_EFFORT_OF_LINE + width // _PIXELS_AT_ONCE)):
        return png
    data = b"".join(data for name, data in chunks if name == b"IDAT")
    if not _is_mask(data, width, height, effort):
        return png
    header = struct.pack(">IIBBBBB", width, height, 8, _PALETTE, 0, 0, 0)
    head = _chunk(b"IHDR", header) + _chunk(b"PLTE", _class_colors(with_void=True))
    return _PNG_MAGIC + head + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _gray_chunks(png: bytes) -> tuple[int, int, list[tuple[bytes, bytes]]] | None:
    """Width, height and chunks of a PNG file of 8-bit grays, not interlaced."""
    chunks: list[tuple[bytes, bytes]] = []
    at = len(_PNG_MAGIC)
    if not png.startswith(_PNG_MAGIC) or len(png) < 33 or png[24] != 8 or png[28] != 0:
        return None
    width, height = _big_endian(png[16:24])
    if png[25] not in (0, _PALETTE) or not width * height:
        return None
    while at + 12 <= len(png):
        if len(chunks) == _MOST_CHUNKS:
            return None
        length = int.from_bytes(png[at : at + 4], "big")
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if name == b"tRNS" or (name == b"PLTE" and not _are_grays(data)):
            return None
        chunks.append((name, data))
        at += 12 + length
    return width, height, chunks


def _are_grays(palette: bytes) -> bool:
    """Whether the colors of a palette are the numbers of its entries, as without one."""
    entries = palette[: 3 * _MOST_CLASSES]
    return all(color == i // 3 for i, color in enumerate(entries))


def _is_mask(data: bytes, width: int, height: int, effort: Allowance) -> bool:
    """Whether all pixels are classes: small numbers, or 255 where nothing is known."""
    inflate = zlib.decompressobj()
    row = np.zeros(width, np.uint8)
    highest = 0
    try:
        lines = inflate.decompress(data, (width + 1) * height)
        for begin in range(0, len(lines), width + 1):
            line = np.frombuffer(lines, np.uint8, width, begin + 1)
            if lines[begin] in _FILTERS_BY_PIXEL and not effort.take(width):
                return False
            row = _unfiltered(lines[begin], line, row)
            classes = row[row != _VOID]
            highest = max(highest, int(classes.max(initial=0)))
            if highest >= _MOST_CLASSES:
                return False
    except (zlib.error, ValueError):
        return False
    return len(lines) == (width + 1) * height and highest > 0


def _unfiltered(kind: int, line: Row, above: Row) -> Row:
    """The pixels of a line, whose filter stored differences to its neighbors."""
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line, dtype=np.uint8)
    if kind == 2:
        return line + above
    predicted = _FILTERS_BY_PIXEL.get(kind)
    if predicted is None:
        raise ValueError("no such filter")
    left = corner = 0
    pixels = bytearray()
    for difference, up in zip(line.tolist(), above.tolist(), strict=True):
        left = (difference + predicted(left, up, corner)) & 0xFF
        corner = up
        pixels.append(left)
    return np.frombuffer(bytes(pixels), np.uint8)


def _average(left: int, up: int, _: int) -> int:
    return (left + up) // 2


def _paeth(left: int, up: int, corner: int) -> int:
    """The neighbor that is nearest to left + up - corner."""
    if up == corner:
        return left
    if left == corner:
        return up
    expected = left + up - corner
    return min((left, up, corner), key=lambda neighbor: abs(expected - neighbor))


_FILTERS_BY_PIXEL = {3: _average, 4: _paeth}  # the others take a line at once


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _class_colors(*, with_void: bool = False) -> bytes:
    """Of class 0 black; the next ones differ in the bits of their numbers, as PASCAL VOC's do.

    Args:
        with_void: Adds light gray for the number 255.
    """
    colors = bytearray()
    for number in range(_MOST_CLASSES):
        for channel in range(3):
            bits = [number >> (3 * level + channel) & 1 for level in range(3)]
            colors.append(sum(bit << (7 - level) for level, bit in enumerate(bits)))
    if with_void:
        colors += bytes(3 * (_VOID - _MOST_CLASSES)) + b"\xe0\xe0\xc0"
    return bytes(colors)


# ---- The fields of a message, of protobuf's wire format -----------------------------------------


def _field_numbers(data: bytes, most: int) -> list[int]:
    """The numbers of the first ``most`` fields of a message of any type, sorted; none if the bytes
    read for them are not a message. protobuf's UnknownFieldSet makes objects of all
    fields: 100 bytes of memory for each byte.
    """
    numbers, at = set(), 0
    try:
        for _ in range(most):
            if at == len(data):
                break
            tag, at = _varint(data, at)
            numbers.add(tag >> 3)
            at = _after_value(data, at, tag & 7)
    except ValueError:
        return []
    return sorted(numbers)


def _inside(at: int, end: int) -> int:
    if at > end:
        raise ValueError("a value without an end")
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    raise ValueError("a varint without an end")


def _after_value(data: bytes, at: int, wire_type: int) -> int:
    """Where the value of a field ends."""
    if wire_type == 0:
        return _varint(data, at)[1]
    if wire_type == 2:
        length, at = _varint(data, at)
        at += length
    else:
        at += {1: 8, 5: 4}.get(wire_type, len(data) + 1)  # groups are long out of use
    return _inside(at, len(data))
