"""Arrow data, of whatever library, as C reads it: tables batch by batch, and columns.

Objects hand them over in capsules (Arrow's PyCapsule interface); no Arrow library is needed.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfwire._base.arrays import joined_splits
from tfwire._base.native import borrow, check, ffi, lib, new_error, text
from tfwire._base.text import quoted
from tfwire._examples.inputs import Input
from tfwire._examples.missing import classes_of

_SAID_BY_C = "lists in lists, whose lengths no feature holds"
LISTS_IN_LISTS = (
    f"{_SAID_BY_C}; give arrays of one shape, columns with features= (write_columns, "
    "encode_columns), or steps (encode_sequence_example)"
)
_A_STRUCT = "a struct cannot be a feature; make its fields columns"
_WITH_ADVICE = {
    _SAID_BY_C: LISTS_IN_LISTS,
    _A_STRUCT: f"{_A_STRUCT}; give features if it is of a SparseFeature",
}

Array = np.ndarray[Any, Any]
_NO_LIMIT = 1 << 62


def is_arrow(value: Any) -> bool:
    """Whether a value says that it can be read as Arrow data."""
    cls = type(value)  # an instance may have an attribute of any name
    if not (hasattr(cls, "__arrow_c_stream__") or hasattr(cls, "__arrow_c_array__")):
        return False
    polars: Any = sys.modules.get("polars")
    return not (isinstance(value, classes_of(polars, "Series")) and value.dtype == polars.Object)


class ArrowImport:
    """A table that C reads, or a column.

    Args:
        value: An object with ``__arrow_c_stream__`` or ``__arrow_c_array__``.
        column: None for a table; of a column, what error messages call it.

    Attributes:
        names: The names of the table's columns, when the schema was read. A struct is a column for
            each of its fields, of one name.
        fields: The names of these fields; None: it is a column of its own.
    """

    def __init__(self, value: Any, column: str | None = None) -> None:
        self._error = new_error()
        self._column = column
        made = ffi.new("tfw_import **")
        capsules, structs = _structs_of(value)
        create = lib.tfw_import_create if column is None else lib.tfw_import_create_column
        check(create(*structs, made, self._error), self._error)
        del capsules  # until here they kept the structs
        self._import = ffi.gc(made[0], lib.tfw_import_free)
        self.names: list[bytes] = []
        self.fields: list[bytes | None] = []

    @contextmanager
    def released_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            ffi.release(self._import)
            raise

    def read_schema(self) -> None:
        count = ffi.new("size_t *")
        self._check(lib.tfw_import_schema(self._import, count, self._error))
        self.names = [self._name(column) for column in range(count[0])]
        found = (lib.tfw_import_field(self._import, column) for column in range(count[0]))
        self.fields = [None if field == ffi.NULL else ffi.string(field) for field in found]

    def batches(self, room: int) -> Generator[tuple[Any, int, Any], None, None]:
        """``tfw_input *`` of all columns, how many records they hold, and what keeps them alive."""
        found, num_records = ffi.new("tfw_input **"), ffi.new("uint64_t *")
        with self.released_on_error():
            while True:
                status = lib.tfw_import_next(self._import, room, found, num_records, self._error)
                if self._check(status) == lib.TFW_END:
                    break
                yield found[0], num_records[0], self._import
        ffi.release(self._import)

    def nest(self, column: int) -> None:
        """Keeps the lengths of a column's lists, before its first batch. It may have lists in
        lists, or be a field of a struct."""
        check(lib.tfw_import_nest(self._import, column, self._error), self._error)

    def levels(self, column: int) -> tuple[list[Array], list[Array | None]]:
        """The lists of such a column in the last batch, and as long as it: the row splits of each
        level, from the records to the values; and ``tfw_presence`` of the entries of each level and
        of the values, None where all are present."""
        found, count = ffi.new("tfw_level **"), ffi.new("size_t *")
        lib.tfw_import_levels(self._import, column, found, count)
        levels, marks = [], []
        for level in found[0][0 : count[0]]:
            levels.append(borrow(level.splits, level.count + 1, np.int64))
            is_marked = level.presence != ffi.NULL
            marks.append(borrow(level.presence, level.count, np.uint8) if is_marked else None)
        return levels, [*marks, None]

    def metadata(self, column: int, key: bytes) -> bytes | None:
        """What a column's metadata says; None: nothing.

        Raises:
            ValueError: It is not as Arrow says.
        """
        value, size = ffi.new("char **"), ffi.new("size_t *")
        arguments = self._import, column, key, value, size, self._error
        check(lib.tfw_import_metadata(*arguments), self._error)
        return None if value[0] == ffi.NULL else bytes(ffi.buffer(value[0], size[0]))

    def _name(self, column: int) -> bytes:
        name: bytes = ffi.string(lib.tfw_import_name(self._import, column))
        return name

    def _check(self, status: int) -> int:
        """Returns a status that is not a failure, and raises an exception for a failure."""
        if status >= 0:
            return status
        if status == lib.TFW_E_IO:
            message = ffi.string(lib.tfw_import_message(self._import)).decode(errors="replace")
            raise _stream_error(self._error.os_errno, message)
        if status == lib.TFW_E_MEMORY:
            raise MemoryError(text(self._error.text))
        message = text(self._error.text)
        message = _WITH_ADVICE.get(message, message)
        if self._error.record >= 0:
            message = f"record {self._error.record}: {message}"
        if self._column is not None:
            message = f"{self._column}: {message}"
        elif self._error.feature >= 0:
            name = self._name(self._error.feature).decode("utf-8", "surrogateescape")
            message = f"feature {quoted(name)}: {message}"
        raise (TypeError if status == lib.TFW_E_UNSUPPORTED else ValueError)(message)


def _stream_error(code: int, message: str) -> Exception:
    """The exception for a stream that failed in its producer."""
    said = f"the table's stream failed: {message or 'without a message'}"
    if code == errno.ENOMEM:
        return MemoryError(said)
    if code in (errno.EINVAL, errno.ENOSYS):
        return ValueError(said)
    return OSError(code, said)


# ---- Columns ------------------------------------------------------------------------------------


def arrow_column(value: Any, shown: str) -> tuple[Input, int]:
    """A column of Arrow data, or the chunks of one: its input, copied, and its length.

    Args:
        value: An object with ``__arrow_c_stream__`` or ``__arrow_c_array__``.
        shown: What error messages call it.

    Raises:
        TypeError: A type that no feature holds, or null in a list.
        ValueError: A value outside of int64, or data that is not as Arrow says.
        OSError, MemoryError: As its stream says.
    """
    source = ArrowImport(value, shown)
    with source.released_on_error():
        source.read_schema()
    chunks = [_copied(found[0], count) for found, count, _ in source.batches(_NO_LIMIT)]
    if not chunks:
        return Input(lib.TFW_INT64, np.empty(0, np.int64)), 0
    column = _joined(chunks)
    presence: Any = column.presence
    if (presence == lib.TFW_PRESENT).all():
        column = column._replace(presence=None)
    return column, len(presence)


def values_of_input(given: Any) -> tuple[Array, Array | None]:
    """The values of a ``tfw_input``, or its strings' bytes and offsets, as long as its memory."""
    kind: int = given.kind
    dtype = _DTYPES[kind]
    values = borrow(given.values, given.byte_count // np.dtype(dtype).itemsize, dtype)
    if kind != lib.TFW_BYTES:
        return values, None
    if not given.value_count:
        return values, np.zeros(1, np.int64)
    return values, borrow(given.offsets, given.value_count + 1, np.int64)


def _copied(given: Any, count: int) -> Input:
    """A ``tfw_input`` of so many records, in memory of its own, with presence and splits."""

    def copied(pointer: Any, size: int, dtype: type) -> Array:
        memory = ffi.buffer(ffi.cast("char *", pointer), size) if size else b""
        array: Array = np.frombuffer(memory, dtype).copy()
        return array

    def numbers(pointer: Any, length: int) -> Array | None:
        return None if pointer == ffi.NULL else copied(pointer, 8 * length, np.int64)

    presence = np.full(count, lib.TFW_PRESENT, np.uint8)
    if given.presence != ffi.NULL:
        presence = copied(given.presence, count, np.uint8)
    return Input(
        given.kind,
        copied(given.values, given.byte_count, _DTYPES[given.kind]),
        given.count,
        numbers(given.offsets, given.value_count + 1),
        numbers(given.splits, count + 1),
        presence=presence,
    )


def _joined(chunks: list[Input]) -> Input:
    """Chunks of one type, one after the other."""
    first = chunks[0]
    if len(chunks) == 1:
        return first
    offsets, splits = first.offsets, first.splits
    if offsets is not None:
        offsets = joined_splits(chunk.offsets for chunk in chunks)
    if splits is not None:
        splits = joined_splits(chunk.splits for chunk in chunks)
    values = np.concatenate([chunk.values for chunk in chunks])
    presence: Any = [chunk.presence for chunk in chunks]
    return first._replace(
        values=values, offsets=offsets, splits=splits, presence=np.concatenate(presence)
    )


_DTYPES: dict[int, type] = {
    lib.TFW_BYTES: np.uint8,
    lib.TFW_FLOAT: np.float32,
    lib.TFW_INT64: np.int64,
}


# ---- Capsules -----------------------------------------------------------------------------------


def _structs_of(table: Any) -> tuple[Any, tuple[Any, Any, Any]]:
    """The capsules of a table, and the structs in them: a stream, or a schema and an array."""
    _refuse_addresses(table)
    if hasattr(type(table), "__arrow_c_stream__"):
        capsule = table.__arrow_c_stream__()
        return capsule, (_struct(capsule, "ArrowArrayStream", table), ffi.NULL, ffi.NULL)
    capsules = table.__arrow_c_array__()
    if not isinstance(capsules, tuple) or len(capsules) != 2:
        found = type(table).__name__
        raise TypeError(f"__arrow_c_array__ of {found} must return two capsules")
    schema = _struct(capsules[0], "ArrowSchema", table)
    return capsules, (ffi.NULL, schema, _struct(capsules[1], "ArrowArray", table))


def _refuse_addresses(table: Any) -> None:
    """Refuses objects of Python in polars: as Arrow data they are their addresses in memory."""
    polars: Any = sys.modules.get("polars")
    columns = {}
    if isinstance(table, classes_of(polars, "DataFrame")):
        columns = dict(table.schema)
    elif isinstance(table, classes_of(polars, "Series")):
        columns = {table.name: table.dtype}
    for name, dtype in columns.items():
        while (inner := getattr(dtype, "inner", None)) is not None:
            dtype = inner
        if dtype == polars.Object:
            raise TypeError(
                f"feature {quoted(name)}: objects of Python are not Arrow data; give the column as "
                "a list"
            )


_CAPSULE_NAMES = {
    "ArrowArrayStream": b"arrow_array_stream",
    "ArrowSchema": b"arrow_schema",
    "ArrowArray": b"arrow_array",
}


def _struct(capsule: Any, name: str, table: Any) -> Any:
    """The struct in an Arrow capsule."""
    import ctypes  # the stable ABI has the function, cffi's API mode no way to call it

    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address_of = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    try:
        return ffi.cast(f"struct {name} *", address_of(capsule, _CAPSULE_NAMES[name]))
    except ValueError:
        raise TypeError(
            f"{type(table).__name__} must hand over an Arrow capsule with a {name}, "
            f"found {type(capsule).__name__}"
        ) from None
