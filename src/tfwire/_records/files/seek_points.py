"""Places in a gzip or zlib file from which it inflates, and its content from such a place on.

rapidgzip (extra "gzip") finds them, between blocks of deflate, and nothing of them goes back to it:
zlib, or isal, begins there by itself, with the 32 KiB of content before the place as a dictionary.
Where the file is damaged, the content from the nearest place on just ends: the reader of
inflate.py, from the beginning, says what is wrong and where.

An index keeps the places as a section, little-endian: their number (4 bytes); a row of 20 bytes for
each, with its offset in the content (8), its bit in the file (8) and the bytes of its window (4);
and the windows, packed by zlib. A place without a window needs none.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import struct
import tempfile
import threading
import zlib
from bisect import bisect_right
from importlib import import_module
from typing import Any

import numpy as np

from tfwire._base import system
from tfwire._base.parallel_map import Check
from tfwire._records.files.byte_sources import FileSource, Source
from tfwire._records.files.compression import fast_zlib, window_bits

# Smaller files are inflated from their beginning about as fast.
_LEAST_BYTES = 1 << 20
_PASSED_AT_ONCE = 1 << 26  # of the content; an interrupt is handled between calls
_MOST_POINTS = 1 << 12  # of a file: longer ones have points further apart
_WINDOW_BYTES = 1 << 15
_MOST_PACKED = _WINDOW_BYTES + 64  # what zlib makes of a window that it cannot compress
_COUNT = struct.Struct("<I")
_ROW = np.dtype([("offset", "<u8"), ("bit", "<u8"), ("window", "<u4")])
MOST_BYTES = _COUNT.size + _MOST_POINTS * (_ROW.itemsize + _MOST_PACKED)  # of a section

# What rapidgzip exports begins with a header; then come the bytes of a window, the number of
# points, a row for each, and the windows of those that have one.
_EXPORTED_HEADER, _EXPORTED_COUNTS = 27, struct.Struct("<II")
_EXPORTED_ROW = np.dtype([("byte", "<u8"), ("offset", "<u8"), ("bits", "u1"), ("has_window", "u1")])

_RAW = -15  # zlib's window_bits for a stream without header and checksum
_CHECKSUM_BYTES = {"GZIP": 8, "ZLIB": 4}  # after a stream
_INPUT_BYTES = 1 << 16
_PASSED_OVER = 1 << 18  # bytes of content inflated at a time on the way to an offset
# An empty block of deflate that is not the last, with a table of its own: 91 bits. zlib begins at a
# byte, so 3 * k % 8 of these blocks go before a stream that begins at bit k of a byte.
_EMPTY_BLOCK, _EMPTY_BITS = 0x4D5FF10000000000081C004, 91


class NotReadable(Exception):
    """The content cannot be read on: the file is damaged or was cut, or the place is none."""


class SeekPoints:
    """Places in a compressed file from which it inflates, in their order.

    Args:
        section: Of an index.

    Attributes:
        section: The same.

    Raises:
        ValueError: It is malformed.
    """

    def __init__(self, section: bytes) -> None:
        self.section = section
        count = _COUNT.unpack_from(section)[0] if len(section) >= _COUNT.size else 0
        at = _COUNT.size + count * _ROW.itemsize
        if not 0 < count <= _MOST_POINTS or at > len(section):
            raise ValueError(f"{count} seek points do not fit {len(section)} bytes")
        rows = np.frombuffer(section, _ROW, count, _COUNT.size)
        ends = at + np.cumsum(rows["window"], dtype=np.int64)
        if rows["window"].max() > _MOST_PACKED or ends[-1] != len(section):
            raise ValueError(f"the windows of its seek points do not fit {len(section)} bytes")
        for column in (rows["offset"], rows["bit"]):
            if column[0] == 0 or (column[1:] <= column[:-1]).any():
                raise ValueError("its seek points do not follow each other")
        self._offsets: list[int] = rows["offset"].tolist()
        self._bits: list[int] = rows["bit"].tolist()
        self._ends: list[int] = [at, *ends.tolist()]

    def __len__(self) -> int:
        return len(self._offsets)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeekPoints) and self.section == other.section

    def __reduce__(self) -> Any:
        return SeekPoints, (self.section,)

    def fit(self, content_size: int, file_size: int) -> bool:
        """Whether all of them are in a file of this size."""
        return self._offsets[-1] <= content_size and self._bits[-1] < 8 * file_size

    def before(self, offset: int) -> int:
        """The offset of the last one that is not after an offset of the content; 0: none is."""
        number = bisect_right(self._offsets, offset)
        return self._offsets[number - 1] if number else 0

    def begin(self, offset: int) -> tuple[Any, int]:
        """Begins to inflate at the point of this offset.

        Returns:
            A decompressobj, and the bit of the file where its input begins.

        Raises:
            NotReadable: The window is damaged.
        """
        number = bisect_right(self._offsets, offset) - 1
        packed = self.section[self._ends[number] : self._ends[number + 1]]
        try:
            window = zlib.decompressobj().decompress(packed, _WINDOW_BYTES) if packed else b""
        except zlib.error as error:
            raise NotReadable(f"the window of a seek point is damaged ({error})") from None
        dictionary = {"zdict": window} if window else {}
        return fast_zlib.decompressobj(wbits=_RAW, **dictionary), self._bits[number]


def shifted(data: bytes, skipped: int) -> bytes:
    """Input that begins at a bit of its first byte, as input that begins at a byte."""
    count = 3 * skipped % 8
    bits = count * _EMPTY_BITS
    begin = sum(_EMPTY_BLOCK << _EMPTY_BITS * each for each in range(count))
    begin |= (data[0] >> skipped) << bits
    return begin.to_bytes((bits + 8 - skipped) // 8, "little") + data[1:]


class SeekableContent(Source):
    """The content of a compressed file, which is read from any place on.

    Args:
        source: The file; this object closes it.
        compression: "GZIP" or "ZLIB".
        points: Of the file.
    """

    rewindable = True
    seekable = True

    def __init__(self, source: Source, compression: str, points: SeekPoints) -> None:
        super().__init__()
        self.path = source.path
        self._source = source
        self._compression = compression
        self._points = points
        self._chunk = bytearray(_INPUT_BYTES)
        self._begin_at(0)

    def _begin_at(self, offset: int) -> None:
        """Goes to a point of the content, or to its beginning."""
        self._inflater: Any = None  # None between streams
        self._input = b""
        self._is_partial = offset > 0  # the stream began elsewhere: nothing verifies its checksum
        if not offset:
            self._source.rewind(0)
            return
        self._inflater, bit = self._points.begin(offset)
        self._source.rewind(bit // 8)
        if not self._pull():
            raise NotReadable("the file ends before this place")
        self._input = shifted(self._input, bit % 8)

    def rewind(self, offset: int) -> None:
        self._ahead = b""
        begin = self._points.before(offset)
        self._begin_at(begin)
        while begin < offset:
            piece = self._inflate(min(offset - begin, _PASSED_OVER))
            if not piece:
                raise NotReadable("the content ends before this place")
            begin += len(piece)

    def close(self) -> None:
        self._source.close()

    def _readinto(self, buffer: Any) -> int:
        piece = self._inflate(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _inflate(self, size: int) -> bytes:
        """At most ``size`` bytes; b"" at the end."""
        while self._inflater is not None or self._begin_stream():
            ended = not self._input and not self._pull()
            try:
                piece: bytes = self._inflater.decompress(self._input, size)
            except (zlib.error, fast_zlib.error) as error:
                raise NotReadable(str(error)) from None
            if self._inflater.eof:
                self._end_stream(self._inflater.unused_data)
            else:
                self._input = self._inflater.unconsumed_tail
            if piece:
                return piece
            if ended and self._inflater is not None:
                raise NotReadable("the stream ends too early")
        return b""

    def _begin_stream(self) -> bool:
        """Begins with a whole stream, after any padding with zeros; False at the end."""
        while not (data := self._input.lstrip(b"\0")):
            if not self._pull():
                return False
        self._input = data
        self._inflater = fast_zlib.decompressobj(wbits=window_bits(self._compression))
        return True

    def _end_stream(self, rest: bytes) -> None:
        """Goes on after a stream, which ``rest`` follows."""
        self._inflater, self._input = None, rest
        if self._is_partial:
            left = _CHECKSUM_BYTES[self._compression]
            while len(self._input) < left:
                left -= len(self._input)
                if not self._pull():
                    raise NotReadable("the stream ends too early")
            self._input = self._input[left:]
            self._is_partial = False

    def _pull(self) -> bool:
        """Replaces the input by what follows it; False at the end."""
        got = self._source.readinto(self._chunk)
        self._input = bytes(memoryview(self._chunk)[:got])
        return got > 0


# ---- Finding them --------------------------------------------------------------------------------


def find_points(source: FileSource, content_size: int, checked: Check) -> SeekPoints | None:
    """Finds points in a compressed file, by going over it once more.

    Args:
        source: The file, which was found to be sound.
        content_size: The bytes of its content.
        checked: Called again and again.

    Returns:
        The points, about 4 MiB of content apart; None: there are none, rapidgzip is not installed
        or cannot read the file, or something else has its name by now.
    """
    size = source.size() or 0
    if size < _LEAST_BYTES or not source.path or _rapidgzip() is None:
        return None
    try:
        fd = os.open(source.path, os.O_RDONLY | system.BINARY)  # a position of its own
    except OSError:
        return None
    try:
        if os.path.samestat(os.fstat(fd), os.fstat(source.fd)):
            points = _points_of(fd, content_size, checked)
            return points if points is not None and points.fit(content_size, size) else None
    except (ValueError, RuntimeError, OSError, EOFError, LookupError, ArithmeticError):
        pass  # the index is of use without them
    finally:
        os.close(fd)
    return None


def _rapidgzip() -> Any:
    """The module, imported when it is needed; None: it is not installed."""
    try:
        return import_module("rapidgzip")
    except ImportError:
        return None


def _points_of(fd: int, content_size: int, checked: Check) -> SeekPoints | None:
    with contextlib.closing(_Finder(fd)) as finder, tempfile.TemporaryFile() as exported:
        for offset in range(0, content_size, _PASSED_AT_ONCE):
            checked()
            finder.call("seek", offset)
        if finder.call("seek", 0, os.SEEK_END) != content_size:
            return None
        finder.call("export_index", exported)
        return _imported(exported)


class _Finder:
    """A file of rapidgzip. One that is open when the interpreter ends, in a thread that does not
    go on then, would end the process by a signal.

    Args:
        fd: The compressed file.
    """

    def __init__(self, fd: int) -> None:
        self._pid, self._in_call = os.getpid(), threading.Lock()
        self._file = _rapidgzip().open(fd, parallelization=1)
        atexit.register(self.close)

    def call(self, name: str, *arguments: Any) -> Any:
        with self._in_call:
            return getattr(self._file, name)(*arguments)

    def close(self) -> None:
        atexit.unregister(self.close)
        if self._pid == os.getpid():  # else a thread of the parent uses it
            with self._in_call:
                self._file.close()


def _imported(file: Any) -> SeekPoints | None:
    """The points in an index in the format of indexed_gzip, as rapidgzip exports it."""
    file.seek(_EXPORTED_HEADER)
    width, count = _EXPORTED_COUNTS.unpack(file.read(_EXPORTED_COUNTS.size))
    rows = np.frombuffer(file.read(count * _EXPORTED_ROW.itemsize), _EXPORTED_ROW, count)
    places = file.tell() + width * (np.cumsum(rows["has_window"], dtype=np.int64) - 1)
    # The first is the beginning, the last the end. An empty stream moves nothing.
    numbers = 1 + np.flatnonzero(rows["offset"][1:-1] > rows["offset"][:-2])
    numbers = numbers[:: -(-len(numbers) // _MOST_POINTS) or 1]
    found, windows = np.zeros(len(numbers), _ROW), []
    for at, number in enumerate(numbers.tolist()):
        packed, row = b"", rows[number]
        if row["has_window"]:
            file.seek(int(places[number]))
            packed = zlib.compress(file.read(width))
        found[at] = row["offset"], 8 * int(row["byte"]) - int(row["bits"]), len(packed)
        windows.append(packed)
    if not windows:
        return None
    return SeekPoints(b"".join([_COUNT.pack(len(windows)), found.tobytes(), *windows]))
