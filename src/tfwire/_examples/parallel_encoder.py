"""The encoder of columns by several threads of C, which hold nothing of Python."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tfwire._base.native import call, check, create, ffi, lib, new_error, new_struct
from tfwire._examples.native_encoder import (
    FRAME_ROOM,
    EncodedBlock,
    NativeInputs,
    raise_encoding_error,
)
from tfwire._examples.values import Array

# C refuses more, and no machine has use for them.
_MOST_THREADS = 1024
# Milliseconds after which a thread that waits looks for signals.
_STEP = 100
# Fewer bytes of columns are encoded by one thread, and more records are not few.
_FEW_BYTES_OF_COLUMNS, _MANY_RECORDS = 1 << 20, 1 << 18
# About how many bytes a thread encodes at a time; 0: C knows best.
_ENCODED_RANGE = 0


def are_few(features: NativeInputs, num_records: int) -> bool:
    """Whether encoding takes no longer than to begin with several threads, or these are
    SequenceExamples, which one thread encodes."""
    if features.lists is not None:
        return True
    if num_records > _MANY_RECORDS:
        return False
    columns = features.native[0 : len(features.keys)]
    size: int = sum(column.byte_count for column in columns)
    return size < _FEW_BYTES_OF_COLUMNS


class ParallelEncoder:
    """Encodes records as Examples by several threads. They start when there is enough to do, and
    end with ``close``. One thread at a time may use it.

    Args:
        num_threads: All that encode, the caller included.
        room: FRAME_ROOM: blocks are records of a file, complete, with a tally. Or NO_ROOM.
        range_bytes: About how many bytes a block should have; 0: as many as is good.
    """

    def __init__(self, num_threads: int, room: tuple[int, int], range_bytes: int = 0) -> None:
        options = new_struct("tfw_encoder_options")
        options.num_threads = min(num_threads, _MOST_THREADS)
        options.range_bytes = _ENCODED_RANGE or range_bytes
        options.flags = lib.TFW_ENCODE_FRAMED if room == FRAME_ROOM else 0
        self._options, self._native = options, None  # the encoder is made when it is needed
        self._out = ffi.new("tfw_chunk **")
        self._error = new_error()
        self._held: Any = None  # what C uses, perhaps still after interrupts

    def close(self) -> None:
        """Ends the threads. Blocks stay valid."""
        lost, self._out[0] = self._out[0], ffi.NULL  # by an interrupt
        lib.tfw_chunk_release(lost)
        if self._native is not None:
            ffi.release(self._native)

    def blocks(
        self, features: NativeInputs, num_records: int
    ) -> Generator[EncodedBlock, None, None]:
        """Encodes records. A block has memory of its own, which is used again when its arrays are
        gone. Close this generator before the features change.

        Raises:
            ValueError: Splits or offsets do not fit their values. The blocks of all records before
                came.
        """
        with self._reading(features, num_records, ffi.NULL):
            while self._next(features) != lib.TFW_END:
                found, self._out[0] = self._out[0], ffi.NULL
                yield block_of_chunk(ffi.gc(found, lib.tfw_chunk_release))

    def whole(self, features: NativeInputs, num_records: int) -> tuple[Array, Array]:
        """As encode_whole."""
        data, offsets = np.empty(0, np.uint8), np.zeros(num_records + 1, np.int64)
        places = ffi.from_buffer("int64_t[]", offsets)
        with self._reading(features, num_records, places):
            while self._next(features) != lib.TFW_END:
                length, grown = self._error.found, np.empty(self._error.offset, np.uint8)
                grown[:length] = data[:length]
                data = grown
                self._held = features, places, data
                room = ffi.from_buffer("uint8_t[]", data)
                lib.tfw_encoder_room(self._native, room, len(room))
        return data[: offsets[-1]], offsets

    @contextmanager
    def _reading(
        self, features: NativeInputs, num_records: int, offsets: Any
    ) -> Generator[None, None, None]:
        """C reads the features within this, and not afterwards."""
        if self._native is None:
            created = create(lib.tfw_encoder_create, "tfw_encoder", self._options)
            self._native = ffi.gc(created, lib.tfw_encoder_free)
        inputs = features.native, len(features.keys)
        self._held = features, offsets
        try:
            call(lib.tfw_encoder_begin, self._native, *inputs, num_records, offsets)
            yield
        finally:
            lib.tfw_encoder_begin(self._native, ffi.NULL, 0, 0, ffi.NULL, ffi.NULL)
            self._held = None

    def _next(self, features: NativeInputs) -> int:
        status = lib.TFW_NEED_INPUT
        while status == lib.TFW_NEED_INPUT:
            status = lib.tfw_encoder_next(self._native, _STEP, self._out, self._error)
        if status == lib.TFW_E_UNSUPPORTED:
            check(status, self._error)
        if status < 0:
            raise_encoding_error(status, self._error, features)
        return int(status)


def block_of_chunk(chunk: Any, count: int | None = None) -> EncodedBlock:
    """What is in a ``tfw_chunk *``, which lives as long as the arrays; or its first records."""
    info = chunk_info(chunk)
    spans = _array(chunk, info.spans, 2 * info.records, np.uint64).reshape(-1, 2)
    size, tally = info.data_len, ffi.new("tfw_tally *", info.tally)
    if count is not None and count < len(spans):
        spans, tally = spans[:count], None
        size = int(spans[-1].sum(dtype=np.uint64)) + lib.TFW_FOOTER_SIZE
    return EncodedBlock(_array(chunk, info.data, size, np.uint8), size, spans, tally)


def chunk_info(chunk: Any) -> Any:
    """``tfw_chunk_info *``, as long as nothing is added to the chunk."""
    info = new_struct("tfw_chunk_info")
    lib.tfw_chunk_get(chunk, info)
    return info


def _array(chunk: Any, memory: Any, count: int, dtype: Any) -> Array:
    size = count * np.dtype(dtype).itemsize
    owner = ffi.gc(memory, partial(_forget, chunk))
    return np.frombuffer(ffi.buffer(owner, size), dtype)


def _forget(chunk: Any, memory: Any) -> None:
    """The chunk was kept as long as something that has this for its destructor."""
