"""numpy as it is on Windows before numpy 2, with default integers of 32 bits, for tfwire's modules.

And calls into C that look at what they are given: an array of 32 bits that C reads as 64 is read
beyond its end.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tfwire
from tfwire._base.native import ffi

# Bytes of an item of what C reads.
_ITEMS = {"int64_t[]": 8, "uint64_t[]": 8, "tfw_span[]": 8, "int32_t[]": 4, "float[]": 4}


def _narrow(array: Any) -> Any:
    """Default integers as int32, unless one does not fit."""
    if array.dtype != np.int64 or np.abs(array).max(initial=0) >= 2**31:
        return array
    return array.astype(np.int32)


def _is_default(value: Any) -> bool:
    """True of Python's integers, and lists of them."""
    if isinstance(value, (list, tuple, range)):
        return len(value) > 0 and all(map(_is_default, value))
    return type(value) is int


class WindowsNumpy:
    """The module numpy for one of tfwire's modules."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def arange(self, *arguments: Any, dtype: Any = None) -> Any:
        array = np.arange(*arguments, dtype=dtype)
        made = dtype is None and len(arguments) < 4 and all(map(_is_default, arguments))
        return _narrow(array) if made else array

    def _made(self, function: Any, value: Any, *arguments: Any, **options: Any) -> Any:
        array = function(value, *arguments, **options)
        made = not arguments and options.get("dtype") is None and _is_default(value)
        return _narrow(array) if made else array

    def array(self, value: Any, *arguments: Any, **options: Any) -> Any:
        return self._made(np.array, value, *arguments, **options)

    def asarray(self, value: Any, *arguments: Any, **options: Any) -> Any:
        return self._made(np.asarray, value, *arguments, **options)

    def ascontiguousarray(self, value: Any, *arguments: Any, **options: Any) -> Any:
        return self._made(np.ascontiguousarray, value, *arguments, **options)

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        array = np.full(shape, value, dtype)
        return _narrow(array) if dtype is None and _is_default(value) else array

    def cumsum(self, values: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        array = np.cumsum(values, axis, dtype, out)
        short = np.asarray(values).dtype.kind in "bi" and np.asarray(values).dtype.itemsize < 8
        return _narrow(array) if dtype is None and out is None and short else array


class CheckedFfi:
    """cffi's ffi, which looks at the arrays that C gets."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(ffi, name)

    def from_buffer(self, kind: Any, *arguments: Any, **options: Any) -> Any:
        array = arguments[0] if arguments else kind
        if isinstance(array, np.ndarray):
            assert array.flags.c_contiguous, kind
            if isinstance(kind, str) and kind in _ITEMS:
                assert array.itemsize == _ITEMS[kind], (kind, array.dtype)
                self.seen.add(kind)
        return ffi.from_buffer(kind, *arguments, **options)


def install(setattr: Callable[[Any, str, Any], object] = setattr) -> CheckedFfi:
    """Gives tfwire's modules this numpy, and these calls."""
    for module in pkgutil.walk_packages(tfwire.__path__, "tfwire."):
        try:
            importlib.import_module(module.name)
        except ImportError:  # a neighbour that is not here
            continue
    checked = CheckedFfi()
    for name, module in sorted(sys.modules.items()):
        if name.startswith("tfwire.") and name != "tfwire._native":
            if getattr(module, "np", None) is np:
                setattr(module, "np", WindowsNumpy())
            if getattr(module, "ffi", None) is ffi:
                setattr(module, "ffi", checked)
    return checked


def pytest_configure() -> None:
    """As a plugin, for any tests: ``pytest -p windows_numpy``."""
    install()
