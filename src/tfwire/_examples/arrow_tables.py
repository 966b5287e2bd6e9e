"""Tables of Arrow data, of whatever library: the encoder's inputs, batch by batch.

Objects hand them over in capsules (Arrow's PyCapsule interface); no Arrow library is needed.
"""

from __future__ import annotations

import errno
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from tfwire._base.native import check, ffi, lib, new_error, text
from tfwire._base.text import quoted
from tfwire._examples.native_encoder import NativeInputs
from tfwire._examples.values import show

__all__ = ["batches_of_table", "is_table"]


def is_table(value: Any) -> bool:
    """Whether a value says that it can be read as Arrow data."""
    cls = type(value)  # an instance may have an attribute of any name
    return hasattr(cls, "__arrow_c_stream__") or hasattr(cls, "__arrow_c_array__")


def batches_of_table(
    table: Any, sort_keys: bool, room: int
) -> Generator[tuple[NativeInputs, int], None, None]:
    """The columns of a table, some records at a time.

    Args:
        table: An object with ``__arrow_c_stream__`` or ``__arrow_c_array__``.
        sort_keys: Order features by their names' bytes.
        room: Bytes of memory that conversions may take at a time, unless one record needs more.

    Returns:
        A generator of inputs, valid until the next ones, and the number of their records. Closing
        it releases the table.

    Raises:
        TypeError: Not a table, a column of a type that no feature holds, or null in a list.
        ValueError: A value outside of int64, two columns of one name, or data that is not as Arrow
            says.
        OSError, MemoryError: As the table's stream says.
    """
    source = _Source(table)
    with source.released_on_error():
        source.read_schema(sort_keys)
    return source.batches(room)


class _Source:
    """A table that C reads."""

    def __init__(self, table: Any) -> None:
        self._error = new_error()
        made = ffi.new("tfw_import **")
        capsules, structs = _structs_of(table)
        check(lib.tfw_import_create(*structs, made, self._error), self._error)
        del capsules  # until here they kept the structs
        self._import = ffi.gc(made[0], lib.tfw_import_free)
        self._keys: list[bytes] = []
        self._order: list[int] = []  # of the columns, by their keys

    @contextmanager
    def released_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            ffi.release(self._import)
            raise

    def read_schema(self, sort_keys: bool) -> None:
        count = ffi.new("size_t *")
        self._check(lib.tfw_import_schema(self._import, count, self._error))
        names = [self._name(column) for column in range(count[0])]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two columns are named {quoted(_decoded(twice))}")
        numbers = range(len(names))
        self._order = sorted(numbers, key=names.__getitem__) if sort_keys else list(numbers)
        self._keys = [names[column] for column in self._order]

    def batches(self, room: int) -> Generator[tuple[NativeInputs, int], None, None]:
        found, num_records = ffi.new("tfw_input **"), ffi.new("uint64_t *")
        inputs = ffi.new("tfw_input[]", len(self._order))
        with self.released_on_error():
            while True:
                status = lib.tfw_import_next(self._import, room, found, num_records, self._error)
                if self._check(status) == lib.TFW_END:
                    break
                for i, column in enumerate(self._order):
                    inputs[i] = found[0][column]
                yield NativeInputs(self._keys, inputs, self._import), num_records[0]
        ffi.release(self._import)

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
        if self._error.record >= 0:
            message = f"record {self._error.record}: {message}"
        if self._error.feature >= 0:
            message = f"{show(_decoded(self._name(self._error.feature)))}: {message}"
        raise (TypeError if status == lib.TFW_E_UNSUPPORTED else ValueError)(message)


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _stream_error(code: int, message: str) -> Exception:
    """The exception for a stream that failed in its producer."""
    said = f"the table's stream failed: {message or 'without a message'}"
    if code == errno.ENOMEM:
        return MemoryError(said)
    if code in (errno.EINVAL, errno.ENOSYS):
        return ValueError(said)
    return OSError(code, said)


# ---- Capsules -----------------------------------------------------------------------------------


def _structs_of(table: Any) -> tuple[Any, tuple[Any, Any, Any]]:
    """The capsules of a table, and the structs in them: a stream, or a schema and an array."""
    if hasattr(type(table), "__arrow_c_stream__"):
        capsule = table.__arrow_c_stream__()
        return capsule, (_struct(capsule, "ArrowArrayStream", table), ffi.NULL, ffi.NULL)
    capsules = table.__arrow_c_array__()
    if not isinstance(capsules, tuple) or len(capsules) != 2:
        found = type(table).__name__
        raise TypeError(f"__arrow_c_array__ of {found} must return two capsules")
    schema = _struct(capsules[0], "ArrowSchema", table)
    return capsules, (ffi.NULL, schema, _struct(capsules[1], "ArrowArray", table))


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
