"""The native module, which only this imports: status checks, memory from C, choice of kernels."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

import numpy as np

from tfwire import _native
from tfwire._base.errors import DataLossError, record_error
from tfwire._version import __version__

ffi: Any = _native.ffi
lib: Any = _native.lib


def _functions_of_objects() -> Any:
    modules: list[Any] = []
    if lib.tfw_add_functions(id(modules)) != lib.TFW_OK:
        raise MemoryError("no memory for the functions of C")
    return modules[0]


# The functions of C that take and give objects of Python.
objects: Any = _functions_of_objects()
# Seed of C's hash tables, so that nobody can prepare a file whose keys collide.
SEED = int.from_bytes(os.urandom(8), sys.byteorder)
DAMAGE_REASONS = {
    lib.TFW_E_TRUNCATED: "truncated",
    lib.TFW_E_LENGTH_CRC: "length crc",
    lib.TFW_E_DATA_CRC: "data crc",
    lib.TFW_E_TOO_LARGE: "too large",
    lib.TFW_E_INDEX: "index",
}


def address(memory: Any) -> int:
    """The address of C's memory, for functions of ``objects``."""
    return int(ffi.cast("uintptr_t", memory))


def text(chars: Any) -> str:
    """A C string as str."""
    return str(ffi.string(chars).decode("ascii"))


def new_struct(name: str) -> Any:
    """A struct of C that begins with its size, which tells the library what has room."""
    kind, size = _struct(name)
    struct = ffi.new(kind)
    struct.size = size
    return struct


@cache
def _struct(name: str) -> tuple[Any, int]:
    return ffi.typeof(f"{name} *"), ffi.sizeof(name)


def new_error() -> Any:
    """A tfw_error for calls into C. Keep one for many calls."""
    return ffi.new("tfw_error *")


def check(status: int, error: Any, path: str | os.PathLike[str] | None = None) -> int:
    """Returns a status that is not a failure, and raises an exception for a failure.

    Not for parse failures: ``_parsing`` makes ParseErrors, with names that C does not know.

    Raises:
        MemoryError, OSError, DataLossError, ValueError: Depending on the status.
    """
    if status >= 0:
        return status
    if status == lib.TFW_E_MEMORY:
        raise MemoryError(text(error.text))
    if status == lib.TFW_E_IO:
        raise OSError(error.os_errno, os.strerror(error.os_errno), path)
    if status in DAMAGE_REASONS:
        raise damaged_record_error(status, error, path)
    raise ValueError(text(error.text) or text(lib.tfw_status_name(status)))


def create(function: Any, kind: str, *arguments: Any) -> Any:
    """Calls a function of C that makes an object of a kind; what it made belongs to the caller."""
    out = ffi.new(f"{kind} **")
    call(function, *arguments, out)
    return out[0]


def call(function: Any, *arguments: Any) -> int:
    """``check`` of a call of a function whose last parameter is a tfw_error."""
    error = new_error()
    return check(function(*arguments, error), error)


def damaged_record_error(
    status: int, error: Any, path: str | os.PathLike[str] | None
) -> DataLossError:
    """The exception for a damaged record that C reported."""
    place, reason = (error.record, error.offset), DAMAGE_REASONS[status]
    return record_error(path, *place, text(error.text), reason)


def adopt(memory: Any, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    """A writable array over memory allocated by C, which is freed with the last view."""
    dtype = np.dtype(dtype)
    owner = ffi.gc(memory, lib.tfw_free, count * dtype.itemsize)
    return np.frombuffer(ffi.buffer(owner, count * dtype.itemsize), dtype)


def borrow(memory: Any, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    """An array over memory that stays C's."""
    dtype = np.dtype(dtype)
    return np.frombuffer(ffi.buffer(memory, count * dtype.itemsize), dtype)


_native_version = text(lib.tfw_version())
if _native_version != __version__:
    raise ImportError(f"tfwire {__version__} found a native module {_native_version}; reinstall")


def _choose_kernel() -> None:
    """Selects the checksum kernel named by TFWIRE_CRC32C. C does not read the environment."""
    name = os.environ.get("TFWIRE_CRC32C")
    if not name:
        return
    status = lib.tfw_crc32c_select(name.encode())
    if status != lib.TFW_OK:
        problem = "is not supported here" if status == lib.TFW_E_UNSUPPORTED else "does not exist"
        raise ImportError(f"TFWIRE_CRC32C={name}: this checksum kernel {problem}")


_choose_kernel()
