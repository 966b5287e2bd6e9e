"""Columns and frames of pandas as arrays that say which cells are missing.

pandas is not imported: who has an object of it has imported it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tfwire._base.text import quoted

Array = np.ndarray[Any, Any]


def columns_of_frame(value: Any) -> Any:
    """The columns of a DataFrame by their names and, if its index has labels, those of the index.

    Names, and which index has labels, are what ``pyarrow.Table.from_pandas`` makes of them. What is
    not a DataFrame is returned as it is.

    Raises:
        ValueError: Two columns have one name.
    """
    pandas = sys.modules.get("pandas")
    if not isinstance(value, _classes(pandas, "DataFrame")):
        return value
    columns: dict[str | bytes, Any] = {}
    for label, column in value.items():
        name = label if isinstance(label, (str, bytes)) else str(label)
        if name in columns:
            raise ValueError(f"two columns are named {quoted(name)}")
        columns[name] = column
    if not isinstance(value.index, _classes(pandas, "RangeIndex")):
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
    if isinstance(value, _classes(pandas, "Series", "Index")):
        value = value.array
    elif not isinstance(value, _classes(pandas, "api.extensions.ExtensionArray")):
        return value
    if isinstance(value, _classes(pandas, "arrays.ArrowExtensionArray")):
        return value.__arrow_array__()
    if isinstance(value, _classes(pandas, "Categorical")):
        return _of_categories(np.asarray(value.codes), np.asarray(value.categories))
    masked = [f"arrays.{name}" for name in ("IntegerArray", "FloatingArray", "BooleanArray")]
    if isinstance(value, _classes(pandas, *masked)):
        dtype = value.dtype.numpy_dtype
        return _masked(value.to_numpy(dtype, na_value=dtype.type()), value)
    if value.dtype.kind == "M":  # with a time zone or without: no feature holds it
        return np.asarray(value.view("i8")).view("M8[ns]")
    array = np.asarray(value)
    is_numpy = hasattr(value.dtype, "numpy_dtype")  # then a NaN may be a value
    return array if is_numpy or array.dtype != object else _masked(array, value)


def _classes(pandas: Any, *names: str) -> Any:
    """Classes of pandas, as far as it is imported and has them."""
    found = []
    for name in names:
        part = pandas
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
