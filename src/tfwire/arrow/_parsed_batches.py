"""Files parsed into batches of Arrow: the parser of Examples, with columns whose memory is C's; and
PyCapsules of Arrow structs. C makes the structs and frees them, also while Python ends."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.errors import ParseError
from tfwire._base.native import check, create, ffi, lib, new_struct, text
from tfwire._parsing.base_parser import BaseParser
from tfwire._parsing.failure import ParseFailure, Place, parse_error
from tfwire._parsing.native_session import Session
from tfwire._records.files.paths import Path
from tfwire._records.reading.damage import display_name
from tfwire._records.reading.native_batches import Stretch
from tfwire.arrow._layout import TableLayout

# What C reports of a record that no array can hold: the reason of the ParseError.
_REASONS = {
    lib.TFW_E_COUNT: "partition",
    lib.TFW_E_WIRE: "utf-8",
    lib.TFW_E_UNSUPPORTED: "too large",
}


# ---- Capsules -----------------------------------------------------------------------------------
# A function object of our own: other libraries set the types of that in ctypes.pythonapi.
_prototype = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_void_p] * 3)
_new_capsule = _prototype(("PyCapsule_New", ctypes.pythonapi))


def _capsule(index: int, struct: Any) -> object:
    """A capsule that owns a struct. Names and destructors are in C, and outlive it."""
    name = int(ffi.cast("uintptr_t", lib.tfw_capsule_names[index]))
    address = int(ffi.cast("uintptr_t", struct))
    return _new_capsule(address, name, lib.tfw_capsule_destructors[index])


def schema_capsule(layout: Any) -> object:
    """A capsule "arrow_schema" of a ``tfw_arrow_layout *``."""
    return _capsule(0, create(lib.tfw_arrow_schema_create, "struct ArrowSchema", layout))


def array_capsule(array: Any, first: int, count: int) -> object:
    """A capsule "arrow_array" of some records of an array of ours."""
    return _capsule(1, create(lib.tfw_arrow_array_share, "struct ArrowArray", array, first, count))


def stream_capsule(layout: Any, options: Any) -> object:
    """A capsule "arrow_array_stream"."""
    return _capsule(
        2, create(lib.tfw_arrow_stream_create, "struct ArrowArrayStream", layout, options)
    )


# ---- Batches ------------------------------------------------------------------------------------
class RecordBatch:
    """Some records as columns, in Arrow's memory. Made by an ArrowReader.

    Whatever takes an object with ``__arrow_c_array__`` takes it, without a copy:
    ``pyarrow.record_batch(batch)``, ``polars.DataFrame(batch)``, ``nanoarrow.Array(batch)``. Each
    may have it again and again; the memory is freed when the last of them and this object are gone.

    Attributes:
        num_rows: Number of records.
    """

    __slots__ = ("_array", "_first", "_layout", "num_rows")

    def __init__(self, layout: TableLayout, array: object, first: int, num_rows: int) -> None:
        self._layout = layout
        self._array: Any = array
        self._first = first
        self.num_rows: int = num_rows

    def __arrow_c_schema__(self) -> object:
        """The type, as Arrow's PyCapsule interface has it."""
        return schema_capsule(self._layout.handle)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Type and columns, as Arrow's PyCapsule interface has them. The type is that of the
        reader, whatever is requested."""
        array = array_capsule(self._array, self._first, self.num_rows)
        return self.__arrow_c_schema__(), array

    def _shared(self) -> Any:
        """Another ``struct ArrowArray *`` of the records, which frees itself."""
        function, kind = lib.tfw_arrow_array_share, "struct ArrowArray"
        array = create(function, kind, self._array, self._first, self.num_rows)
        return ffi.gc(array, lib.tfw_arrow_array_free)

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return f"RecordBatch({self.num_rows} rows, {len(self._layout.types())} columns)"


class Origin(NamedTuple):
    """Where some consecutive records of a batch come from.

    Attributes:
        path: Their file.
        numbers: In the file.
        offsets: In the file; empty where nobody asks for them.
    """

    path: Path | None
    numbers: np.ndarray[Any, Any]
    offsets: np.ndarray[Any, Any]


class BatchSession(Session):
    """Columns that become arrays, and where their records come from."""

    def __init__(self, layout: TableLayout) -> None:
        super().__init__(tuple(layout.schemas), 0)
        self._layout = layout
        self._origins: list[Origin] = []

    def begin_unit(self, capacity: int, goal: int) -> None:
        self._origins.clear()
        super().begin_unit(capacity, 0)  # `take` finishes the columns

    def append(self, data: Any, data_len: int, spans: Any, count: int, first: int) -> None:
        done = 0
        try:
            super().append(data, data_len, spans, count, first)
            done = count
        except BaseException:
            done = self.done[0]
            raise
        finally:
            self._note_window(spans, done)

    def _note_window(self, spans: Any, count: int) -> None:
        window = self.window
        assert window is not None
        skipped = spans - window.spans
        table = np.frombuffer(ffi.buffer(spans, count * ffi.sizeof("tfw_span")), np.int64)
        offsets = table[::2] + (window.offset - lib.TFW_HEADER_SIZE)
        if window.numbers:
            size = count * ffi.sizeof("uint64_t")
            numbers = np.frombuffer(ffi.buffer(window.numbers + skipped, size), np.int64).copy()
        else:
            numbers = np.arange(count, dtype=np.int64) + (window.first_record + skipped)
        self._origins.append(Origin(window.path, numbers, offsets))

    def read(self, stretch: Stretch, count: int, first: int) -> int:
        number = stretch.record
        try:
            return super().read(stretch, count, first)
        finally:
            numbers = np.arange(number, number + self.done[0], dtype=np.int64)
            self._origins.append(Origin(stretch.path, numbers, numbers[:0]))

    def take(self, count: int) -> Any:
        """The records as an array, and the error that comes after it or None. The array has fewer
        if one of them does not fit."""
        error = None
        while count:
            out = ffi.new("struct ArrowArray **")
            status = self._create_array(count, out)
            if status == lib.TFW_OK:
                return ffi.gc(out[0], lib.tfw_arrow_array_free), count, error
            if status not in _REASONS:
                check(status, self.error)
            error = self._misfit(status)
            count = self.error.record
            self.truncate(count)
        return None, 0, error

    def _create_array(self, count: int, out: Any) -> int:
        context, lists = self.handles[0], self.handles[-1] if len(self.handles) == 2 else ffi.NULL
        positions, pinned = self._positions(count) if self._layout.positions else (ffi.NULL, None)
        status: int = lib.tfw_arrow_array_create(
            self._layout.handle, context, lists, count, positions, out, self.error
        )
        del pinned
        return status

    def _positions(self, count: int) -> tuple[Any, Any]:
        """The ``tfw_arrow_positions *`` of the records, and what it points into."""
        origins = [origin for origin in self._origins if len(origin.numbers)]
        names = [display_name(origin.path) for origin in origins]
        index = {name: i for i, name in enumerate(dict.fromkeys(names))}
        paths = [ffi.new("char[]", _utf8(name)) for name in index]
        table = ffi.new("char *[]", paths)
        files = np.repeat(
            np.array([index[name] for name in names], np.int32),
            [len(origin.numbers) for origin in origins],
        )
        numbers = np.concatenate([origin.numbers for origin in origins])
        offsets = np.concatenate([origin.offsets for origin in origins])
        assert len(files) >= count
        native = new_struct("tfw_arrow_positions")
        native.paths, native.path_count = table, len(paths)
        native.files = ffi.from_buffer("int32_t[]", files)
        native.numbers = ffi.from_buffer("int64_t[]", numbers)
        native.offsets = ffi.from_buffer("int64_t[]", offsets)
        return native, (paths, table, files, numbers, offsets)

    def _misfit(self, status: int) -> ParseError:
        """The error of a record that no array can hold."""
        record, field = self.error.record, self._layout.fields[self.error.feature]
        message = f"Key: {field.name}.  {text(self.error.text)}"
        failure = ParseFailure(_REASONS[status], field.name, record, message)
        for origin in self._origins:
            if record < len(origin.numbers):
                return parse_error(failure, Place(origin.path, int(origin.numbers[record])))
            record -= len(origin.numbers)
        return parse_error(failure, Place())


def _utf8(name: str) -> bytes:
    return name.encode("utf-8", "backslashreplace")


class BatchParser(BaseParser[RecordBatch, None]):
    """Parses Examples or SequenceExamples of files into RecordBatches."""

    def __init__(self, layout: TableLayout) -> None:
        self._start(layout.schemas, "column", False)
        self._layout = layout
        self._needs_windows = layout.positions

    def _acquire(self) -> Session:
        try:
            return self._sessions.pop()
        except IndexError:
            return BatchSession(self._layout)

    def _batches(self, parts: Any, count: int, size: int) -> Iterator[RecordBatch]:
        array, count, error = parts
        for first in range(0, count, size):
            yield RecordBatch(self._layout, array, first, min(size, count - first))
        if error is not None:
            raise error

    def _single(self, parts: Any) -> None:
        raise NotImplementedError  # readers of Arrow data parse files alone, in batches
