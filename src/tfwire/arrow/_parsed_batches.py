"""Files parsed into batches of Arrow: the parser of Examples, with columns whose memory is C's; and
PyCapsules of Arrow structs. C makes the structs and frees them, also while Python ends."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from tfwire._base.native import check, create, ffi, lib, new_error, text
from tfwire._parsing.chunk_columns import first_misfit, rows_of_chunk
from tfwire._parsing.failure import ADVICE, ParseFailure, Place, parse_error
from tfwire._parsing.file_chunks import FileParser, PathsOfFiles
from tfwire._records.reading.damage import display_name
from tfwire._records.reading.pipeline import Chunk
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


class BatchParser(FileParser[RecordBatch]):
    """Parses Examples or SequenceExamples of files into RecordBatches."""

    def __init__(self, layout: TableLayout) -> None:
        self._set_schemas(layout.schemas)
        self._layout = layout
        self._pipeline_flags = lib.TFW_PIPELINE_NOTE_ABSENT
        if layout.positions:
            self._pipeline_flags |= lib.TFW_PIPELINE_POSITIONS
        self._flags = lib.TFW_EMPTY_IS_MISSING if layout.sampled else 0

    def _batches_of(
        self, chunk: Chunk, count: int, size: int, paths: PathsOfFiles
    ) -> Iterator[RecordBatch]:
        names, pinned = self._names(chunk, paths)
        out, failure = ffi.new("struct ArrowArray **"), None
        while count and (found := self._create_array(chunk, count, names, out)) is not None:
            failure, count = found, found.record or 0
        del pinned
        array = ffi.gc(out[0], lib.tfw_arrow_array_free) if count else None
        for first in range(0, count, size):
            yield RecordBatch(self._layout, array, first, min(size, count - first))
        if failure is not None:
            place = chunk.place(count)
            where = Place(paths(place.file), place.position.record_index)
            raise parse_error(failure, where, advice=ADVICE if self._layout.sampled else "")

    def _names(self, chunk: Chunk, paths: PathsOfFiles) -> tuple[Any, Any]:
        """The names of a chunk's files, if they are columns, and what they point into."""
        if not self._layout.positions:
            return ffi.NULL, None
        files = range(chunk.begin.file, chunk.end.file + 1)
        names = [display_name(paths(file)).encode("utf-8", "backslashreplace") for file in files]
        pinned = [ffi.new("char[]", name) for name in names]
        return ffi.new("char *[]", pinned), pinned

    def _create_array(self, chunk: Chunk, count: int, names: Any, out: Any) -> ParseFailure | None:
        """Makes an array of the first records of a chunk; or the first one that no array can hold
        is returned."""
        error = new_error()
        status = lib.tfw_arrow_chunk_create(
            self._layout.handle, chunk.native, 0, count, names, out, error
        )
        if status not in _REASONS:
            check(status, error)
            return None
        record, field = error.record, self._layout.fields[error.feature]
        reason = "shape" if field.is_scalar and status == lib.TFW_E_COUNT else _REASONS[status]
        if status == lib.TFW_E_COUNT:  # the fields know the numbers, for the message
            rows = rows_of_chunk(chunk, self._schemas).between(0, record + 1)
            failure = first_misfit(self._plans, rows)
            if failure is not None:
                return failure
        message = f"Key: {field.name}.  {text(error.text)}"
        return ParseFailure(reason, field.name, record, message)
