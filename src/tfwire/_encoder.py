"""Columns into C: one ``tfw_input`` per feature, blocks of encoded records back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._core import check, ffi, lib, new_error, text
from tfwire._normalize import Array, Name, as_float32, as_int64, as_strings, show

__all__ = ["Block", "Column", "encode_blocks", "make_column", "native_inputs"]

BLOCK_SIZE = 1 << 20
_RECORDS_PER_CALL = 1 << 14


class Column(NamedTuple):
    """One feature of many records, as tfw_input describes it.

    Attributes:
        kind: TFW_BYTES, TFW_FLOAT or TFW_INT64.
        values: int64 or float32 array of rank 1, or the bytes of all strings.
        num_values: How many values there are.
        per_record: Values per record where ``splits`` is None.
        offsets: int64, num_values + 1: where the strings lie.
        gap: Bytes between a string and the next.
        splits: int64, cells + 1: where the values of each record (each step) lie.
        steps: int64, records + 1: where the steps of each record lie; feature lists only.
        presence: uint8 per record, or None when all have the feature.
    """

    kind: int
    values: Any
    num_values: int
    per_record: int = 1
    offsets: Array | None = None
    gap: int = 0
    splits: Array | None = None
    steps: Array | None = None
    presence: Array | None = None


def make_column(
    kind: int, values: Any, name: Name, types: set[type] | None = None, **layout: Any
) -> Column:
    """A column of flat values; a kind of NONE has none.

    types: Those of the values, where they are known already. layout: Further fields.
    """
    if kind == lib.TFW_BYTES:
        data, offsets, gap = as_strings(values, name, types)
        return Column(kind, data, len(offsets) - 1, offsets=offsets, gap=gap, **layout)
    if kind == lib.TFW_FLOAT:
        values = as_float32(values, name)
    else:
        kind, values = lib.TFW_INT64, as_int64(values, name)
    return Column(kind, values, len(values), **layout)


def native_inputs(columns: Sequence[tuple[bytes, Column]]) -> tuple[Any, list[Any]]:
    """A ``tfw_input[]`` of named columns, and what must be kept alive while it is used."""
    inputs = ffi.new("tfw_input[]", len(columns))
    keep: list[Any] = []

    def pin(ctype: str, buffer: Any) -> Any:
        if buffer is None:
            return ffi.NULL
        pointer = ffi.from_buffer(ctype, buffer)
        keep.append(pointer)
        return pointer

    for entry, (name, column) in zip(inputs, columns, strict=True):
        entry.name = pin("char[]", name)
        entry.name_len = len(name)
        entry.kind = column.kind
        entry.gap = column.gap
        entry.count = column.per_record
        entry.values = pin("uint8_t[]", column.values)
        entry.value_count = column.num_values
        entry.byte_count = memoryview(column.values).nbytes
        entry.offsets = pin("int64_t[]", column.offsets)
        entry.splits = pin("int64_t[]", column.splits)
        entry.steps = pin("int64_t[]", column.steps)
        entry.presence = pin("uint8_t[]", column.presence)
        if column.splits is not None:
            entry.cell_count = len(column.splits) - 1
        elif column.steps is not None:
            entry.cell_count = int(column.steps[-1])
    return inputs, keep


class Block(NamedTuple):
    """Encoded records: record i is ``buffer[spans[i, 0]:][:spans[i, 1]]``; valid until the next."""

    buffer: Array
    length: int
    spans: Array


def encode_blocks(
    columns: Sequence[tuple[bytes, Column]],
    lists: Sequence[tuple[bytes, Column]] | None,
    num_records: int,
    headroom: int = 0,
    tailroom: int = 0,
) -> Iterator[Block]:
    """Encodes records, about a block at a time: Examples, or SequenceExamples with ``lists``."""
    inputs, keep = native_inputs(columns)
    list_inputs, list_keep = native_inputs(lists or ())
    error, done, length = new_error(), ffi.new("uint64_t *"), ffi.new("size_t *")
    size = BLOCK_SIZE if num_records > 64 else BLOCK_SIZE >> 4
    buffer = np.empty(size, np.uint8)
    spans = np.empty((min(num_records, _RECORDS_PER_CALL), 2), np.uint64)
    first = 0
    while first < num_records:
        window = (
            first,
            min(num_records - first, len(spans)),
            headroom,
            tailroom,
            ffi.from_buffer("uint8_t[]", buffer),
            len(buffer),
            ffi.from_buffer("tfw_span[]", spans),
            done,
            length,
            error,
        )
        if lists is None:
            status = lib.tfw_encode(inputs, len(columns), *window)
        else:
            status = lib.tfw_encode_sequence(inputs, len(columns), list_inputs, len(lists), *window)
        if status < 0 and error.feature >= 0:
            (name, _) = ((lists or ()) if error.list else columns)[error.feature]
            shown = show(name.decode("utf-8", "surrogateescape"))
            raise ValueError(f"{shown}: record {error.record}: {text(error.text)}")
        check(status, error)
        if status == lib.TFW_NEED_SPACE and done[0] == 0:
            buffer = np.empty(error.expected, np.uint8)
            continue
        yield Block(buffer, length[0], spans[: done[0]])
        first += done[0]
    keep.clear()
    list_keep.clear()
