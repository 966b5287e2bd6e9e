"""Rows to encoded records: C reads a pickle of them, Python encodes what C does not know."""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tfwire._base.native import SEED, check, ffi, lib, new_error
from tfwire._examples.encoder_inputs import inputs_from_rows
from tfwire._examples.missing import is_missing
from tfwire._examples.native_encoder import (
    NO_ROOM,
    EncodeBuffer,
    EncodedBlock,
    encode_blocks,
    native_inputs,
)
from tfwire._examples.values import (
    AS_ARRAY,
    BYTES,
    FLOAT,
    INT64,
    NONE,
    dtype_kind,
    flatten_value,
    scalar_kind,
    string_bytes,
)

# Encoded bytes of a chunk of rows: its pickle and its messages together should stay in the cache.
# The first chunk is small, since rows may be large.
_CHUNK_SIZE = 1 << 17
_FIRST_CHUNK = 16
_MAX_CHUNK = 1024

# Rows with at least this many values are touched before they are pickled.
_WIDE = 12

# Bytes for the message of a single row. Pages that are never written take no memory.
_SCRATCH_SIZE = 1 << 20

_PROTOCOL = 5  # C knows the opcodes of this one
_MARSHAL_VERSION = 4


def encode_row(row: Any, sort_keys: bool) -> bytes:
    """Encodes one row.

    Raises:
        TypeError, ValueError: As encode_example.
    """
    encoder = _take_idle()
    try:
        plain = type(row) is dict and _COMMON_CLASSES.issuperset(map(type, row.values()))
        stream = pickle.dumps(row, _PROTOCOL) if plain else _pickled([row])
        status = lib.tfw_rows_encode(
            encoder.rows,
            stream,
            len(stream),
            0 if sort_keys else lib.TFW_KEEP_ORDER,
            0,
            0,
            encoder.scratch,
            _SCRATCH_SIZE,
            encoder.span,
            1,
            encoder.done,
            encoder.length,
            encoder.error,
        )
        if status == lib.TFW_OK:
            record: bytes = ffi.buffer(encoder.scratch, encoder.length[0])[:]
            return record
    except Exception:  # from any method of a value; if the row has no encoding, Python says why
        pass
    finally:
        _idle.append(encoder)
    (block,) = RowEncoder(NO_ROOM, sort_keys, numbered=False).encode([row])
    return block.strings()[0]


class RowEncoder:
    """Encodes rows, a chunk at a time.

    Args:
        room: FRAME_ROOM or NO_ROOM.
        sort_keys: Write features in the order of their keys' bytes.
        numbered: Errors begin with the number of the row.
    """

    def __init__(self, room: tuple[int, int], sort_keys: bool, numbered: bool = True) -> None:
        self._room = room
        self._sort_keys = sort_keys
        self._numbered = numbered
        self._buffer = EncodeBuffer(0)
        self._num_rows = 0  # of the chunks before
        self._chunk_rows = _FIRST_CHUNK
        self._forms: Sequence[Callable[[list[Any]], bytes]] = (_marshalled, _pickled)

    def encode_all(self, rows: Iterable[Any]) -> Iterator[EncodedBlock]:
        """Blocks of any number of rows. A block is valid until the next is asked for.

        Raises:
            TypeError, ValueError: As encode_example.
        """
        remaining = iter(rows)
        while chunk := list(islice(remaining, self._chunk_rows)):
            length = 0
            for block in self.encode(chunk):
                length += block.length
                yield block
            rows_in_cache = _CHUNK_SIZE * len(chunk) // (length + 1)
            self._chunk_rows = min(max(rows_in_cache, 1), _MAX_CHUNK)

    def encode(self, rows: list[Any]) -> Iterator[EncodedBlock]:
        """Blocks of a chunk of rows.

        Raises:
            TypeError, ValueError: As encode_example.
        """
        done = 0
        _touch(rows)
        for form in self._forms:
            block = self._encode_natively(form, rows[done:])
            if block is not None:
                done += len(block.spans)
                yield block
            if done == len(rows):
                break
            self._forms = (_pickled,)  # the other rows are probably like this one
        if done < len(rows):
            yield from self._encode_in_python(rows, done)
        self._num_rows += len(rows)

    def _encode_natively(
        self, form: Callable[[list[Any]], bytes], rows: list[Any]
    ) -> EncodedBlock | None:
        """The rows before the first one that C cannot encode; None if there are none."""
        try:
            stream = form(rows)
        except Exception:  # from any method of a value; if a row has no encoding, Python says why
            return None
        spans = np.empty((len(rows), 2), np.uint64)
        size = 4 * len(stream) + 256 * len(rows) + 4096
        encoder = _take_idle()
        try:
            while True:
                if len(self._buffer.out) < size:
                    self._buffer = EncodeBuffer(size)
                status = lib.tfw_rows_encode(
                    encoder.rows,
                    stream,
                    len(stream),
                    0 if self._sort_keys else lib.TFW_KEEP_ORDER,
                    *self._room,
                    self._buffer.out,
                    len(self._buffer.out),
                    ffi.from_buffer("tfw_span[]", spans),
                    len(spans),
                    encoder.done,
                    encoder.length,
                    encoder.error,
                )
                if status != lib.TFW_NEED_SPACE:
                    break
                size = 2 * len(self._buffer.out)
            if status != lib.TFW_E_UNSUPPORTED:
                check(status, encoder.error)
            spans = spans[: encoder.done[0]]
            block = EncodedBlock(self._buffer.memory, encoder.length[0], spans)
            return block if len(spans) else None
        finally:
            _idle.append(encoder)

    def _encode_in_python(self, rows: Sequence[Any], first: int) -> Iterator[EncodedBlock]:
        """Rows from number ``first`` on; one at a time if each keeps its own order of keys."""
        size = len(rows) if self._sort_keys else 1
        for begin in range(first, len(rows), size):
            group = rows[begin : begin + size]
            try:
                inputs = inputs_from_rows(group, self._sort_keys)
            except (TypeError, ValueError):
                if self._numbered:
                    self._raise_numbered(group, begin)
                raise
            yield from encode_blocks(native_inputs(inputs), None, len(group), self._room)

    def _raise_numbered(self, rows: Sequence[Any], first: int) -> None:
        """Raises the error of the first row that has one, with its number."""
        for i, row in enumerate(rows, self._num_rows + first):
            try:
                inputs_from_rows([row], self._sort_keys)
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"row {i}: {error}") from None


