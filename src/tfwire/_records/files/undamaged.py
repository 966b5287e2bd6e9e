"""Compressed files as far as they are undamaged, inflated with hardly any use of Python's lock.

isal's GzipFile inflates a piece of any size without that lock. It does not say where in the file
damage is, nor give what it has inflated of the last piece before: whoever wants that reads the file
again, by an InflatedSource.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

from tfwire._base import system
from tfwire._base.native import ffi, lib
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.inflate import InflatedSource, StreamDamage

try:
    _igzip: Any = import_module("isal.igzip")
except ImportError:  # no wheel for this platform
    _igzip = None

_UP_TO_FLAGS = 4  # bytes of a gzip header
# How often what looks like a member may be found, and once more for each so many bytes: each time
# the file is read there again.
_FOUND, _FOUND_EACH = 16, 1 << 22
_BUFFERED = 1 << 20  # more bytes than isal's GzipFile inflates beyond those that are asked for


class UndamagedFile:
    """The decompressed bytes of a regular file.

    Args:
        source: The file, at its beginning; this object closes it.
        name: "GZIP" or "ZLIB".
        checksum: Whether ``crc32c`` will be asked for.
    """

    def __init__(self, source: FileSource, name: str, checksum: bool) -> None:
        self._source = source
        self._input: _GzipInput | None = None
        if name == "GZIP" and _igzip is not None:
            self._input = _GzipInput(source.fd, checksum)
            self._file: Any = _igzip.IGzipFile(fileobj=self._input, mode="rb")
        else:
            self._inflated = InflatedSource(source, name)

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``; b"" at the end.

        Raises:
            Exception: The file is damaged, or may be.
        """
        if self._input is None:
            return self._inflated.read(size)
        self._input.most += size
        piece: bytes = self._file.read(size)
        self._input.most -= size - len(piece)
        return piece

    @property
    def crc32c(self) -> int | None:
        """At the end: the CRC-32C of the file."""
        return self._inflated.crc32c if self._input is None else self._input.crc32c

    def close(self) -> None:
        self._source.close()


class _GzipInput(io.RawIOBase):
    """What isal's GzipFile reads: the file up to a member whose header zlib refuses, isal does not.

    What looks like one may lie within a member: one of 19 million bytes does. Such a header follows
    the size of the content of the member before, or zeros.

    Args:
        fd: The file.
        checksum: Whether ``crc32c`` will be asked for.

    Attributes:
        most: How many bytes isal has inflated, at most.
        crc32c: The CRC-32C of what was read.
    """

    def __init__(self, fd: int, checksum: bool) -> None:
        super().__init__()
        self.most = _BUFFERED
        self.crc32c: int | None = 0 if checksum else None
        self._fd = fd
        self._offset = 0
        self._found = 0  # times

    def readinto(self, buffer: Any) -> int:
        got = system.pread_into(self._fd, buffer, self._offset)
        data = ffi.from_buffer(buffer)
        found = lib.tfw_find_reserved_flags(data, got)
        if found == 0 and got:  # all before it was inflated
            self._found += 1
            if self._follows_a_member() or self._found > _FOUND + self._offset // _FOUND_EACH:
                raise StreamDamage("reserved flags", self._offset)
            found = 1 + lib.tfw_find_reserved_flags(data + 1, got - 1)
        if found < got:
            got = found
        elif got >= _UP_TO_FLAGS:  # the next call looks at the last bytes again
            got -= _UP_TO_FLAGS - 1
        if self.crc32c is not None:
            self.crc32c = lib.tfw_crc32c(self.crc32c, data, got)
        self._offset += got
        return got

    def _follows_a_member(self) -> bool:
        """Whether what precedes may be the size of a member's content."""
        size = system.pread(self._fd, 4, max(0, self._offset - 4))
        return self._offset == 0 or int.from_bytes(size, "little") <= self.most
