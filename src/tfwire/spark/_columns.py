"""Which columns of Spark are which features, and the other way round."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    FloatType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tfwire import FixedLenFeature, InferredSchema, VarLenFeature
from tfwire._interface.messages import quoted
from tfwire._interface.partitions import is_sample

if TYPE_CHECKING:
    import pyarrow

    from tfwire.typing import Value

types: Any = import_module("pyarrow.types")


def spark_struct(features: Any, schema: pyarrow.Schema) -> StructType:
    """The columns of an inferred schema: a value, an array, or an array for each step."""
    fields, metadata = [], {"tfwire": "sampled"} if is_sample(features) else None
    for field in schema:
        kind, depth = field.type, 0
        while types.is_nested(kind):
            kind, depth = kind.value_type, 1
        value: DataType = _value_type(kind)
        depth = 2 if field.name in features.sequence_features else depth
        for _ in range(depth):
            value = ArrayType(value)
        fields.append(StructField(field.name, value, metadata=metadata))
    return StructType(fields)


def is_of_sample(field: Value) -> bool:
    """Whether a column of Spark's, or of Sail's, was inferred from some of the records."""
    metadata = field.metadata or {}
    return "tfwire" in metadata or b'"tfwire"' in metadata.get(b"SPARK::metadata::json", b"")


def _value_type(kind: pyarrow.DataType) -> DataType:
    """Spark's type of the values of a column."""
    if types.is_integer(kind):
        return LongType()
    if types.is_floating(kind):
        return FloatType()
    is_text = types.is_string(kind) or types.is_large_string(kind)
    return StringType() if is_text else BinaryType()


def strings_as(schema: pyarrow.Schema) -> Any:
    """How the strings of columns are read, by column: as the schema has them."""
    found = {}
    for field in schema:
        if _dtype(field) == "string":
            kind = field.type
            while types.is_list(kind) or types.is_large_list(kind):
                kind = kind.value_type
            is_text = types.is_string(kind) or types.is_large_string(kind)
            found[field.name] = "string" if is_text else "binary"
    return found


def depth_of(kind: pyarrow.DataType) -> int:
    """How many lists are around the values."""
    if types.is_list(kind) or types.is_large_list(kind):
        return 1 + depth_of(kind.value_type)
    return 0


def _dtype(field: pyarrow.Field) -> str:
    """The type of the values of a column in Examples."""
    kind = field.type
    while types.is_list(kind) or types.is_large_list(kind):
        kind = kind.value_type
    if types.is_integer(kind) or types.is_boolean(kind):
        return "int64"
    if types.is_floating(kind):
        return "float32"
    texts = (types.is_string(kind), types.is_large_string(kind))
    if any(texts) or types.is_binary(kind) or types.is_large_binary(kind):
        return "string"
    raise TypeError(
        f"column {quoted(field.name)}: no feature has the type {field.type}; read it as bigint, "
        "float, string, binary or arrays of these, and cast"
    )


def features_of_columns(schema: pyarrow.Schema, *, complete: bool) -> Any:
    """The specification of columns; arrays of arrays are feature lists of SequenceExamples.

    Args:
        schema: The columns.
        complete: Every record has one value for each column that is not an array: parsed
            twice as fast. Otherwise it may lack it.
    """
    flat: dict[str, Any] = {}
    lists: dict[str, Any] = {}
    for field in schema:
        dtype, depth = _dtype(field), depth_of(field.type)
        if depth > 2:
            raise TypeError(f"column {quoted(field.name)}: at most arrays of arrays can be read")
        is_one = depth == 0 and complete
        feature = FixedLenFeature([], dtype) if is_one else VarLenFeature(dtype)
        (lists if depth == 2 else flat)[field.name] = feature
    return (flat, lists) if lists else flat


def as_sampled(features: Any) -> InferredSchema:
    """The same, as inferred from some of the records: others are warned of."""
    flat, lists = features if isinstance(features, tuple) else (features, {})
    seen: list[Any] = [dict.fromkeys(flat), dict.fromkeys(lists)]
    return InferredSchema(flat, lists, 0, seen[0], seen[1], False)


def written_features(schema: pyarrow.Schema, record_type: str | None) -> Any:
    """How columns are written: as SequenceExamples if it is said; None: as Examples.

    Raises:
        TypeError: Arrays of arrays that no Example holds.
    """
    if record_type == "SequenceExample":
        found = features_of_columns(schema, complete=False)
        return found if isinstance(found, tuple) else (found, {})
    for field in schema:
        if depth_of(field.type) > 1:
            raise TypeError(
                f"column {quoted(field.name)}: lists in lists, whose lengths no feature holds; "
                'option("recordType", "SequenceExample") writes a list for each step, '
                "functions.flatten one list"
            )
    return None
