"""Compressed files with seek points that are known, made by zlib alone."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

WINDOW = 1 << 15
BITS = {"GZIP": 31, "ZLIB": 15}
HEADER = {"GZIP": 10, "ZLIB": 2}
FLUSHES = {
    "partial": zlib.Z_PARTIAL_FLUSH,
    "sync": zlib.Z_SYNC_FLUSH,
    "full": zlib.Z_FULL_FLUSH,
    "block": zlib.Z_BLOCK,
}


class Seekable(NamedTuple):
    """A compressed file.

    Attributes:
        data: Its bytes.
        points: Of each the offset in the content, the bit in the file, and the content before it.
    """

    data: bytes
    points: list[tuple[int, int, bytes]]

    @property
    def section(self) -> bytes:
        return section(self.points)


def section(points):
    """The section of an index with these points, as docs/internals/index-format.md says."""
    packed = [zlib.compress(window) if window else b"" for _, _, window in points]
    rows = [
        struct.pack("<QQI", offset, bit, len(window))
        for (offset, bit, _), window in zip(points, packed, strict=True)
    ]
    return struct.pack("<I", len(points)) + b"".join(rows) + b"".join(packed)


def compress(content: bytes, cuts: list[tuple[int, str]], kind="GZIP", level=6, padding=0):
    """Compresses content, with points where it is cut.

    Args:
        content: The content.
        cuts: Pairs of an offset, increasing, and a flush, or "stream": a new one begins there.
        kind: "GZIP" or "ZLIB".
        level: Of zlib.
        padding: Zeros between streams.
    """
    data, begin, flushed = bytearray(), 0, []
    deflater = zlib.compressobj(level, zlib.DEFLATED, BITS[kind])
    for offset, how in [*cuts, (len(content), "stream")]:
        data += deflater.compress(content[begin:offset])
        begin = offset
        if how != "stream":
            data += deflater.flush(FLUSHES[how])
            flushed.append((offset, 8 * len(data), None if how != "full" else b""))
        else:
            data += deflater.flush()
            if offset < len(content):
                data += bytes(padding)
                deflater = zlib.compressobj(level, zlib.DEFLATED, BITS[kind])
                flushed.append((offset, 8 * (len(data) + HEADER[kind]), b""))
    points = []
    for offset, bit, window in flushed:
        if window is None:
            window = content[max(0, offset - WINDOW) : offset]
        for skipped in range(8):
            if begins(bytes(data), bit + skipped, window, content[offset : offset + 5000]):
                points.append((offset, bit + skipped, window))
                break
        # zlib may begin a block of the whole content only after what was flushed
    return Seekable(bytes(data), points)


def begins(data, bit, window, expected):
    """Whether content begins at a bit of deflate's."""
    shifted = int.from_bytes(data[bit // 8 :][: len(expected) + 1000], "little") >> bit % 8
    inflater = zlib.decompressobj(-15, zdict=window)
    try:
        found = inflater.decompress(shifted.to_bytes(len(expected) + 1000, "little"), len(expected))
    except zlib.error:
        return False
    return bool(expected) and found == expected[: len(found)] and len(found) > len(expected) // 2
