"""What the arguments of a writer say: where the records go, and how they are compressed."""

from __future__ import annotations

import os
from typing import Any

from tfwire._arguments import boolean
from tfwire._records.compression import compression_name, compressor
from tfwire._records.file_sinks import DraftSink, open_to_append, open_to_write
from tfwire._records.sinks import DeflatedSink, ObjectSink, Sink
from tfwire._records.sources import is_url, open_url

__all__ = ["open_sink"]


def open_sink(
    path: Any, options: Any, level: int | None, append: bool, repair_tail: bool, atomic: bool
) -> tuple[Sink, int]:
    """Opens what the arguments of a TFRecordWriter say. All are checked before anything is opened;
    ``path`` may also be a Sink.

    Returns:
        The sink, and the CRC-32C of what the file holds already.
    """
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    append = boolean("append", append)
    repair_tail = boolean("repair_tail", repair_tail)
    atomic = boolean("atomic", atomic)
    _check(path, append, repair_tail, atomic)
    compressed = compressor(options, level)
    crc32c = 0
    sink: Sink
    if append:
        sink, crc32c = open_to_append(path, compression_name(options), repair_tail)
    else:
        sink = _open(path, atomic)
    if compressed is not None:
        sink = DeflatedSink(sink, compressed, crc32c)
    return sink, crc32c


def _check(path: Any, append: bool, repair_tail: bool, atomic: bool) -> None:
    """Refuses arguments that exclude each other, and what no records can be written to."""
    is_path = isinstance(path, (str, os.PathLike))
    if append and atomic:
        raise ValueError("append and atomic exclude each other: a file is continued in place")
    if repair_tail and not append:
        raise ValueError("repair_tail is for append=True")
    if not is_path and not isinstance(path, Sink) and not hasattr(path, "write"):
        raise TypeError(
            "path must be a str, an os.PathLike or a file object with write, found "
            f"{type(path).__name__}"
        )
    if (append or atomic) and (not is_path or is_url(path)):
        raise ValueError("append and atomic need the path of a file")


def _open(path: Any, atomic: bool) -> Sink:
    if isinstance(path, Sink):
        return path
    if not isinstance(path, (str, os.PathLike)):
        return ObjectSink(path)
    if is_url(path):
        return ObjectSink(open_url(str(path), "wb"), owned=True)
    return DraftSink(path) if atomic else open_to_write(path)
