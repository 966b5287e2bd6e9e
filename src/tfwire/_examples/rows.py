"""Rows into C: mappings go there pickled, what C does not know is encoded by the careful way."""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tfwire._core import SEED, check, ffi, lib, new_error
from tfwire._examples.encoder import STRING_ROOM, Block, Buffer, encode_blocks
from tfwire._examples.normalize import (
    BYTES,
    FLOAT,
    INT64,
    NONE,
    as_float32,
    as_int64,
    cell_of,
    dtype_kind,
    scalar_kind,
    string_bytes,
)
from tfwire._examples.table import columns_of_rows

__all__ = ["RowEncoder", "encode_row", "native"]

_PROTOCOL = 5  # the opcodes that C knows are those of this one
_MARSHAL_VERSION = 4

# Values that pickle writes as opcodes that C knows; what lists hold shows in the stream.
_PLAIN = frozenset({bool, int, float, bytes, str, list, tuple})


def native(*args: Any) -> None:
    """The name that stands in pickles for values put in a form that C knows; never called."""


_UNKNOWN: tuple[Any, ...] = (native, ())

# The scalars that rows hold most often after Python's own, each with what makes it one of those.
_CONVERT: dict[type, Callable[[Any], Any]] = {
    np.bool_: int,
    np.int8: int,
    np.int16: int,
    np.int32: int,
    np.int64: int,
    np.uint8: int,
    np.uint16: int,
    np.uint32: int,
    np.uint64: int,
    np.float16: float,
    np.float32: float,
    np.float64: float,
}


class _RowPickler(pickle.Pickler):
    """Writes what is not of a builtin type as ``native(...)``, so that no foreign code runs."""

    def reducer_override(self, obj: Any) -> Any:
        convert = _CONVERT.get(type(obj))
        if convert is not None:
            return native, (convert(obj),)
        if obj is native:
            return NotImplemented  # it goes by its name
        try:
            return _reduce(obj)
        except (TypeError, ValueError):
            return _UNKNOWN  # the careful way says what is wrong


def _reduce(obj: Any) -> tuple[Any, ...]:
    """A value as a scalar, as the bytes of an array, or as a list of strings."""
    if type(obj) is np.ndarray:
        kind = dtype_kind(obj.dtype)
        if kind == INT64:
            return native, (INT64, as_int64(obj, None).tobytes())
        if kind == FLOAT:
            return native, (FLOAT, as_float32(obj, None).tobytes())
    kind = scalar_kind(type(obj))
    if kind == INT64:
        return native, (int(obj),)
    if kind == FLOAT:
        return native, (float(obj),)
    if kind == BYTES:
        return native, (string_bytes(obj, None),)
    cell = cell_of(obj, None)
    if cell.kind == INT64:
        return native, (INT64, as_int64(cell.values, None).tobytes())
    if cell.kind == FLOAT:
        return native, (FLOAT, as_float32(cell.values, None).tobytes())
    if cell.kind == NONE:
        return native, ([],)
    return native, ((list(cell.values),) if len(cell.values) else (BYTES, b""))


class _Frames(list[bytes]):
    """What a pickler writes, without the copies that a growing file takes."""

    write = list.append


def _dump(rows: list[Any]) -> bytes:
    """A pickle of rows, readable by C as far as it knows their values.

    Raises:
        Exception: Whatever pickling raises; a method of a value may be at fault too.
    """
    if set(map(type, rows)) != {dict}:
        rows = [dict(row) if isinstance(row, Mapping) else None for row in rows]
    frames = _Frames()
    _RowPickler(frames, _PROTOCOL).dump(rows)
    return b"".join(frames)


def _dump_plain(rows: list[Any]) -> bytes:
    """The same by marshal, which is faster; C reads dicts of numbers and text."""
    return marshal.dumps(rows, _MARSHAL_VERSION)


def _fetch(rows: list[Any]) -> None:
    """Brings the values of wide rows into the cache. Pickling waits for the memory of one after the
    other, copying a row touches many at a time. The copies must not last: marshal takes longer for
    objects that others refer to."""
    if type(rows[0]) is dict and len(rows[0]) >= _WIDE:
        _ = [row.copy() for row in rows if type(row) is dict]


class _Native:
    """A native encoder, which remembers keys, and what one call of it takes."""

    def __init__(self) -> None:
        self.error = new_error()
        out = ffi.new("tfw_rows **")
        check(lib.tfw_rows_create(SEED, out, self.error), self.error)
        self.rows = ffi.gc(out[0], lib.tfw_rows_free)
        self.buffer = ffi.from_buffer("uint8_t[]", np.empty(_SCRATCH_SIZE, np.uint8))
        self.span = ffi.new("tfw_span *")
        self.done = ffi.new("size_t *")
        self.length = ffi.new("size_t *")

    def run(self, stream: Any, num_rows: int, sort_keys: bool, target: tuple[Any, ...]) -> int:
        """Encodes rows of a pickle; target: headroom, tailroom, buffer, its size, spans."""
        status: int = lib.tfw_rows_encode(
            self.rows,
            stream,
            len(stream),
            0 if sort_keys else lib.TFW_KEEP_ORDER,
            *target,
            num_rows,
            self.done,
            self.length,
            self.error,
        )
        return status


# What is not touched of this takes no memory.
_SCRATCH_SIZE = 1 << 20

