"""Cells without a value, as each library writes them. A cell that is missing is an absent feature.

No library is imported: its classes are known by their names, or by what they can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_PLAIN = frozenset({bool, int, float, bytes, str, bytearray, list, tuple, np.ndarray})


def is_missing(value: Any) -> bool:
    """Whether a value is None, pandas' NA or NaT, numpy's masked or NaT, or a null of Arrow.

    A NaN is a value.
    """
    cls = type(value)
    return _is_missing_class(cls) or (_may_be_missing(cls) and _is_missing_instance(value))


def _is_missing_class(cls: type) -> bool:
    """Whether all objects of a class are missing."""
    if cls in _PLAIN:
        return False
    is_pandas = cls.__name__ in ("NAType", "NaTType") and cls.__module__.startswith("pandas.")
    return is_pandas or cls is type(None) or cls is type(np.ma.masked)


def _may_be_missing(cls: type) -> bool:
    """Whether it is the object that says whether it is missing."""
    if cls in _PLAIN:
        return False
    return issubclass(cls, (np.datetime64, np.timedelta64, np.ma.MaskedArray)) or hasattr(
        cls, "as_py"
    )


def _is_missing_instance(value: Any) -> bool:
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, np.ma.MaskedArray):
        return value.ndim == 0 and bool(np.ma.getmaskarray(value))
    return value.as_py() is None  # a scalar of Arrow


# ---- Columns of objects -------------------------------------------------------------------------


def absent_entries(entries: Sequence[Any], types: Iterable[type], is_array: bool) -> Array | None:
    """Which entries of a column are missing.

    A NaN is missing, too, where no other entry is a number: pandas marks missing strings and lists
    so. In an array of objects, it stands for a missing integer as well, unless another entry is a
    float: of floats alone, numpy makes an array of floats.

    Args:
        entries: The entries.
        types: Their types.
        is_array: They come from an array of objects.

    Returns:
        A bool for each, or None if none is missing.
    """
    missing = {cls for cls in types if _is_missing_class(cls)}
    asked = {cls for cls in types if _may_be_missing(cls)} - missing
    floats = {cls for cls in types if issubclass(cls, (float, np.floating))}
    others = set(types) - missing - asked - floats
    absent = None
    if missing:
        absent = _of_types(entries, missing)
    if asked:
        where = _of_types(entries, asked)
        where[where] = [_is_missing_instance(value) for value in compress(entries, where)]
        absent = where if absent is None else absent | where
    if floats and (is_array or (others and not any(map(_is_number, others)))):
        where = _of_types(entries, floats)
        if np.isnan(np.array(list(compress(entries, where)), np.float64)).all():
            absent = where if absent is None else absent | where
    return absent if absent is not None and absent.any() else None


def _of_types(entries: Sequence[Any], types: set[type]) -> Array:
    return np.fromiter(map(types.__contains__, map(type, entries)), np.bool_, len(entries))


def _is_number(cls: type) -> bool:
    return issubclass(cls, (int, np.integer, np.bool_))
