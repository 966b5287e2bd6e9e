"""DeflatedSink: compresses what is written to another sink."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from tfwire._base.native import lib
from tfwire._records.compression import Compressor
from tfwire._records.sinks import Sink

__all__ = ["DeflatedSink"]


class DeflatedSink(Sink):
    """Compresses into another sink: what is written, as one stream; members, as such.

    Args:
        sink: Takes the compressed bytes. It is closed with this sink.
        compressor: Compresses what is written.
        crc32c: The CRC-32C of what the sink's file already holds.
    """

    def __init__(self, sink: Sink, compressor: Compressor, crc32c: int = 0) -> None:
        self.crc32c: int = crc32c
        self._sink = sink
        self._deflater, self._flush_mode, self._new_member = compressor
        self._begun = False  # whether the stream holds anything
        self._has_members = False

    def write(self, buffers: Sequence[Any]) -> None:
        self._begun = True
        pieces = [self._deflater.compress(buffer) for buffer in buffers]
        if self._flush_mode != zlib.Z_NO_FLUSH:
            pieces.append(self._deflater.flush(self._flush_mode))
        self._write_compressed([piece for piece in pieces if piece])

    def member(self, data: Any) -> bytes | None:
        if self._new_member is None:
            return None
        deflater = self._new_member()
        return b"".join([deflater.compress(data), deflater.flush()])

    def write_member(self, member: bytes) -> None:
        assert self._new_member is not None
        pieces = [member]
        if self._begun:
            pieces.insert(0, self._deflater.flush(zlib.Z_FINISH))
            self._deflater, self._begun = self._new_member(), False
        self._has_members = True
        self._write_compressed(pieces)

    def _write_compressed(self, pieces: list[bytes]) -> None:
        try:
            self._sink.write(pieces)
        except BaseException:  # whole records may have reached the file
            data = b"".join(pieces)
            self._add(data[: self._sink.salvage(range(len(data) + 1))])
            raise
        for piece in pieces:
            self._add(piece)

    def _add(self, data: bytes) -> None:
        self.crc32c = lib.tfw_crc32c(self.crc32c, data, len(data))

    def flush(self) -> None:
        self._begun = True
        self._write_compressed([self._deflater.flush(zlib.Z_SYNC_FLUSH)])
        self._sink.flush()

    def close(self) -> None:
        try:
            if self._begun or not self._has_members:
                self._write_compressed([self._deflater.flush(zlib.Z_FINISH)])
        except BaseException:
            self._sink.discard()
            raise
        self._sink.close()

    def discard(self) -> None:
        self._sink.discard()

    def abandon(self) -> None:
        self._sink.abandon()
