"""Sinks take bytes in order. Here: file objects, and compression on the way to another sink."""

from __future__ import annotations

import errno
import io
import zlib
from collections.abc import Sequence
from typing import Any

from tfwire._core import lib
from tfwire._records.compression import Compressor

__all__ = ["DeflatedSink", "ObjectSink", "Sink"]

_PIECE = 1 << 24  # bytes given to a file object at once


class Sink:
    """Takes bytes in order. A sink whose ``write`` failed can only be closed or discarded.

    Attributes:
        crc32c: CRC-32C of the file so far where that is not the one of the bytes taken, else None.
    """

    crc32c: int | None = None

    def write(self, buffers: Sequence[Any]) -> None:
        """Writes all bytes of all buffers.

        Raises:
            OSError: With the file's name.
        """
        raise NotImplementedError

    def salvage(self, ends: Sequence[int]) -> int:
        """After a write that failed: keeps what is worth keeping of it, where the sink is a file.

        Args:
            ends: Ascending numbers of bytes, from 0, of which the largest that reached the file is
                kept. Anything after it is cut off.

        Returns:
            How many bytes of that write are kept; 0 where the sink cannot tell.
        """
        return 0

    def flush(self) -> None:
        """Makes what was written visible to readers."""

    def close(self) -> None:
        """Completes the output and releases what was opened."""

    def discard(self) -> None:
        """Releases what was opened. Unlike ``close`` it does not complete the output: an atomic
        file leaves no trace, a compressed stream stays cut."""

    def abandon(self) -> None:
        """Lets go of the output in a forked process: the other one goes on writing."""


class ObjectSink(Sink):
    """A file object that was opened for writing bytes.

    Args:
        file: The object.
        owned: Whether to close it at the end.

    Raises:
        TypeError: The file was opened in text mode.
    """

    def __init__(self, file: Any, owned: bool = False) -> None:
        if isinstance(file, io.TextIOBase):
            raise TypeError("the file object is in text mode; open it in binary mode")
        self._file = file
        self._owned = owned

    def write(self, buffers: Sequence[Any]) -> None:
        for buffer in buffers:
            view = memoryview(buffer)
            while len(view):
                view = view[self._write(bytes(view[:_PIECE])) :]  # the object may keep the bytes

    def _write(self, data: bytes) -> int:
        """Writes some of the bytes; how many."""
        written = self._file.write(data)
        if written is None:
            if isinstance(self._file, io.RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "the file object takes no data yet")
            return len(data)
        if not 0 < written <= len(data):
            raise OSError(f"the file object took {written} of {len(data)} bytes")
        return int(written)

    def flush(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()

    def close(self) -> None:
        if self._owned:
            self._file.close()
        else:
            self.flush()

    def discard(self) -> None:
        if self._owned:
            self._file.close()


class DeflatedSink(Sink):
    """Compresses into another sink.

    Args:
        sink: Takes the compressed bytes; this object takes it over.
        compressor: Compresses what is written.
        crc32c: The CRC-32C of what the sink's file holds already.
    """

    def __init__(self, sink: Sink, compressor: Compressor, crc32c: int = 0) -> None:
        self.crc32c: int = crc32c
        self._sink = sink
        self._deflater, self._flush_mode = compressor

    def write(self, buffers: Sequence[Any]) -> None:
        pieces = [self._deflater.compress(buffer) for buffer in buffers]
        if self._flush_mode != zlib.Z_NO_FLUSH:
            pieces.append(self._deflater.flush(self._flush_mode))
        self._pass_on([piece for piece in pieces if piece])

    def _pass_on(self, pieces: list[bytes]) -> None:
        try:
            self._sink.write(pieces)
        except BaseException:  # what reached the file may end with whole records
            data = b"".join(pieces)
            self._add(data[: self._sink.salvage(range(len(data) + 1))])
            raise
        for piece in pieces:
            self._add(piece)

    def _add(self, data: bytes) -> None:
        self.crc32c = lib.tfw_crc32c(self.crc32c, data, len(data))

    def flush(self) -> None:
        self._pass_on([self._deflater.flush(zlib.Z_SYNC_FLUSH)])
        self._sink.flush()

    def close(self) -> None:
        try:
            self._pass_on([self._deflater.flush(zlib.Z_FINISH)])
        except BaseException:
            self._sink.discard()
            raise
        self._sink.close()

    def discard(self) -> None:
        self._sink.discard()

    def abandon(self) -> None:
        self._sink.abandon()