# Values of a row from which on it pays to fetch rows before they are pickled.
_WIDE = 12

# Encoded bytes of a chunk of rows: pickle and messages together should stay in the cache. The
# first chunk is small, since rows may be large.
_CHUNK_SIZE = 1 << 17
_FIRST_CHUNK = 16
_MAX_CHUNK = 1024

# Encoders that no thread is using. A list's pop and append are atomic.
_idle: list[_Native] = []


def _take() -> _Native:
    try:
        return _idle.pop()
    except IndexError:
        return _Native()


def encode_row(row: Any, sort_keys: bool) -> bytes:
    """One row as a message.

    Raises:
        TypeError, ValueError: As encode_example.
    """
    native = _take()
    try:
        plain = type(row) is dict and _PLAIN.issuperset(map(type, row.values()))
        stream = pickle.dumps(row, _PROTOCOL) if plain else _dump([row])
        status = lib.tfw_rows_encode(
            native.rows,
            stream,
            len(stream),
            0 if sort_keys else lib.TFW_KEEP_ORDER,
            0,
            0,
            native.buffer,
            _SCRATCH_SIZE,
            native.span,
            1,
            native.done,
            native.length,
            native.error,
        )
        if status == lib.TFW_OK:
            record: bytes = ffi.buffer(native.buffer, native.length[0])[:]
            return record
    except Exception:  # of any kind: if the row has no encoding, the careful way says why
        pass
    finally:
        _idle.append(native)
    (block,) = RowEncoder(STRING_ROOM, sort_keys, numbered=False).encode([row])
    return block.strings()[0]


class RowEncoder:
    """Encodes rows, a chunk at a time; its buffer serves all chunks."""

    def __init__(self, room: tuple[int, int], sort_keys: bool, numbered: bool = True) -> None:
        self.room = room
        self.sort_keys = sort_keys
        self.numbered = numbered
        self.buffer = Buffer(0)
        self.num_rows = 0
        self._chunk_rows = _FIRST_CHUNK
        self._dumps: Sequence[Callable[[list[Any]], bytes]] = (_dump_plain, _dump)

    def encode_all(self, rows: Iterable[Any]) -> Iterator[Block]:
        """Blocks of any number of rows, in chunks of a size that caches hold.

        Raises:
            TypeError, ValueError: As encode.
        """
        remaining = iter(rows)
        while chunk := list(islice(remaining, self._chunk_rows)):
            length = 0
            for block in self.encode(chunk):
                length += block.length
                yield block
            rows_in_cache = _CHUNK_SIZE * len(chunk) // (length + 1)
            self._chunk_rows = min(max(rows_in_cache, 1), _MAX_CHUNK)

    def encode(self, rows: list[Any]) -> Iterator[Block]:
        """Blocks of a chunk of rows; a block is valid until the next is asked for.

        Raises:
            TypeError, ValueError: As encode_example; where numbered, the row's number comes first.
        """
        done = 0
        _fetch(rows)
        for dump in self._dumps:
            block = self._hand_over(dump, rows[done:])
            if block is not None:
                done += len(block.spans)
                yield block
            if done == len(rows):
                break
            self._dumps = (_dump,)  # other rows are likely to be like this one
        if done < len(rows):
            yield from self._encode_carefully(rows, done)
        self.num_rows += len(rows)

    def _hand_over(self, dump: Callable[[list[Any]], bytes], rows: list[Any]) -> Block | None:
        """The first rows, those that C knows; None: it knows none."""
        try:
            stream = dump(rows)
        except Exception:  # of any kind: where a row has no encoding, the careful way says why
            return None
        block = self._run(stream, len(rows))
        return block if len(block.spans) else None

    def _run(self, stream: bytes, num_rows: int) -> Block:
        """The rows that C knows."""
        spans = np.empty((num_rows, 2), np.uint64)
        size = 4 * len(stream) + 256 * num_rows + 4096
        native = _take()
        try:
            while True:
                if len(self.buffer.out) < size:
                    self.buffer = Buffer(size)
                out = self.buffer.out
                target = (*self.room, out, len(out), ffi.from_buffer("tfw_span[]", spans))
                status = native.run(stream, num_rows, self.sort_keys, target)
                if status != lib.TFW_NEED_SPACE:
                    break
                size = 2 * len(out)
            if status != lib.TFW_E_UNSUPPORTED:
                check(status, native.error)
            return Block(self.buffer.memory, native.length[0], spans[: native.done[0]])
        finally:
            _idle.append(native)

    def _encode_carefully(self, rows: Sequence[Any], first: int) -> Iterator[Block]:
        """Rows from first on, value by value; in groups that have one order of keys."""
        size = len(rows) if self.sort_keys else 1
        for begin in range(first, len(rows), size):
            group = rows[begin : begin + size]
            try:
                columns = columns_of_rows(group, self.sort_keys)
            except (TypeError, ValueError):
                if self.numbered:
                    self._refuse(group, begin)
                raise
            yield from encode_blocks(columns, None, len(group), self.room)

    def _refuse(self, rows: Sequence[Any], first: int) -> None:
        """Raises the error of the first row that has one, with its number."""
        for i, row in enumerate(rows, self.num_rows + first):
            try:
                columns_of_rows([row], self.sort_keys)
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"row {i}: {error}") from None
