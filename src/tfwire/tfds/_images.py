"""Images as TFDS decodes them: uint8, uint16, and float32 in the bytes of four channels."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire import images

Array = np.ndarray[Any, Any]

_CHANNELS_OF_COLOUR_TYPE = {0: 1, 2: 3, 4: 2, 6: 4}
_JPEG_OPTIONS = images.JpegOptions(fast=True, fancy=True)  # TensorFlow's default
_PNG_HEADER = 33  # bytes, with the signature
_MOST_PIXELS = 178_956_970  # as of other images, by Pillow
_PNG = b"\x89PNG\r\n\x1a\n"


def decoded_image(contents: bytes, shape: Sequence[int], dtype: Any) -> Array:
    """The pixels of an image.

    Args:
        shape: As declared; -1: unknown. A GIF has frames first.
        dtype: uint8, uint16 or float32.

    Raises:
        ValueError: It cannot be decoded, or has another shape.
    """
    if dtype == np.float32:  # each in the four bytes of a pixel
        pixels = _of_8_bits(contents, [*shape[:-1], 4])
        return np.ascontiguousarray(pixels, np.uint8).view(np.float32)
    pixels = _of_16_bits(contents, shape) if dtype == np.uint16 else _of_8_bits(contents, shape)
    sizes = zip(shape, pixels.shape, strict=False)
    if len(shape) != pixels.ndim or any(a not in (-1, 0, b) for a, b in sizes):
        raise ValueError(f"expected an image of shape {_shown(shape)}, found {pixels.shape}")
    return pixels


def _shown(shape: Sequence[int]) -> str:
    return f"({', '.join('?' if size < 0 else str(size) for size in shape)})"


def _of_8_bits(contents: bytes, shape: Sequence[int]) -> Array:
    channels: Any = max(shape[-1], 0)
    if channels == 2:  # grey with alpha, which no other format has
        channels = 0
    return images.decode_with(contents, channels, len(shape) == 4, _JPEG_OPTIONS)


def _of_16_bits(contents: bytes, shape: Sequence[int]) -> Array:
    """16 bits of a PNG, which Pillow cuts to 8 where there are several channels."""
    if not contents.startswith(_PNG) or contents[24:25] != b"\x10":
        return _of_8_bits(contents, shape).astype(np.uint16) * 257
    pixels = _sixteen_bit_png(contents)
    channels, wanted = pixels.shape[2], max(shape[-1], 0) or pixels.shape[2]
    if channels == wanted:
        return pixels
    if channels in (2, 4) and wanted in (1, 3):
        pixels, channels = pixels[:, :, :-1], channels - 1
    if channels == wanted:
        return pixels
    if channels == 1 and wanted == 3:
        return np.repeat(pixels, 3, axis=2)
    raise ValueError(f"an image of 16 bits and {channels} channels is not read as of {wanted}")


def _sixteen_bit_png(contents: bytes) -> Array:
    """The pixels of a PNG of 16 bits."""
    if len(contents) < _PNG_HEADER:
        raise ValueError(f"a PNG of {len(contents)} bytes is truncated")
    width, height = (int.from_bytes(contents[at : at + 4], "big") for at in (16, 20))
    colour, interlaced = contents[25], contents[28]
    if colour not in _CHANNELS_OF_COLOUR_TYPE:
        raise ValueError(f"a PNG of 16 bits cannot have the colour type {colour}")
    if interlaced:
        raise ValueError("a PNG of 16 bits that is interlaced is not read")
    if width * height > _MOST_PIXELS:
        raise ValueError(f"a PNG of {width} x {height} pixels has more than {_MOST_PIXELS}")
    channels = _CHANNELS_OF_COLOUR_TYPE[colour]
    line = width * channels * 2
    decompressor = zlib.decompressobj()
    data = decompressor.decompress(b"".join(_image_data(contents)), height * (line + 1) + 1)
    if len(data) != height * (line + 1):
        raise ValueError(f"a PNG of {height * (line + 1)} bytes has {len(data)}")
    rows = np.frombuffer(data, np.uint8).reshape(height, line + 1)
    pixels, above = np.empty((height, line), np.uint8), np.zeros(line, np.uint8)
    for number, row in enumerate(rows):
        above = pixels[number] = _unfiltered(int(row[0]), row[1:], above, 2 * channels)
    return pixels.view(">u2").astype(np.uint16).reshape(height, width, channels)


def _image_data(contents: bytes) -> list[bytes]:
    """The IDAT chunks of a PNG."""
    found, at = [], len(_PNG)
    while at + 8 <= len(contents):
        size, kind = int.from_bytes(contents[at : at + 4], "big"), contents[at + 4 : at + 8]
        if kind == b"IDAT":
            found.append(contents[at + 8 : at + 8 + size])
        at += size + 12
    return found


def _unfiltered(kind: int, row: Array, above: Array, step: int) -> Array:
    """A row of a PNG before its filter; step is the bytes of a pixel."""
    if kind == 0:
        return row
    if kind == 2:
        return row + above
    if kind == 1:
        pixels: Array = row.reshape(-1, step)
        return np.cumsum(pixels, axis=0, dtype=np.uint8).reshape(-1)
    if kind > 4:
        raise ValueError(f"a row of a PNG has the filter {kind}")
    predict = _mean if kind == 3 else _paeth
    found, over = [0] * step, [0] * step + above.tolist()
    for at, value in enumerate(row.tolist()):
        found.append((value + predict(found[at], over[at + step], over[at])) & 255)
    return np.array(found[step:], np.uint8)


def _mean(left: int, up: int, corner: int) -> int:
    return (left + up) // 2


def _paeth(left: int, up: int, corner: int) -> int:
    """Which of the three is nearest to left + up - corner."""
    to_left, to_up = abs(up - corner), abs(left - corner)
    to_corner = abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner
