"""The sink of Beam: records in files that appear when all of them are written."""

from __future__ import annotations

from typing import Any

from apache_beam.coders import BytesCoder
from apache_beam.io.filebasedsink import FileBasedSink
from apache_beam.io.filesystems import FileSystems

from tfwire._interface.files import FRAME, Packer, as_record

# Bytes of records that are collected, and then framed by one call of C.
_COLLECTED_BYTES = 1 << 18


class _ShardFile:
    """A temporary file of Beam, and the records written to it. One that is dropped without
    ``close``, because its bundle failed, needs no more.

    Attributes:
        bytes_written: Bytes of the records with their frames, before they are compressed.
    """

    def __init__(self, file: Any) -> None:
        self.bytes_written = 0
        self._file = file
        self._packer = Packer()
        self._collected: list[bytes] = []
        self._room = _COLLECTED_BYTES

    def write(self, value: Any) -> None:
        record = as_record(value)
        self._collected.append(record)
        self.bytes_written += len(record) + FRAME
        self._room -= len(record) + FRAME
        if self._room < 0:
            self._write_collected()

    def _write_collected(self) -> None:
        records, self._collected, self._room = self._collected, [], _COLLECTED_BYTES
        for framed in self._packer.framed(records):
            self._file.write(framed)

    def close(self) -> None:
        try:
            self._write_collected()
        finally:
            self._file.close()


class TFRecordSink(FileBasedSink):
    """Writes records. The arguments are those of Beam's sinks of files."""

    def open(self, temp_path: str) -> _ShardFile:
        file = FileSystems.create(temp_path, self.mime_type, self.compression_type)
        self.byte_counter = _ShardFile(file)  # Beam compares it with max_bytes_per_shard
        return self.byte_counter

    def write_record(self, file_handle: _ShardFile, value: Any) -> None:
        if type(self.coder) is not BytesCoder:
            value = self.coder.encode(value)
        file_handle.write(value)
