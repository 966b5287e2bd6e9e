"""The encoder of columns in C: inputs in, blocks of encoded records out."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tfwire._base.native import check, ffi, lib, new_error, text
from tfwire._base.strings import strings_from_spans
from tfwire._examples.inputs import Input
from tfwire._examples.values import BYTES, INT64, Array, show

# A block, and the objects or file pages made of it, should stay in the second-level cache.
_BLOCK_SIZE = 1 << 18
_RECORDS_PER_CALL = 1 << 13

# Bytes to leave free before and after each record, so that it becomes a record of a file in place.
FRAME_ROOM = (lib.TFW_HEADER_SIZE, lib.TFW_FOOTER_SIZE)
NO_ROOM = (0, 0)


class NativeInputs(NamedTuple):
    """Features of many records, as C reads them.

    Attributes:
        keys: The bytes of the features' keys.
        native: ``tfw_input[]``, one per key.
        keep: What must be kept alive while they are used.
        lists: The feature lists of SequenceExamples, perhaps none; None: these are Examples.
    """

    keys: Sequence[bytes]
    native: Any
    keep: Any
    lists: NativeInputs | None = None


class EncodeBuffer:
    """Memory for a block.

    Attributes:
        memory: uint8 of rank 1.
        out: The same, as ``uint8_t[]``.
    """

    def __init__(self, size: int) -> None:
        self.memory = np.empty(size, np.uint8)
        self.out = ffi.from_buffer("uint8_t[]", self.memory)


class EncodedBlock(NamedTuple):
    """Encoded records, valid until the next block is asked for, unless who made it says more.

    Attributes:
        memory: That of the EncodeBuffer they were written to.
        length: Their size in bytes, with the room around them.
        spans: Offset and length of each, uint64 of shape (records, 2).
        tally: Of a block that is records of a file already: their ``tfw_tally *``.
    """

    memory: Array
    length: int
    spans: Array
    tally: Any = None

    @property
    def view(self) -> memoryview:
        """The bytes of the records, with the room around them."""
        return self.memory.data[: self.length]

    def frame(self) -> memoryview:
        """Makes them records of a file. The block must have FRAME_ROOM."""
        error = new_error()
        data = ffi.from_buffer("uint8_t[]", self.memory)
        spans = ffi.from_buffer("tfw_span[]", self.spans)
        check(lib.tfw_frame(data, self.length, spans, len(self.spans), error), error)
        return self.view

    def strings(self) -> list[bytes]:
        """The records as bytes objects."""
        return strings_from_spans(self.memory, self.spans)


def strings_of_blocks(blocks: Iterable[EncodedBlock]) -> list[bytes]:
    """The records of all blocks as bytes objects."""
    records: list[bytes] = []
    for block in blocks:
        records += block.strings()
    return records


def framed_blocks(blocks: Iterable[EncodedBlock]) -> Generator[EncodedBlock, None, None]:
    """Blocks that are records of a file, of blocks that have room for it."""
    for block in blocks:
        if block.tally is None:
            block.frame()
        yield block


def encode_blocks(
    features: NativeInputs, num_records: int, room: tuple[int, int]
) -> Iterator[EncodedBlock]:
    """Encodes records, about _BLOCK_SIZE bytes at a time.

    Args:
        features: The features of all records.
        num_records: How many records there are.
        room: FRAME_ROOM or NO_ROOM.

    Raises:
        ValueError: Splits or offsets do not fit their values.
    """
    size = _BLOCK_SIZE if num_records > 64 else _BLOCK_SIZE >> 4
    slot = _Slot(_Encoder(features), room, size, min(num_records, _RECORDS_PER_CALL))
    return slot.blocks(0, num_records)


class _Slot:
    """An encoder and memory for a block, for one thread at a time."""

    def __init__(
        self, encoder: _Encoder, room: tuple[int, int], size: int, num_records: int
    ) -> None:
        self._encoder = encoder
        self._room = room
        self._buffer = EncodeBuffer(size)
        self._spans = np.empty((num_records, 2), np.uint64)

    def block(self, first: int, end: int) -> EncodedBlock:
        """The records from ``first`` on, up to ``end`` at most; one or more. It is valid until the
        next call."""
        spans = self._spans
        out_spans = ffi.from_buffer("tfw_span[]", spans)
        while True:
            out, count = self._buffer.out, min(end - first, len(spans))
            done, size, need = self._encoder.encode(first, count, self._room, out, out_spans)
            if done or not need:
                return EncodedBlock(self._buffer.memory, size, spans[:done])
            self._buffer = EncodeBuffer(need)

    def blocks(self, first: int, end: int) -> Iterator[EncodedBlock]:
        """All records from ``first`` to ``end``."""
        while first < end:
            block = self.block(first, end)
            yield block
            first += len(block.spans)


def _grown(data: Array, length: int, end: int, first: int, num_records: int) -> Array:
    """A copy of ``length`` bytes with room for ``end`` and, if the records from number ``first``
    on are as long as those before, for all of them."""
    expected = end // max(first, 1) * (num_records - first)
    grown = np.empty(end + expected + expected // 16 + _BLOCK_SIZE, np.uint8)
    grown[:length] = data[:length]
    return grown


def encode_whole(features: NativeInputs, num_records: int) -> tuple[Array, Array]:
    """Encodes records into one buffer.

    Returns:
        Their bytes, uint8, and where each begins and ends, int64 of shape (records + 1,).

    Raises:
        ValueError: Splits or offsets do not fit their values.
    """
    encoder = _Encoder(features)
    buffer = np.empty(_BLOCK_SIZE, np.uint8)
    spans = np.empty((min(num_records, _RECORDS_PER_CALL), 2), np.uint64)
    out_spans = ffi.from_buffer("tfw_span[]", spans)
    offsets = np.zeros(num_records + 1, np.int64)
    first = length = 0
    while first < num_records:
        out = ffi.from_buffer("uint8_t[]", buffer)[length : len(buffer)]
        count = min(num_records - first, len(spans))
        done, size, need = encoder.encode(first, count, (0, 0), out, out_spans)
        found = spans.view(np.int64)[:done]
        ends = offsets[first + 1 :][:done]
        np.add(found[:, 0], found[:, 1], out=ends)
        ends += length
        first += done
        length += size
        if need:
            buffer = _grown(buffer, length, length + need, first, num_records)
    return buffer[:length], offsets


class _Encoder:
    """Inputs, prepared for encoding some records at a time."""

    def __init__(self, features: NativeInputs) -> None:
        self._features = features
        self._lists = features.lists
        self._error = new_error()
        self._done = ffi.new("size_t *")
        self._length = ffi.new("size_t *")

    def encode(
        self, first: int, num_records: int, room: tuple[int, int], buffer: Any, spans: Any
    ) -> tuple[int, int, int]:
        """Encodes records from number ``first`` on.

        Args:
            first: Number of the first record.
            num_records: How many to write at most.
            room: Bytes to leave free before and after each record.
            buffer: ``uint8_t[]`` to write to.
            spans: ``tfw_span[]`` for ``num_records`` records.

        Returns:
            Records written, the bytes they take, and 0 or, if the buffer is full, a size that is
            enough for the next record. The records before a faulty one come without an error.

        Raises:
            ValueError: Splits or offsets do not fit their values, in the first record.
        """
        lists = () if self._lists is None else (self._lists.native, len(self._lists.keys))
        call = lib.tfw_encode if self._lists is None else lib.tfw_encode_sequence
        status = call(
            self._features.native,
            len(self._features.keys),
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
        if status < 0 and not self._done[0]:
            raise_encoding_error(status, self._error, self._features)
        need = self._error.expected if status == lib.TFW_NEED_SPACE else 0
        return self._done[0], self._length[0], need


def raise_encoding_error(status: int, error: Any, features: NativeInputs) -> NoReturn:
    """Raises what C says of a record that could not be encoded."""
    if error.feature >= 0:
        of = features.lists if features.lists is not None and error.list else features
        shown = show(of.keys[error.feature].decode("utf-8", "surrogateescape"))
        raise ValueError(f"{shown}: record {error.record}: {text(error.text)}")
    check(status, error)
    raise AssertionError("a status that is no failure")


def native_inputs(inputs: Sequence[tuple[bytes, Any]]) -> NativeInputs:
    """Inputs as C reads them; some of them may be a ``tfw_input`` already.

    All sizes are those of the pinned memory. An array's own length may differ: another thread may
    change it.
    """
    native = ffi.new("tfw_input[]", len(inputs))
    keep: list[Any] = []

    def pin(ctype: str, buffer: Any) -> tuple[Any, int]:
        if buffer is None:
            return ffi.NULL, 0
        pointer = ffi.from_buffer(ctype, buffer)
        keep.append(pointer)
        return pointer, len(pointer)

    for i, (key, given) in enumerate(inputs):
        entry = native[i]
        if not isinstance(given, Input):
            native[i] = given
        entry.name, entry.name_len = pin("char[]", key)
        if not isinstance(given, Input):
            continue
        entry.kind = given.kind
        entry.count = given.per_record
        entry.values, entry.byte_count = pin("uint8_t[]", given.values)
        entry.offsets, num_offsets = pin("int64_t[]", given.offsets)
        if given.kind == BYTES:
            entry.value_count = max(num_offsets - 1, 0)
        else:
            entry.value_count = entry.byte_count // (8 if given.kind == INT64 else 4)
        entry.splits, num_splits = pin("int64_t[]", given.splits)
        entry.steps, _ = pin("int64_t[]", given.steps)
        entry.presence, _ = pin("uint8_t[]", given.presence)
        entry.step_presence, _ = pin("uint8_t[]", given.step_presence)
        if given.splits is not None:
            entry.cell_count = max(num_splits - 1, 0)
        elif given.steps is not None:
            entry.cell_count = int(given.steps[-1])
    return NativeInputs([key for key, _ in inputs], native, keep)
