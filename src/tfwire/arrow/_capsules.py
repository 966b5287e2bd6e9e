"""PyCapsules of Arrow structs. C makes the structs and frees them, also while Python ends."""

from __future__ import annotations

import ctypes
from typing import Any

from tfwire._base.native import check, ffi, lib, new_error

# A function object of our own: other libraries set the types of that in ctypes.pythonapi.
_prototype = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_void_p] * 3)
_new_capsule = _prototype(("PyCapsule_New", ctypes.pythonapi))


def create(function: Any, kind: str, *arguments: Any) -> Any:
    """Calls a function of C that makes an object of a kind; what it made belongs to the caller."""
    out, error = ffi.new(f"{kind} **"), new_error()
    check(function(*arguments, out, error), error)
    return out[0]


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
