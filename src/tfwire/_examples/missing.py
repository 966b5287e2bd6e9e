"""Cells without a value, as each library writes them, and the columns of pandas that hold them.

A cell that is missing is an absent feature. No library is imported: its classes are
known by their names, or by what they can do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from tfwire._base.text import quoted

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


def columns_of_frame(value: Any) -> Any:
    """The columns of a DataFrame by their names and, if its index has labels, those of the index.

    Names, and which index has labels, are what ``pyarrow.Table.from_pandas`` makes of them. What is
    not a DataFrame is returned as it is.

    Raises:
        ValueError: Two columns have one name.
    """
    pandas = sys.modules.get("pandas")
    if not isinstance(value, classes_of(pandas, "DataFrame")):
        return value
    columns: dict[str | bytes, Any] = {}
    for label, column in value.items():
        name = label if isinstance(label, (str, bytes)) else str(label)
        if name in columns:
            raise ValueError(f"two columns are named {quoted(name)}")
        columns[name] = column
    if not isinstance(value.index, classes_of(pandas, "RangeIndex")):
        for level, label in enumerate(value.index.names):
            is_name = label is not None and str(label) not in columns
            name = str(label) if is_name else f"__index_level_{level}__"
            columns[name] = value.index.get_level_values(level)
    if not columns:  # its rows have no features
        columns[""] = [None] * len(value)
    return columns


def array_of_pandas(value: Any) -> Any:
    """A Series, Index or extension array as an array of numpy, masked where cells are missing, or
    as one of Arrow. Anything else is returned as it is.

    A NaN in an array of floats is a value, as numpy has it.
    """
    pandas = sys.modules.get("pandas")
    if isinstance(value, classes_of(pandas, "Series", "Index")):
        value = value.array
    elif not isinstance(value, classes_of(pandas, "api.extensions.ExtensionArray")):
        return value
    if isinstance(value, classes_of(pandas, "arrays.ArrowExtensionArray")):
        return value.__arrow_array__()
    if isinstance(value, classes_of(pandas, "Categorical")):
        return _of_categories(np.asarray(value.codes), np.asarray(value.categories))
    masked = [f"arrays.{name}" for name in ("IntegerArray", "FloatingArray", "BooleanArray")]
    if isinstance(value, classes_of(pandas, *masked)):
        dtype = value.dtype.numpy_dtype
        return _masked(value.to_numpy(dtype, na_value=dtype.type()), value)
    if value.dtype.kind == "M":  # with a time zone or without: no feature holds it
        return np.asarray(value.view("i8")).view("M8[ns]")
    array = np.asarray(value)
    is_numpy = hasattr(value.dtype, "numpy_dtype")  # then a NaN may be a value
    return array if is_numpy or array.dtype != object else _masked(array, value)


def classes_of(module: Any, *names: str) -> Any:
    """Classes of a library, as far as it is imported and has them."""
    found = []
    for name in names:
        part = module
        for attribute in name.split("."):
            part = getattr(part, attribute, None)
        if part is not None:
            found.append(part)
    return tuple(found)


def _masked(array: Array, value: Any) -> Array:
    absent = np.asarray(value.isna())
    return np.ma.MaskedArray(array, absent) if absent.any() else array


def _of_categories(codes: Array, categories: Array) -> Array:
    absent = codes < 0
    values = np.zeros(len(codes), categories.dtype)
    values[~absent] = categories[codes[~absent]]
    return np.ma.MaskedArray(values, absent) if absent.any() else values
