"""Compiling a specification: checks, the columns that C parses, and the fields made of them.

The checks and their messages are TensorFlow's (python/ops/parsing_config.py of version 2.21), so
that a wrong specification fails the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.arguments import (
    as_index,
    boolean,
    check_type,
    integer,
    refuse_unordered,
    wrong_type,
)
from tfwire._base.native import lib
from tfwire._base.text import quoted, show_key
from tfwire._examples.values import (
    BYTES,
    FLOAT,
    INT64,
    as_float32,
    as_int64,
    as_strings,
    flatten_value,
    key_bytes,
    string_bytes,
)
from tfwire._parsing.features import (
    DType,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    as_feature,
    float32,
    int64,
    string,
    to_dtype,
)
from tfwire._parsing.fields import Cuts, Dense, Field, Padded, Sparse, Steps, StepValues, VarLen
from tfwire._parsing.ragged import Partition, Ragged

Key = Any  # str, or bytes for keys that are not UTF-8

_MAX_VALUES = 2**60  # no buffer could hold more

KINDS = {string: BYTES, float32: FLOAT, int64: INT64}


class Request(NamedTuple):
    """A column that C parses.

    Attributes:
        key: The feature's key.
        name: The key as the user wrote it.
        dtype: int64, float32 or string.
        layout: enum tfw_layout.
        shape: Of a dense record or step, or of a repeated element; else ().
        optional: A dense feature may be absent.
        default: The values of an absent dense feature: an array, or bytes and offsets of strings.
    """

    key: bytes
    name: Key
    dtype: DType
    layout: int
    shape: tuple[int, ...] = ()
    optional: bool = False
    default: Any = None

    @property
    def variable(self) -> bool:
        """True if any number of values is allowed."""
        return self.layout == int(lib.TFW_VARIABLE)

    @property
    def num_values(self) -> int:
        """Number of values of a record, a step or an element."""
        return math.prod(self.shape)


class Plan(NamedTuple):
    """A compiled specification.

    Attributes:
        features: The specification in our own classes and dtypes.
        requests: The columns that C parses.
        fields: By key: makes the result from the columns.
        lists: True for the feature lists of a SequenceExample.
        cuts: How the results of many batches are made of the columns: C cuts numbers.
    """

    features: dict[Key, Any]
    requests: list[Request]
    fields: dict[Key, Field]
    lists: bool
    cuts: Cuts


# The argument of the specification of each part.
ARGUMENTS = {"example": "features", "context": "context_features", "lists": "sequence_features"}


def compile_features(features: Mapping[Key, Any], part: str = "example") -> Plan:
    """Checks and compiles a specification.

    Args:
        features: Keys to feature objects, ours or TensorFlow's.
        part: "example", or the part of a SequenceExample: "context" or "lists".

    Raises:
        ValueError, TypeError: As TensorFlow does.
    """
    check_type(ARGUMENTS[part], features, Mapping, "a dict")
    compiler = _Compiler(part)
    fields: dict[Key, Field] = {}
    known: dict[Key, Any] = {}
    for key, value in features.items():
        try:
            known[key], fields[key] = compiler.compile(key, value)
        except (TypeError, ValueError) as error:
            shown = show_key(key)
            if not re.search(rf"feature '?{re.escape(shown)}(?!\w)", str(error)):
                error.args = (f"feature {shown}: {error}",)
            raise
    requests = enumerate(compiler.requests)
    cuts = Cuts.of(fields, {i: r.dtype.dtype for i, r in requests if r.dtype != string})
    return Plan(known, compiler.requests, fields, part == "lists", cuts)


class _Compiler:
    """Collects the columns of a specification; features may share them."""

    def __init__(self, part: str) -> None:
        self.requests: list[Request] = []
        self.columns: dict[bytes, int] = {}
        self.families: dict[bytes, tuple[str, Any]] = {}
        self.lists = part == "lists"
        self.methods: dict[type, Any] = {VarLenFeature: self.var_len, RaggedFeature: self.ragged}
        if self.lists:
            self.methods[FixedLenSequenceFeature] = self.steps
        else:
            self.methods[FixedLenFeature] = self.fixed_len
        if part == "example":
            self.methods |= {SparseFeature: self.sparse, FixedLenSequenceFeature: self.padded}

    def compile(self, key: Key, value: Any) -> tuple[Any, Field]:
        """A copy of a feature, and its field."""
        feature = as_feature(key, value)
        compile_one = self.methods.get(type(feature))
        if compile_one is None:
            expected = ", ".join(sorted(spec.__name__ for spec in self.methods))
            raise ValueError(
                f"Unsupported {type(feature).__name__} {show_key(feature)} for key {quoted(key)}; "
                f"expected one of {expected}"
            )
        held = _held(key, feature)
        return held, compile_one(key, held)

    def column(self, family: str, request: Request, splits_dtype: Any = None) -> int:
        """The index of a column. Only features of the same family and type may share it."""
        shared = self.columns.get(request.key)
        if shared is None:
            self.columns[request.key] = len(self.requests)
            self.families[request.key] = family, splits_dtype
            self.requests.append(request)
            return len(self.requests) - 1
        name, known = request.name, self.requests[shared]
        other, other_splits = self.families[request.key]
        if other != family:
            first, second = sorted((family, other))
            raise ValueError(
                f"{first.capitalize()} and {second} keys must not intersect; "
                f"intersection: {quoted(name)}"
            )
        if family == "dense":
            raise ValueError(f"Key {quoted(name)} is given twice, as str and as bytes")
        if known.dtype != request.dtype:
            raise ValueError(
                f"Conflicting type {known.dtype!r} vs {request.dtype!r} "
                f"for feature {show_key(name)}."
            )
        if other_splits != splits_dtype:
            raise ValueError(
                f"Conflicting partition type {other_splits} vs {splits_dtype} "
                f"for feature {show_key(name)}."
            )
        return shared

    def variable(self, family: str, name: Key, dtype: DType, splits_dtype: Any = None) -> int:
        request = Request(key_bytes(name), name, dtype, lib.TFW_VARIABLE)
        return self.column(family, request, splits_dtype)

    def fixed_len(self, key: Key, feature: Any) -> Field:
        shape = feature.shape
        default = _default(key, feature.dtype, feature.default_value, math.prod(shape))
        # To TensorFlow, an empty default is no default.
        optional = default is not None and math.prod(shape) != 0
        request = Request(
            key_bytes(key), key, feature.dtype, lib.TFW_DENSE, shape, optional, default
        )
        return Dense(self.column("dense", request), shape)

    def var_len(self, key: Key, feature: Any) -> Field:
        column = self.variable("sparse", key, feature.dtype)
        return StepValues(column) if self.lists else VarLen(column)

    def padded(self, key: Key, feature: Any) -> Field:
        shape = feature.shape
        if not boolean("allow_missing", feature.allow_missing):
            raise ValueError(
                "Unsupported: FixedLenSequenceFeature requires allow_missing to be True."
            )
        default = _default(key, feature.dtype, feature.default_value, 1)
        request = Request(key_bytes(key), key, feature.dtype, lib.TFW_REPEATED, shape)
        padding = _padding(feature.dtype, default)
        return Padded(key, self.column("dense", request), shape, padding)

    def steps(self, key: Key, feature: Any) -> Field:
        shape = feature.shape
        if feature.default_value is not None:
            raise ValueError(f"Value feature_list.dense_defaults[{show_key(key)}] must be None")
        optional = boolean("allow_missing", feature.allow_missing)
        request = Request(key_bytes(key), key, feature.dtype, lib.TFW_DENSE, shape, optional)
        padding = _padding(feature.dtype, None)
        return Steps(key, self.column("dense", request), shape, padding)

    def sparse(self, key: Key, feature: Any) -> Field:
        for field in ("index_key", "value_key"):
            if not getattr(feature, field):
                raise ValueError(f"Missing {field} for SparseFeature {feature}.")
        keys, sizes = _dimensions(feature)
        columns = tuple(self.variable("sparse", k, int64) for k in keys)
        values = self.variable("sparse", feature.value_key, feature.dtype)
        already_sorted = boolean("already_sorted", feature.already_sorted)
        return Sparse(key, columns, values, sizes, already_sorted)

    def ragged(self, key: Key, feature: Any) -> Field:
        splits_dtype = feature.row_splits_dtype
        value_key = key if feature.value_key is None else feature.value_key
        column = self.variable("ragged", value_key, feature.dtype, splits_dtype)
        partitions = []
        for partition in feature.partitions:
            if isinstance(partition, RaggedFeature.UniformRowLength):
                length = integer("length of a UniformRowLength", partition.length)
                if length <= 0:
                    raise ValueError(
                        f"UniformRowLength of feature {show_key(key)} must be positive"
                    )
                partitions.append(Partition("UniformRowLength", -1, length))
            else:
                index = self.variable("ragged", partition.key, int64, splits_dtype)
                partitions.append(Partition(type(partition).__name__, index, 0))
        return Ragged(key, column, tuple(partitions), splits_dtype.dtype, self.lists)


def _held(key: Key, feature: Any) -> Any:
    """A copy of a feature that its owner cannot change: shape and default value are read once."""
    held = feature._replace(dtype=_dtype(key, feature))
    if isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
        held = held._replace(
            shape=_shape(key, held), default_value=_held_default(key, held.default_value)
        )
    if isinstance(feature, SparseFeature):
        held = held._replace(index_key=_held_list(held.index_key), size=_held_list(held.size))
    return held


def _held_list(value: Any) -> Any:
    return tuple(value) if np.iterable(value) and not isinstance(value, (str, bytes)) else value


def _held_default(key: Key, value: Any) -> Any:
    if value is None:
        return None
    cell = flatten_value(value, key, nested=True)
    if isinstance(cell.values, np.ndarray):
        return cell.values.copy()
    values = tuple(cell.values)
    if cell.kind == BYTES:
        values = tuple(
            item if type(item) in (bytes, str) else string_bytes(item, key) for item in values
        )
    return values if cell.shape else values[0]


def _dtype(key: Key, feature: Any) -> DType:
    if feature.dtype is None or (isinstance(feature.dtype, str) and not feature.dtype):
        raise ValueError(f"Missing type for feature {show_key(key)}. Received feature={feature}.")
    try:
        dtype = to_dtype(feature.dtype)
    except TypeError as error:  # perhaps the arguments are in another order
        fields = f"{type(feature).__name__}({', '.join(feature._fields)})"
        raise TypeError(f"{error}; the arguments are {fields}") from None
    if dtype not in KINDS:
        raise ValueError(
            f"dtype {dtype.name} of feature {show_key(key)} is not in the list of allowed values: "
            "float32, int64, string"
        )
    return dtype


def _shape(key: Key, feature: FixedLenFeature | FixedLenSequenceFeature) -> tuple[int, ...]:
    """The shape as a tuple; from an int, an iterable or a TensorShape."""
    shape = feature.shape
    if shape is None:
        raise ValueError(f"Missing shape for feature {show_key(key)}. Received feature={feature}.")
    if isinstance(shape, (str, bytes)):
        raise TypeError(f"shape of feature {show_key(key)}: expected ints, found {shape!r}")
    refuse_unordered(f"shape of feature {show_key(key)}", shape)
    dimensions = [_dimension(key, n) for n in (shape if np.iterable(shape) else [shape])]
    if dimensions and dimensions[0] is None and isinstance(feature, FixedLenFeature):
        raise ValueError(
            f"First dimension of shape for feature {show_key(key)} unknown. Consider using "
            f"FixedLenSequenceFeature. Received feature={feature}."
        )
    if None in dimensions:
        raise ValueError(
            f"All dimensions of shape for feature {show_key(key)} need to be known "
            f"but received {shape}."
        )
    known = tuple(n for n in dimensions if n is not None)
    if math.prod(known) > _MAX_VALUES:
        raise ValueError(f"Shape {shape} of feature {show_key(key)} is too large")
    return known


def _dimension(key: Key, value: Any) -> int | None:
    value = getattr(value, "value", value)  # TensorFlow's Dimension
    if value is None:
        return None
    try:
        size = as_index(value)
    except TypeError:
        raise TypeError(
            f"Dimension value of feature {show_key(key)} must be integer or None, got "
            f"{quoted(value) if isinstance(value, (str, float)) else type(value).__name__}"
        ) from None
    if size < 0:
        raise ValueError(f"Dimension {size} of feature {show_key(key)} must be >= 0")
    return size


def _dimensions(feature: SparseFeature) -> tuple[list[Key], tuple[int, ...]]:
    """The index keys and the sizes of a SparseFeature."""
    if isinstance(feature.index_key, (str, bytes)):
        return [feature.index_key], (integer("size of a SparseFeature", feature.size),)
    if not np.iterable(feature.index_key):
        raise wrong_type("index_key of a SparseFeature", feature.index_key, "a key or a list")
    keys = list(feature.index_key)
    if not np.iterable(feature.size):
        raise TypeError(f"size has to be a list of ints, as index_key is. Received {feature}")
    sizes = tuple(integer("size of a SparseFeature", size) for size in feature.size)
    if len(keys) != len(sizes):
        raise ValueError(f"index_key and size have to have equal lengths. Received {feature}")
    return keys, sizes


def _default(key: Key, dtype: DType, value: Any, count: int) -> Any:
    """A default in the form of Request.default: converted, never broadcast; None for no default."""
    if value is None:
        return None
    name = f"default_value of feature {show_key(key)}"
    cell = flatten_value(value, key)
    fitting = {int64: {INT64}, float32: {INT64, FLOAT}, string: {BYTES}}[dtype]
    if len(cell.values) and cell.kind not in fitting:
        raise TypeError(f"{name}: cannot convert {value!r} to {dtype.name}")
    if len(cell.values) != count:
        raise ValueError(
            f"{name}: input to reshape is a tensor with {len(cell.values)} values, but the "
            f"requested shape has {count}"
        )
    if dtype == string:
        return as_strings(cell.values, key)
    return (as_int64 if dtype == int64 else as_float32)(cell.values, key)


def _padding(dtype: DType, default: Any) -> Any:
    """The value that pads an array."""
    if dtype == string:
        return b"" if default is None else bytes(default[0])
    return dtype.as_numpy_dtype(0) if default is None else default[0]
