"""Columns into C: one ``tfw_input`` per feature, blocks of encoded records back."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._core import check, ffi, lib, new_error, text
from tfwire._examples.normalize import Array, Name, as_float32, as_int64, pack_strings, show

__all__ = [
    "FRAME_ROOM",
    "STRING_ROOM",
    "Block",
    "Buffer",
    "Column",
    "encode_blocks",
    "encode_whole",
    "make_column",
    "native_inputs",
]

# A block, and the objects or file pages made of it, should stay in the second level of the cache.
BLOCK_SIZE = 1 << 18
_RECORDS_PER_CALL = 1 << 13

# Room for what makes records of a file, or bytes objects, of encoded records where they lie.
FRAME_ROOM = (lib.TFW_HEADER_SIZE, lib.TFW_FOOTER_SIZE)
STRING_ROOM = (lib.TFW_PICKLE_ROOM, 0)


class Column(NamedTuple):
    """One feature of many records, as tfw_input describes it.

    Attributes:
        kind: TFW_BYTES, TFW_FLOAT or TFW_INT64.
        values: int64 or float32 array of rank 1, or the bytes of all strings.
        per_record: Values per record where ``splits`` is None.
        offsets: int64, one more than strings: where they lie.
        splits: int64, cells + 1: where the values of each record (each step) lie.
        steps: int64, records + 1: where the steps of each record lie; feature lists only.
        presence: uint8 per record, or None when all have the feature.
    """

    kind: int
    values: Any
    per_record: int = 1
    offsets: Array | None = None
    splits: Array | None = None
    steps: Array | None = None
    presence: Array | None = None


def make_column(kind: int, values: Any, name: Name, **layout: Any) -> Column:
    """A column of flat values; a kind of NONE has none.

    layout: Further fields.
    """
    if kind == lib.TFW_BYTES:
        data, offsets = pack_strings(values, name)
        return Column(kind, data, offsets=offsets, **layout)
    if kind == lib.TFW_FLOAT:
        values = as_float32(values, name)
    else:
        kind, values = lib.TFW_INT64, as_int64(values, name)
    return Column(kind, values, **layout)


def native_inputs(columns: Sequence[tuple[bytes, Column]]) -> tuple[Any, list[Any]]:
    """A ``tfw_input[]`` of named columns, and what must be kept alive while it is used.

    All sizes are those of the memory that is pinned: an object of Python's, and what another
    thread does to it, may say otherwise.
    """
    inputs = ffi.new("tfw_input[]", len(columns))
    keep: list[Any] = []

    def pin(ctype: str, buffer: Any) -> tuple[Any, int]:
        if buffer is None:
            return ffi.NULL, 0
        pointer = ffi.from_buffer(ctype, buffer)
        keep.append(pointer)
        return pointer, len(pointer)

    for entry, (name, column) in zip(inputs, columns, strict=True):
        entry.name, entry.name_len = pin("char[]", name)
        entry.kind = column.kind
        entry.count = column.per_record
        entry.values, entry.byte_count = pin("uint8_t[]", column.values)
        entry.offsets, num_offsets = pin("int64_t[]", column.offsets)
        entry.value_count = _num_values(column.kind, entry.byte_count, num_offsets)
        entry.splits, num_splits = pin("int64_t[]", column.splits)
        entry.steps, _ = pin("int64_t[]", column.steps)
        entry.presence, _ = pin("uint8_t[]", column.presence)
        if column.splits is not None:
            entry.cell_count = max(num_splits - 1, 0)
        elif column.steps is not None:
            entry.cell_count = int(column.steps[-1])
    return inputs, keep


def _num_values(kind: int, byte_count: int, num_offsets: int) -> int:
    if kind == lib.TFW_BYTES:
        return max(num_offsets - 1, 0)
    return byte_count // (8 if kind == lib.TFW_INT64 else 4)


class Buffer:
    """Memory for blocks.

    Attributes:
        memory: uint8 of rank 1, with room for the ends of a pickle around what is written.
        out: What is between these, as ``uint8_t[]``.
    """

    def __init__(self, size: int) -> None:
        self.memory = np.empty(lib.TFW_PICKLE_HEAD + size + lib.TFW_PICKLE_TAIL, np.uint8)
        whole = ffi.from_buffer("uint8_t[]", self.memory)
        self._whole = whole  # a slice does not keep it alive
        self.out = whole[lib.TFW_PICKLE_HEAD : lib.TFW_PICKLE_HEAD + size]


class Block(NamedTuple):
    """Encoded records, valid until the next block is asked for.

    Attributes:
        memory: Of the Buffer they were written to.
        length: Bytes they take, with the room around them.
        spans: Offset and length of each, uint64 of shape (records, 2).
    """

    memory: Array
    length: int
    spans: Array

    @property
    def view(self) -> memoryview:
        """The bytes of the records, with the room around them."""
        return self.memory.data[lib.TFW_PICKLE_HEAD :][: self.length]

    def frame(self) -> memoryview:
        """Makes them records of a file; for blocks with ``FRAME_ROOM``."""
        error = new_error()
        data = ffi.from_buffer("uint8_t[]", self.memory) + lib.TFW_PICKLE_HEAD
        spans = ffi.from_buffer("tfw_span[]", self.spans)
        check(lib.tfw_frame(data, self.length, spans, len(self.spans), error), error)
        return self.view

    def strings(self) -> Sequence[bytes]:
        """Makes them bytes objects; for blocks with ``STRING_ROOM``."""
        size = lib.TFW_PICKLE_HEAD + self.length + lib.TFW_PICKLE_TAIL
        data = ffi.from_buffer("uint8_t[]", self.memory)
        spans = ffi.from_buffer("tfw_span[]", self.spans)
        check(lib.tfw_pickle_frame(data, size, spans, len(self.spans)), new_error())
        strings: Sequence[bytes] = pickle.loads(self.memory.data[:size])
        return strings


class Encoder:
    """Columns, ready to be encoded a part at a time: as Examples, or with ``lists`` (which may be
    empty) as SequenceExamples.

    Attributes:
        done: Records written by the last call.
        length: The bytes they take.
    """

    def __init__(
        self,
        columns: Sequence[tuple[bytes, Column]],
        lists: Sequence[tuple[bytes, Column]] | None = None,
    ) -> None:
        self._columns = columns
        self._lists = lists or ()
        self._inputs, self._keep = native_inputs(columns)
        self._list_inputs, self._keep_lists = native_inputs(self._lists)
        self._is_sequence = lists is not None
        self._error = new_error()
        self._done = ffi.new("size_t *")
        self._length = ffi.new("size_t *")
        self.done = self.length = 0

    def encode(
        self, first: int, room: tuple[int, int], buffer: Any, spans: Any, num_records: int
    ) -> int:
        """Encodes records from ``first`` on, with room before and after each.

        Args:
            first: Number of the first record.
            room: Headroom and tailroom.
            buffer: ``uint8_t[]`` to write to.
            spans: ``tfw_span[]`` for as many records.
            num_records: How many to write at most.

        Returns:
            0, or when the buffer is full a size that is enough for the next record.

        Raises:
            ValueError: Splits or offsets that do not fit their values.
        """
        lists = (self._list_inputs, len(self._lists)) if self._is_sequence else ()
        call = lib.tfw_encode_sequence if self._is_sequence else lib.tfw_encode
        status = call(
            self._inputs,
            len(self._columns),
            *lists,
            first,
            num_records,
            *room,
            buffer,
            len(buffer),
            spans,
            self._done,
            self._length,
            self._error,
        )
        self.done, self.length = self._done[0], self._length[0]
        if status < 0:
            self._refuse(status)
        return int(self._error.expected) if status == lib.TFW_NEED_SPACE else 0

    def _refuse(self, status: int) -> None:
        error = self._error
        if error.feature >= 0:
            name, _ = (self._lists if error.list else self._columns)[error.feature]
            shown = show(name.decode("utf-8", "surrogateescape"))
            raise ValueError(f"{shown}: record {error.record}: {text(error.text)}")
        check(status, error)


def encode_blocks(
    columns: Sequence[tuple[bytes, Column]],
    lists: Sequence[tuple[bytes, Column]] | None,
    num_records: int,
    room: tuple[int, int],
) -> Iterator[Block]:
    """Encodes records, about a block at a time; with ``lists`` as SequenceExamples.

    room: Bytes before and after each record: FRAME_ROOM or STRING_ROOM.
    """
    encoder = Encoder(columns, lists)
    buffer = Buffer(BLOCK_SIZE if num_records > 64 else BLOCK_SIZE >> 4)
    spans = np.empty((min(num_records, _RECORDS_PER_CALL), 2), np.uint64)
    out_spans = ffi.from_buffer("tfw_span[]", spans)
    first = 0
    while first < num_records:
        count = min(num_records - first, len(spans))
        need = encoder.encode(first, room, buffer.out, out_spans, count)
        if need and not encoder.done:
            buffer = Buffer(need)
            continue
        yield Block(buffer.memory, encoder.length, spans[: encoder.done])
        first += encoder.done


def encode_whole(columns: Sequence[tuple[bytes, Column]], num_records: int) -> tuple[Array, Array]:
    """Encodes all records into one buffer; returns their bytes and int64 offsets."""
    encoder = Encoder(columns)
    buffer = np.empty(BLOCK_SIZE, np.uint8)
    spans = np.empty((min(num_records, _RECORDS_PER_CALL), 2), np.uint64)
    out_spans = ffi.from_buffer("tfw_span[]", spans)
    offsets = np.zeros(num_records + 1, np.int64)
    first = length = 0
    while first < num_records:
        out = ffi.from_buffer("uint8_t[]", buffer)[length : len(buffer)]
        count = min(num_records - first, len(spans))
        need = encoder.encode(first, (0, 0), out, out_spans, count)
        found = spans.view(np.int64)[: encoder.done]
        np.add(found[:, 0], found[:, 1], out=offsets[first + 1 :][: encoder.done])
        offsets[first + 1 :][: encoder.done] += length
        first += encoder.done
        length += encoder.length
        if need:  # the rest is likely to be as long as what there is
            likely = length // max(first, 1) * (num_records - first)
            grown = np.empty(length + need + likely + likely // 16 + BLOCK_SIZE, np.uint8)
            grown[:length] = buffer[:length]
            buffer = grown
    return buffer[:length], offsets
