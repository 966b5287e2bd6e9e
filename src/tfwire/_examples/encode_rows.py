"""Rows to encoded records: C reads the dicts, Python encodes what C does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np

from tfwire._base.aliases import FeatureKinds, Row
from tfwire._base.native import address, ffi, objects
from tfwire._examples.encoder_inputs import inputs_from_rows
from tfwire._examples.kinds import (
    Agree,
    ArrayOfKind,
    KindMemory,
    give_idle,
    take_encoder,
    take_idle,
)
from tfwire._examples.missing import is_missing
from tfwire._examples.native_encoder import (
    FRAME_ROOM,
    NO_ROOM,
    EncodeBuffer,
    EncodedBlock,
    NativeInputs,
    encode_blocks,
    framed_blocks,
    native_inputs,
    strings_of_blocks,
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
    show,
    string_bytes,
)

# Encoded bytes of a chunk of rows: its objects and its messages together should stay in the cache.
# The first chunk is small, since rows may be large.
_CHUNK_SIZE = 1 << 17
_FIRST_CHUNK = 16
_MAX_CHUNK = 1024
_encode_row = objects.tfw_encode_row


def encode_row(row: Any, sort_keys: bool) -> bytes:
    """Encodes one row.

    Raises:
        TypeError, ValueError: As encode_example.
    """
    try:
        encoder = take_idle()
    except IndexError:
        encoder = take_encoder()
    try:
        record: bytes | None = _encode_row(encoder, row, sort_keys)
        if record is None:
            record = _encode_row(encoder, _plain(row), sort_keys)
        if record is not None:
            return record
    except Exception:  # from any method of a value; if the row has no encoding, Python says why
        pass
    finally:
        give_idle(encoder)
    with closing(KindMemory("any")) as memory:
        return _encode_alone(memory, row, sort_keys, 0, numbered=False)


def _encode_alone(
    memory: KindMemory, row: Any, sort_keys: bool, number: int, numbered: bool = True
) -> bytes:
    (block,) = RowEncoder(NO_ROOM, sort_keys, memory, numbered).encode([row], number)
    return block.strings()[0]


class RowEncoder:
    """Encodes rows, a chunk at a time.

    Args:
        room: FRAME_ROOM or NO_ROOM.
        sort_keys: Write features in the order of their keys' bytes.
        memory: What remembers the kinds that rows must agree in.
        numbered: Errors name the number of the record.
    """

    def __init__(
        self,
        room: tuple[int, int],
        sort_keys: bool,
        memory: KindMemory,
        numbered: bool = True,
    ) -> None:
        self._room = room
        self._sort_keys = sort_keys
        self._memory = memory
        self._numbered = numbered
        self._buffer = EncodeBuffer(0)
        self._chunk_rows = _FIRST_CHUNK
        self._forms: Sequence[Callable[[Any], Any]] = (_as_it_is, _plain)

    def encode_all(self, rows: Iterable[Any], number: int = 0) -> Iterator[EncodedBlock]:
        """Blocks of any number of rows, the first of which has a number. A block is valid until the
        next is asked for.

        Raises:
            TypeError, ValueError: As encode_example.
        """
        remaining = iter(rows)
        while chunk := list(islice(remaining, self._chunk_rows)):
            length = 0
            for block in self.encode(chunk, number):
                length += block.length
                yield block
            number += len(chunk)
            rows_in_cache = _CHUNK_SIZE * len(chunk) // (length + 1)
            self._chunk_rows = min(max(rows_in_cache, 1), _MAX_CHUNK)

    def encode(self, rows: list[Any], number: int = 0) -> Iterator[EncodedBlock]:
        """Blocks of a chunk of rows, the first of which has a number.

        Raises:
            TypeError, ValueError: As encode_example.
        """
        done = 0
        for form in self._forms:
            for block in self._encode_natively(form, rows[done:], number + done):
                done += len(block.spans)
                yield block
            if done == len(rows):
                break
            self._forms = (_plain,)  # the other rows are probably like this one
        if done < len(rows):
            yield from self._encode_in_python(rows[done:], number + done)

    def _encode_natively(
        self, form: Callable[[Any], Any], rows: list[Any], number: int
    ) -> Iterator[EncodedBlock]:
        """The rows before the first one that C cannot encode."""
        try:
            rows = [*map(form, rows)]
        except Exception:  # from any method of a value; if a row has no encoding, Python says why
            return
        spans = np.empty((len(rows), 2), np.uint64)
        places, first, full = ffi.from_buffer(spans), 0, True
        while full and first < len(rows):
            buffer = self._buffer
            memory = self._memory
            with memory.lock:
                room = *self._room, address(buffer.out), len(buffer.out), address(places), number
                # Last: a signal handler that closes the memory lets others have its encoder.
                encoder = memory.encoder or memory.taken()
                done, length, full = objects.tfw_encode_rows(
                    encoder, rows, first, self._sort_keys, *room
                )
            if done:
                yield EncodedBlock(buffer.memory, length, spans[:done])
                first += done
            elif full:
                self._buffer = EncodeBuffer(max(2 * len(buffer.out), 2 * _CHUNK_SIZE))

    def _encode_in_python(self, rows: Sequence[Any], number: int) -> Iterator[EncodedBlock]:
        """Rows, the first of which has a number; one at a time if each keeps its own order of
        keys."""
        size = len(rows) if self._sort_keys else 1
        for begin in range(0, len(rows), size):
            group = rows[begin : begin + size]
            first = number + begin
            try:
                inputs = inputs_from_rows(group, self._sort_keys, self._memory.settle, first)
            except BaseException as error:
                self._memory.unsettle(first)
                if isinstance(error, (TypeError, ValueError)):  # a row's, not an interrupt
                    self._raise_first(group, first)
                raise
            yield from encode_blocks(native_inputs(inputs), len(group), self._room)

    def _raise_first(self, rows: Sequence[Any], number: int) -> None:
        """Raises the error of the first row that has one, with its number."""
        for i, row in enumerate(rows, number):
            try:
                inputs_from_rows([row], self._sort_keys)
            except (TypeError, ValueError) as error:
                if not self._numbered:
                    raise
                raise _naming_record(error, row, i) from None
            try:
                inputs_from_rows([row], self._sort_keys, self._memory.settle, i)
            except TypeError:  # it names the row itself
                self._memory.unsettle(i)
                raise


def _naming_record(error: Exception, row: Any, number: int) -> Exception:
    """An error of a row that names the record as errors of columns do: after the feature."""
    shown, said = "", str(error)
    for name, value in row.items() if isinstance(row, Mapping) else ():
        try:
            inputs_from_rows([{name: value}], sort_keys=True)
        except (TypeError, ValueError):
            shown = f"{show(name)}: " if isinstance(name, (str, bytes)) else ""
            break
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{shown}record {number}: {said.removeprefix(shown)}")


class WriterRows:
    """Encodes the rows of a writer, which agree in the kinds of their features, columns included.

    Args:
        kinds, output: As for KindMemory.
    """

    def __init__(self, kinds: FeatureKinds | None = None, output: str = "") -> None:
        self._memory = KindMemory(kinds, output)

    def record(self, row: Row) -> bytes | None:
        """A row as a record. None: see ``new_record``."""
        memory = self._memory
        with memory.lock:
            record: bytes | None = _encode_row(memory.encoder or memory.taken(), row, True)
        return record

    def new_record(self, row: Row, number: int) -> bytes:
        """A row as a record, if ``record`` gives none: it has a value that only Python can encode,
        or a feature that no row before had.

        Args:
            row: The row.
            number: Its number among the writer's records.

        Raises:
            TypeError, ValueError: As encode_examples.
        """
        memory = self._memory
        try:
            plain = _plain(row)
            with memory.lock:
                record = _encode_row(memory.encoder or memory.taken(), plain, True, number)
        except Exception:  # as in encode_row
            record = None
        return record or _encode_alone(memory, row, True, number)

    def records(self, rows: Sequence[Row], number: int) -> list[bytes]:
        """Rows as records; the first has a number."""
        return strings_of_blocks(RowEncoder(NO_ROOM, True, self._memory).encode_all(rows, number))

    def framer(self) -> Callable[[Iterable[Row], int], Iterator[EncodedBlock]]:
        """A function that encodes rows, the first of which has a number, as the bytes of a TFRecord
        file, in blocks of some hundred KiB. A block is valid until the next one is asked for.
        Errors come after the blocks of the rows before. Its buffer serves call after call."""
        encoder = RowEncoder(FRAME_ROOM, True, self._memory)
        return lambda rows, number: framed_blocks(encoder.encode_all(rows, number))

    def agree(self, number: int) -> Agree:
        """A function for batches of columns, the first record of which has a number."""

        def agree(features: NativeInputs, num_records: int) -> NativeInputs:
            nonlocal number
            number += num_records
            return self._memory.settle_columns(features, num_records, number - num_records)

        return agree

    def close(self) -> None:
        """Forgets the kinds."""
        self._memory.close()


# ---- Rows as C knows them -----------------------------------------------------------------------

# Types that C knows, also inside lists.
_SCALARS = frozenset({bool, int, float, bytes, str, bytearray})
_AS_THEY_ARE = _SCALARS | {type(None)}

# The usual scalars of numpy, and Python's type for each.
_CONVERT: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys([np.bool_, np.int8, np.int16, np.int32, np.int64], int),
    **dict.fromkeys([np.uint8, np.uint16, np.uint32, np.uint64], int),
    **dict.fromkeys([np.float16, np.float32, np.float64], float),
}


def _as_it_is(row: Any) -> Any:
    return row


def _plain(row: Any) -> Any:
    """A row with its values as C knows them, if they have an encoding; else None.

    Raises:
        Exception: From any method of a value.
    """
    if not isinstance(row, Mapping):
        return None
    try:
        return {
            name: value
            if type(value) in _AS_THEY_ARE
            else _CONVERT.get(type(value), _plain_value)(value)
            for name, value in dict(row).items()
        }
    except (TypeError, ValueError):
        return None  # Python's encoder raises the error


def _plain_value(obj: Any) -> Any:
    """A value as a scalar, as an array or as a list of strings."""
    if type(obj) is np.ndarray:
        array_kind = dtype_kind(obj.dtype) or NONE
        if array_kind in AS_ARRAY:
            return ArrayOfKind((array_kind, AS_ARRAY[array_kind](obj, None).tobytes()))
    if type(obj) in (list, tuple) and _SCALARS.issuperset(map(type, obj)):
        return obj
    if is_missing(obj):
        return None
    kind = scalar_kind(type(obj))
    if kind == INT64:
        return int(obj)
    if kind == FLOAT:
        return float(obj)
    if kind == BYTES:
        return string_bytes(obj, None)
    flat = flatten_value(obj, None)
    if flat.kind in AS_ARRAY:
        return ArrayOfKind((flat.kind, AS_ARRAY[flat.kind](flat.values, None).tobytes()))
    if flat.kind == NONE:
        return []
    return list(flat.values) if len(flat.values) else ArrayOfKind((BYTES, b""))
