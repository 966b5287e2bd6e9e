"""Results as plain JSON values, whichever library they come from, and specs from JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

PARTITIONS = ("RowSplits", "RowLengths", "RowStarts", "RowLimits", "ValueRowIds")


def build_spec(io: Any, spec: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Feature objects of io, a namespace with TensorFlow's names, from their JSON form."""
    return {key: build_feature(io, dict(fields)) for key, fields in spec.items()}


def build_feature(io: Any, fields: dict[str, Any]) -> Any:
    cls = getattr(io, fields.pop("type") + "Feature")
    if "dtype" in fields:
        fields["dtype"] = getattr(io, fields["dtype"])
    if "row_splits_dtype" in fields:
        fields["row_splits_dtype"] = getattr(io, fields["row_splits_dtype"])
    if "partitions" in fields:
        fields["partitions"] = [build_partition(cls, p) for p in fields["partitions"]]
    if "default_value" in fields:
        fields["default_value"] = plain_default(fields["default_value"])
    return cls(**fields)


def build_partition(cls: Any, partition: list[Any]) -> Any:
    kind, argument = partition
    return getattr(cls, kind)(argument)


def call(
    io: Any, library: Any, case: dict[str, Any], vector: Callable[[list[bytes]], Any] = list
) -> list[dict[str, Any]]:
    """The dicts that a library's function for this case returns; it takes messages as a vector."""
    messages = [bytes.fromhex(message) for message in case["serialized"]]
    spec = build_spec(io, case["spec"])
    if case["call"] == "single":
        return [library.parse_single_example(messages[0], spec)]
    if case["call"] == "batch":
        names = case.get("example_names")
        return [library.parse_example(vector(messages), spec, example_names=names)]
    lists = build_spec(io, case["lists"])
    specs = spec or None, lists or None
    if case["call"] == "sequence single":
        return list(library.parse_single_sequence_example(messages[0], *specs))
    return list(library.parse_sequence_example(vector(messages), *specs))


def plain_default(value: Any) -> Any:
    """Strings of JSON are bytes in hex."""
    if isinstance(value, str):
        return bytes.fromhex(value)
    return [plain_default(v) for v in value] if isinstance(value, list) else value


def array(value: Any) -> list[Any]:
    """[dtype, shape, flat values]: floats as their bits, strings in hex."""
    if isinstance(value, bytes):  # numpy would drop NULs from its end
        return ["string", [], [value.hex()]]
    value = np.asarray(value)
    flat = value.reshape(-1)
    if value.dtype == np.float32:
        return ["float32", list(value.shape), flat.view(np.uint32).tolist()]
    if value.dtype.kind in "OS":
        return ["string", list(value.shape), [bytes(v).hex() for v in flat]]
    return [str(value.dtype), list(value.shape), flat.tolist()]


def numpy_of(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value


def plain(value: Any) -> Any:
    """A tensor, SparseTensor or RaggedTensor of TensorFlow or tfwire as JSON."""
    if hasattr(value, "dense_shape"):
        parts = (value.indices, value.values, value.dense_shape)
        return {"sparse": [array(numpy_of(part)) for part in parts]}
    if hasattr(value, "nested_row_splits"):
        splits = [array(numpy_of(s)) for s in value.nested_row_splits]
        return {"ragged": [array(numpy_of(value.flat_values)), *splits]}
    return array(numpy_of(value))


def plain_dict(values: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(values[key]) for key in sorted(values)}


# What TensorFlow's message says, as ParseError.reason; the first that matches.
REASONS = [
    ("missing", r"is required but could not be found"),
    ("kind", r"[Dd]ata types don't match"),
    (
        "count",
        r"values != expected|slice was not parsed|Parsing bytes_list failed"
        r"|divisible by|multiple of stride|Unexpected number of elements",
    ),
    ("malformed", r"Could not parse|Can't parse|Unsupported datatype|Error while parsing|Invalid"),
]


def reason(text: str) -> str:
    """The reason that a message of TensorFlow gives, "other" when it is not about the data."""
    return next((name for name, pattern in REASONS if re.search(pattern, text)), "other")


def error_feature(text: str) -> str | None:
    """The key that a message of TensorFlow names."""
    found = re.search(r"(?:Key: |Feature(?: list)?:? '?|feature with key )([A-Za-z0-9_]*)", text)
    return found.group(1) if found else None
