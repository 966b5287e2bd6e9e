"""Specifications from and to schema.pbtxt: TensorFlow Metadata's Schema message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from google.protobuf import text_format

from tfwire._base.text import quoted
from tfwire._examples.protobuf import message_classes
from tfwire._parsing.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    float32,
    int64,
    no_counterpart,
    string,
    to_dtype,
)

# The fields that matter to specifications; others of schema.proto are skipped as unknown.
_Schema = message_classes(
    "tensorflow.metadata.v0",
    {
        "Schema": ["repeated Feature feature = 1", "repeated SparseFeature sparse_feature = 6"],
        "Feature": [
            "string name = 1",
            "bool deprecated = 2",
            "oneof shape_type: ValueCount value_count = 5",
            "FeatureType type = 6",
            "IntDomain int_domain = 9",
            "FeaturePresence presence = 14",
            "LifecycleStage lifecycle_stage = 22",
            "oneof shape_type: FixedShape shape = 23",
            "StructDomain struct_domain = 29",
        ],
        "StructDomain": ["repeated Feature feature = 1"],
        "SparseFeature": [
            "string name = 1",
            "bool deprecated = 2",
            "FixedShape dense_shape = 5",
            "repeated Column index_feature = 6",
            "LifecycleStage lifecycle_stage = 7",
            "bool is_sorted = 8",
            "Column value_feature = 9",
        ],
        "FeaturePresence": ["double min_fraction = 1", "int64 min_count = 2"],
        "ValueCount": ["int64 min = 1", "int64 max = 2"],
        "FixedShape": ["repeated Dim dim = 2"],
        "Dim": ["int64 size = 1", "string name = 2"],
        "IntDomain": ["int64 min = 3", "int64 max = 4"],
        "Column": ["string name = 1"],
    },
    {
        "FeatureType": {"TYPE_UNKNOWN": 0, "BYTES": 1, "INT": 2, "FLOAT": 3, "STRUCT": 4},
        "LifecycleStage": {
            "UNKNOWN_STAGE": 0,
            "PLANNED": 1,
            "ALPHA": 2,
            "BETA": 3,
            "PRODUCTION": 4,
            "DEPRECATED": 5,
            "DEBUG_ONLY": 6,
            "DISABLED": 7,
            "VALIDATION_DERIVED": 9,
        },
    },
    syntax="proto2",
)["Schema"]
_IN_USE = {0, 3, 4}  # UNKNOWN_STAGE, BETA, PRODUCTION
_STRUCT = 4
_TYPES = {1: string, 2: int64, 3: float32}
_TYPE_NUMBERS = {dtype.name: number for number, dtype in _TYPES.items()}
# TFX puts the features of the feature lists into one with this name.
_FEATURE_LISTS = "##SEQUENCE##"


def from_pbtxt(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Specifications by key: of the features in use, and of the feature lists.

    Raises:
        ValueError: The text is no Schema, or a feature has no counterpart.
    """
    try:
        schema = text_format.Parse(text, _Schema(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise ValueError(str(error)) from None
    columns = {feature.name: feature for feature in schema.feature}
    lists = columns.pop(_FEATURE_LISTS, None)
    steps = [] if lists is None else filter(_is_in_use, lists.struct_domain.feature)
    return _features(schema, columns), {
        step.name: _feature_list(step) for step in sorted(steps, key=lambda step: step.name)
    }


def _features(schema: Any, columns: dict[str, Any]) -> dict[str, Any]:
    features = {}
    for sparse in schema.sparse_feature:
        keys = [column.name for column in sparse.index_feature]
        parts = [*keys, sparse.value_feature.name]
        for part in parts:
            if part not in columns:
                raise ValueError(
                    f"sparse feature {quoted(sparse.name)}: there is no feature {quoted(part)}"
                )
        if _is_in_use(sparse):
            features[sparse.name] = _sparse_feature(sparse, [columns[part] for part in parts])
    in_sparse = {
        column.name
        for sparse in schema.sparse_feature
        for column in [*sparse.index_feature, sparse.value_feature]
    }
    for name, feature in columns.items():
        if name not in in_sparse and _is_in_use(feature):
            features[name] = _plain_feature(feature)
    return dict(sorted(features.items()))


def _is_in_use(feature: Any) -> bool:
    return not feature.deprecated and feature.lifecycle_stage in _IN_USE


def _dtype(feature: Any) -> Any:
    if feature.type not in _TYPES:
        raise ValueError(f"feature {quoted(feature.name)} has a type without a counterpart")
    return _TYPES[feature.type]


def _plain_feature(feature: Any) -> Any:
    required = feature.presence.min_fraction == 1
    if feature.HasField("shape"):
        if not required:
            raise ValueError(
                f"feature {quoted(feature.name)} has a shape but min_fraction is not 1"
            )
        return FixedLenFeature([dim.size for dim in feature.shape.dim], _dtype(feature))
    count = feature.value_count
    if required and count.min == count.max > 0:
        return FixedLenFeature([] if count.max == 1 else [count.max], _dtype(feature))
    return VarLenFeature(_dtype(feature))


def _feature_list(feature: Any) -> Any:
    """A feature list: steps of the schema's shape or, without one, of any number of values."""
    if not feature.HasField("shape"):
        return VarLenFeature(_dtype(feature))
    missing = feature.presence.min_fraction != 1
    shape = [dim.size for dim in feature.shape.dim]
    return FixedLenSequenceFeature(shape, _dtype(feature), allow_missing=missing)


def _sparse_feature(sparse: Any, columns: list[Any]) -> SparseFeature:
    *indices, values = columns
    if sparse.HasField("dense_shape"):
        size = [dim.size for dim in sparse.dense_shape.dim]
    else:
        size = [index.int_domain.max + 1 for index in indices]
    if len(size) != len(indices) or min(size, default=0) <= 0:
        raise ValueError(f"sparse feature {quoted(sparse.name)} has no dense shape for its indices")
    keys = [index.name for index in indices]
    single = len(keys) == 1
    return SparseFeature(
        keys[0] if single else keys,
        values.name,
        _dtype(values),
        size[0] if single else size,
        sparse.is_sorted,
    )


def to_pbtxt(features: Mapping[str, Any], lists: Mapping[str, Any]) -> str:
    """The text of the Schema message of prepared features, and of the feature lists.

    Raises:
        ValueError: A specification has no counterpart.
    """
    schema = _Schema()
    for key, feature in features.items():
        if key == _FEATURE_LISTS:
            raise no_counterpart(key, "this name")
        if isinstance(feature, SparseFeature):
            _add_sparse(schema, key, feature)
            continue
        column = _add_column(schema, key, feature.dtype)
        if isinstance(feature, FixedLenFeature):
            _add_shape(column, feature.shape, required=True)
        elif not isinstance(feature, VarLenFeature):
            raise no_counterpart(key, type(feature).__name__)
    _check_names(schema)
    if lists:
        _add_lists(schema.feature.add(name=_FEATURE_LISTS, type=_STRUCT).struct_domain, lists)
    return str(text_format.MessageToString(schema))


def _add_lists(domain: Any, lists: Mapping[str, Any]) -> None:
    for key, feature in lists.items():
        if not isinstance(feature, (VarLenFeature, FixedLenSequenceFeature)):
            raise no_counterpart(key, f"a {type(feature).__name__} among the feature lists")
        column = _add_column(domain, key, feature.dtype)
        if isinstance(feature, FixedLenSequenceFeature):
            _add_shape(column, feature.shape, required=not feature.allow_missing)


def _add_shape(column: Any, shape: Any, required: bool) -> None:
    if required:
        column.presence.min_fraction = 1
    column.shape.SetInParent()
    for size in shape:
        column.shape.dim.add(size=size)


def _check_names(schema: Any) -> None:
    """Names of columns are unique: a sparse feature shares its columns with no other feature."""
    counts = Counter(feature.name for feature in schema.feature)
    for name, count in counts.items():
        if count > 1:
            raise no_counterpart(name, "a column of a SparseFeature that another feature has too")


def _add_column(schema: Any, name: str, dtype: Any) -> Any:
    number = _TYPE_NUMBERS.get(to_dtype(dtype).name)
    if number is None:
        raise no_counterpart(name, f"the type {to_dtype(dtype).name}")
    return schema.feature.add(name=name, type=number)


def _add_sparse(schema: Any, key: str, feature: Any) -> None:
    sparse = schema.sparse_feature.add(name=key)
    keys = [feature.index_key] if isinstance(feature.index_key, str) else feature.index_key
    for index_key, size in zip(keys, feature.size, strict=True):
        column = _add_column(schema, index_key, int64)
        column.int_domain.min, column.int_domain.max = 0, size - 1
        sparse.index_feature.add(name=index_key)
        sparse.dense_shape.dim.add(size=size)
    _add_column(schema, feature.value_key, feature.dtype)
    sparse.value_feature.name = feature.value_key
    if feature.already_sorted:
        sparse.is_sorted = True