def _touch(rows: list[Any]) -> None:
    """Brings the values of wide rows into the cache.

    Pickling waits for the memory of one value after the other; copying a row fetches many at a
    time. The copies must not last: marshal takes longer for objects with more references.
    """
    if type(rows[0]) is dict and len(rows[0]) >= _WIDE:
        _ = [row.copy() for row in rows if type(row) is dict]


# ---- The native encoder of rows -----------------------------------------------------------------


class _NativeRows:
    """An encoder in C, which remembers keys, and the outputs of one call."""

    def __init__(self) -> None:
        self.error = new_error()
        out = ffi.new("tfw_rows **")
        check(lib.tfw_rows_create(SEED, out, self.error), self.error)
        self.rows = ffi.gc(out[0], lib.tfw_rows_free)
        self.scratch = ffi.from_buffer("uint8_t[]", np.empty(_SCRATCH_SIZE, np.uint8))
        self.span = ffi.new("tfw_span *")
        self.done = ffi.new("size_t *")
        self.length = ffi.new("size_t *")


# Encoders that no thread is using. A list's pop and append are atomic.
_idle: list[_NativeRows] = []


def _take_idle() -> _NativeRows:
    try:
        return _idle.pop()
    except IndexError:
        return _NativeRows()


# ---- Rows as streams that C reads ---------------------------------------------------------------

# Types that pickle writes with opcodes that C knows. C looks at the items of lists.
_COMMON_CLASSES = frozenset({bool, int, float, bytes, str, list, tuple, type(None)})

# The usual scalars of numpy, and Python's type for each.
_CONVERT: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys([np.bool_, np.int8, np.int16, np.int32, np.int64], int),
    **dict.fromkeys([np.uint8, np.uint16, np.uint32, np.uint64], int),
    **dict.fromkeys([np.float16, np.float32, np.float64], float),
}


def _marshalled(rows: list[Any]) -> bytes:
    """The rows by marshal: faster than pickling, for dicts of Python's numbers and strings."""
    return marshal.dumps(rows, _MARSHAL_VERSION)


def _pickled(rows: list[Any]) -> bytes:
    """Any rows. Values of other types are written as ``native(...)``, without their ``__reduce__``.

    Raises:
        Exception: Whatever pickling raises, or a method of a value.
    """
    if set(map(type, rows)) != {dict}:
        rows = [dict(row) if isinstance(row, Mapping) else None for row in rows]
    parts = _Parts()
    _RowPickler(parts, _PROTOCOL).dump(rows)
    return b"".join(parts)


def native(*args: Any) -> None:
    """Marks a value in a pickle as one in C's form. C knows the name; it is never called."""


_UNKNOWN: tuple[Any, ...] = (native, ())


class _RowPickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        convert = _CONVERT.get(type(obj))
        if convert is not None:
            return native, (convert(obj),)
        if obj is native:
            return NotImplemented  # pickled by name
        try:
            return native, _native_args(obj)
        except (TypeError, ValueError):
            return _UNKNOWN  # Python's encoder raises the error


def _native_args(obj: Any) -> tuple[Any, ...]:
    """A value as a scalar, as the bytes of an array and its kind, or as a list of strings."""
    if is_missing(obj):
        return NONE, b""
    if type(obj) is np.ndarray:
        array_kind = dtype_kind(obj.dtype) or NONE
        if array_kind in AS_ARRAY:
            return array_kind, AS_ARRAY[array_kind](obj, None).tobytes()
    kind = scalar_kind(type(obj))
    if kind == INT64:
        return (int(obj),)
    if kind == FLOAT:
        return (float(obj),)
    if kind == BYTES:
        return (string_bytes(obj, None),)
    flat = flatten_value(obj, None)
    if flat.kind in AS_ARRAY:
        return flat.kind, AS_ARRAY[flat.kind](flat.values, None).tobytes()
    if flat.kind == NONE:
        return ([],)
    return (list(flat.values),) if len(flat.values) else (BYTES, b"")


class _Parts(list[bytes]):
    """A file that keeps the written parts; a growing buffer would copy them."""

    write = list.append
