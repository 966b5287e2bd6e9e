"""Searches of records for a value, for those who show them.

A ``BatchFinder`` looks into the batches of a ``BatchReader``, which reads as ``make_options`` says,
in C and without the GIL: threads that read a file each find what they want as fast as they read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tfwire._base.native import ffi, lib
from tfwire._records.reading.batch_reader import BatchReader as BatchReader
from tfwire._records.reading.native_batches import record_position
from tfwire._records.reading.options import make_options as make_options


class FoundRecord(NamedTuple):
    """A record that may hold what is wanted.

    Attributes:
        number, offset: As of a RecordPosition.
        payload: Its bytes.
    """

    number: int
    offset: int
    payload: bytes


class BatchFinder:
    """What is wanted: a feature, or any, that is a number or holds a part.

    Args:
        name: The key of a feature or a feature list; None: any, and records that have none.
        is_list: The name is that of a feature list.
        part: Of a string; empty: every value will do, and none.
        integer: What an int64 may equal, too; None: nothing.
        number: What a float may equal, too; None: nothing.
    """

    def __init__(
        self,
        name: bytes | None,
        is_list: bool,
        part: bytes,
        integer: int | None = None,
        number: float | None = None,
    ) -> None:
        self._held = [ffi.from_buffer(each) for each in (name or b"", part)]
        wanted = {
            "name": ffi.NULL if name is None else self._held[0],
            "name_len": len(name or b""),
            "part": self._held[1],
            "part_len": len(part),
            "integer": integer or 0,
            "number": number or 0.0,
            "has_integer": integer is not None,
            "has_number": number is not None,
            "is_list": is_list,
        }
        self._wanted = ffi.new("tfw_wanted *", wanted)

    def find(self, batch: Any) -> list[FoundRecord]:
        """The records of a batch that may hold it: those that do, and a few that are not
        well-formed, or have a key twice."""
        out = ffi.new("uint32_t[]", batch.count)
        count = lib.tfw_find(
            batch.data, batch.data_len, batch.spans, batch.count, self._wanted, out
        )
        return [_record(batch, i) for i in ffi.unpack(out, count)] if count else []


def _record(batch: Any, index: int) -> FoundRecord:
    span = batch.spans[index]
    payload = bytes(ffi.buffer(batch.data + span.offset, span.length))
    return FoundRecord(*record_position(batch, index), payload)
