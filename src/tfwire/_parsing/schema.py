"""Plans as C knows them: schemas, and what may be bound to columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfwire._core import SEED, check, ffi, lib, new_error
from tfwire._parsing.spec import KINDS, Plan, Request
from tfwire._text import quoted
from tfwire.features import string

__all__ = ["Out", "Schema", "arrays_of", "create_columns"]

Array = np.ndarray[Any, Any]
Out = Mapping[Any, Array]


class Schema:
    """The tfw_schema of a plan; immutable, for any number of threads."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        features = ffi.new("tfw_feature[]", len(plan.requests))
        pinned = [
            _describe(feature, request)
            for feature, request in zip(features, plan.requests, strict=True)
        ]
        out, error = ffi.new("tfw_schema **"), new_error()
        check(lib.tfw_schema_create(features, len(features), SEED, out, error), error)
        del pinned  # C has copied everything
        self.handle = ffi.gc(out[0], lib.tfw_schema_free)
        # What is copied when it is padded: it stays C's, whose memory serves batch after batch.
        self.lent = {
            i
            for i, request in enumerate(plan.requests)
            if request.dtype != string
            and (request.layout == lib.TFW_REPEATED or (plan.lists and not request.variable))
        }
        self.grown = [
            i
            for i, request in enumerate(plan.requests)
            if i not in self.lent and (request.dtype == string or request.variable)
        ]
        self.bound = [
            Bound(i, request.name, request.shape, request.dtype.dtype)
            for i, request in enumerate(plan.requests)
            if request.layout == lib.TFW_DENSE and request.dtype != string and not plan.lists
        ]


class Bound(NamedTuple):
    """A column that C writes into a numpy array: dense numbers of records.

    Attributes:
        column: Its index.
        name: The feature's key, as the user wrote it.
        shape: Of one record.
        dtype: int64 or float32.
    """

    column: int
    name: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _describe(feature: Any, request: Request) -> list[Any]:
    """Fills in a tfw_feature; returns what it points into."""
    pinned = [ffi.from_buffer("char[]", request.key)]
    feature.name, feature.name_len = pinned[0], len(request.key)
    feature.kind = KINDS[request.dtype]
    feature.layout = request.layout
    feature.count = request.num_values
    feature.has_default = request.optional
    if request.default is not None and request.optional:
        values, offsets = request.default if request.dtype == string else (request.default, None)
        pinned.append(ffi.from_buffer(values))
        feature.default_values = pinned[-1]
        if offsets is not None:
            pinned.append(ffi.from_buffer("int64_t[]", offsets))
            feature.default_offsets = pinned[-1]
    return pinned


def arrays_of(out: Any, schema: Schema | None, count: int) -> dict[Any, Array]:
    """The arrays that C may write count records to, as plain ones, looked at once.

    A Mapping may answer differently the next time, and a subclass of ndarray may say anything of
    its shape; neither is asked again.

    Raises:
        TypeError, ValueError: C may not write to an array.
    """
    columns = {} if schema is None else {column.name: column for column in schema.bound}
    if not isinstance(out, Mapping):
        raise TypeError(f"out must be a dict of arrays, found {type(out).__name__}")
    arrays = {}
    for key, given in list(out.items()):
        if key not in columns:
            raise ValueError(f"out: {quoted(key)} is no FixedLenFeature of numbers")
        _, _, shape, dtype = columns[key]
        array = np.asarray(given) if issubclass(type(given), np.ndarray) else None
        if array is None or array.dtype != dtype:
            found = type(given).__name__ if array is None else array.dtype
            raise TypeError(f"out: {quoted(key)} must be an array of {dtype}, found {found}")
        if array.ndim != len(shape) + 1 or array.shape[1:] != shape or len(array) < count:
            raise ValueError(
                f"out: {quoted(key)} must be of shape {(count, *shape)}, found {array.shape}"
            )
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(f"out: {quoted(key)} must be C-contiguous and writable")
        arrays[key] = array
    return arrays


def create_columns(schema: Schema) -> Any:
    """A ``tfw_columns *``; the schema must live as long as it is used."""
    out, error = ffi.new("tfw_columns **"), new_error()
    flags = lib.TFW_FEATURE_LISTS if schema.plan.lists else 0
    check(lib.tfw_columns_create(schema.handle, flags, out, error), error)
    return ffi.gc(out[0], lib.tfw_columns_free)
