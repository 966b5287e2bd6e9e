"""What a user hands over as a record, as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

__all__ = ["as_record", "as_records", "chunks"]

_MOST = 4096  # records of a chunk
_BYTES = 1 << 18  # of a chunk, about


def as_record(value: Any) -> bytes:
    """One record: a bytes-like object, a str (as UTF-8), a mapping (encoded as an Example), a
    protobuf message, or an object whose ``numpy()`` is one of them.

    Raises:
        TypeError: Anything else.
    """
    if isinstance(value, bytes):
        return memoryview(value).tobytes()  # bytes(value) may be of a subclass, with its own len()
    if isinstance(value, str):
        return str.encode(value)
    if isinstance(value, Mapping):
        from tfwire.example import encode_example

        return encode_example(value)
    if hasattr(value, "SerializeToString"):
        return memoryview(value.SerializeToString()).tobytes()
    if hasattr(value, "numpy"):
        return as_record(value.numpy())
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 0:
        return as_record(value[()])
    if not isinstance(value, np.generic):  # scalars have buffers too, but are no strings
        try:
            view = memoryview(value)
        except TypeError:
            pass
        else:
            if view.format != "O":
                return view.tobytes()
    raise TypeError(
        "a record must be bytes-like, a str, a mapping or a protobuf message, found "
        f"{type(value).__name__}"
    )


def as_records(values: Sequence[Any]) -> Sequence[bytes]:
    """Many records. Nothing is done for exact bytes, and rows are encoded together.

    Raises:
        TypeError, ValueError: As ``as_record``, for some of the values.
    """
    types = set(map(type, values))
    if types <= {bytes}:
        return values
    if all(issubclass(kind, Mapping) for kind in types):
        from tfwire.example import encode_examples

        return encode_examples(values)
    return [as_record(value) for value in values]


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """An iterable in lists, which hold more items when items are short.

    Raises:
        TypeError: One record instead of many, or columns.
    """
    if isinstance(values, (bytes, bytearray, memoryview, str)):
        raise TypeError(f"expected an iterable of records, found {type(values).__name__}")
    if isinstance(values, Mapping):
        raise TypeError("expected an iterable of records, found a mapping: see write_columns")
    if isinstance(values, np.ndarray) and values.dtype.kind == "S":
        raise TypeError("numpy 'S' arrays drop trailing NUL bytes; use dtype=object for records")
    try:
        iterator = iter(values)
    except TypeError:
        found = type(values).__name__
        raise TypeError(f"expected an iterable of records, found {found}") from None
    return _chunks(iterator)


def _chunks(iterator: Iterator[Any]) -> Iterator[list[Any]]:
    count = 1
    while chunk := list(islice(iterator, count)):
        yield chunk
        size = sum(map(_size, chunk[-4:]))
        count = min(2 * count, _MOST, max(1, _BYTES * len(chunk[-4:]) // max(1, size)))


def _size(value: Any) -> int:
    """About how long a record is; scalar tensors and arrays have a ``len`` that raises."""
    try:
        return len(value)
    except TypeError:
        return 1
