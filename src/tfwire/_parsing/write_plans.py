"""What a specification says of columns that are written: one that is given, or a table's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tfwire._base.text import column_name, printable, quoted, shorten
from tfwire._examples.column_batches import METADATA_KEY
from tfwire._examples.values import INT64, key_bytes
from tfwire._examples.written_columns import WritePlan, WrittenColumn
from tfwire._examples.written_sparse import WrittenSparse
from tfwire._parsing.features import (
    FEATURE_CLASSES,
    PARTITION_CLASSES,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from tfwire._parsing.spec import KINDS, Plan, compile_features

_MOST_METADATA = 1 << 20  # bytes of what a table says of a column


def plans_of(features: Any) -> list[Plan | None]:
    """The plan of Examples, or of the two parts of SequenceExamples.

    Args:
        features: A specification, an InferredSchema, or those of context and feature lists.

    Raises:
        ValueError, TypeError: As ``compile_features``.
    """
    lists = getattr(features, "sequence_features", None)
    if isinstance(features, tuple) and len(features) == 2:
        features, lists = features
    elif not lists:
        return [compile_features(features)]
    context = compile_features(features, "context") if features else None
    return [context, compile_features(lists, "lists") if lists else None]


def write_plan(features: Any) -> WritePlan:
    """How the columns that a specification names become features.

    Raises:
        ValueError, TypeError: The specification is not valid, or names a column twice.
    """
    plans = plans_of(features)
    columns: dict[bytes, WrittenColumn] = {}
    structs: dict[bytes, WrittenSparse] = {}
    for plan in filter(None, plans):
        for key, feature in plan.features.items():
            name = key_bytes(key)
            if name in columns or name in structs:
                raise ValueError(f"{quoted(key)} is a feature of the context and a feature list")
            if isinstance(feature, SparseFeature):
                structs[name] = _written_sparse(key, feature)
            else:
                columns[name] = _written_column(key, feature, plan.lists)
    for sparse in structs.values():
        for part in (*sparse.indices, sparse.values):
            if part.key not in structs:
                columns.setdefault(part.key, part)
    return WritePlan(columns, structs, {}, len(plans) == 2)


def _written_sparse(key: Any, feature: SparseFeature) -> WrittenSparse:
    """How a column of structs becomes features, by a specification that was compiled."""
    index: Any = feature.index_key
    dtype: Any = feature.dtype  # compiled
    keys = [index] if isinstance(index, (str, bytes)) else index

    def column(part: Any, kind: int) -> WrittenColumn:
        return WrittenColumn(part, "SparseFeature", key_bytes(part), kind, 1)

    indices = tuple(column(part, INT64) for part in keys)
    size: Any = feature.size
    sizes = (size,) if isinstance(index, (str, bytes)) else tuple(size)
    return WrittenSparse(key, indices, column(feature.value_key, KINDS[dtype]), sizes)


def _written_column(key: Any, feature: Any, is_list: bool) -> WrittenColumn:
    """How a column becomes features, by a specification that was compiled."""
    kind, said_by = KINDS[feature.dtype], type(feature)
    found = WrittenColumn(key, said_by.__name__, key_bytes(key), kind, 1 + is_list, is_list=is_list)
    if said_by is FixedLenFeature:
        required = feature.default_value is None
        return found._replace(lists=0, shape=feature.shape, required=required)
    if said_by is FixedLenSequenceFeature:
        required = is_list and not feature.allow_missing
        return found._replace(lists=1, shape=feature.shape, required=required)
    if said_by is VarLenFeature:
        return found
    partitions = tuple(
        (type(each).__name__, each[0] if isinstance(each[0], int) else key_bytes(each[0]))
        for each in feature.partitions
    )
    values = found.key if feature.value_key is None else key_bytes(feature.value_key)
    lists = found.lists + len(partitions)
    return found._replace(key=values, lists=lists, partitions=partitions)


# ---- The metadata of a table --------------------------------------------------------------------


def plan_of_metadata(described: Mapping[bytes, bytes]) -> WritePlan | None:
    """How the columns of a table become features, by what its metadata says: of those that need it,
    nested ones and those of SequenceExamples.

    Args:
        described: The value of METADATA_KEY of the columns that have one, by their names.

    Returns:
        The plan; None: no column needs one.

    Raises:
        ValueError: Metadata that is no specification.
    """
    columns: dict[bytes, WrittenColumn] = {}
    structs: dict[bytes, WrittenSparse] = {}
    keys: dict[bytes, bytes] = {}
    for name, text in described.items():
        shown = name.decode("utf-8", "surrogateescape")
        try:
            key, feature, is_list = _described(text)
            part = "lists" if is_list else "example"
            (feature,) = compile_features({shown: feature}, part).features.values()
        except (TypeError, ValueError) as error:
            said = printable(shorten(str(error), 200))
            raise ValueError(
                f"column {quoted(shown)}: its metadata {METADATA_KEY.decode()} is no "
                f"specification: {said}; give features, or features={{}} to leave it out of account"
            ) from None
        if isinstance(feature, SparseFeature):
            structs[name] = _written_sparse(shown, feature)
            continue
        if shown in (column_name(key), column_name(key_bytes(key))):
            keys[name] = key_bytes(key)
        is_ragged = isinstance(feature, RaggedFeature)
        if is_list or (is_ragged and (feature.partitions or feature.value_key not in (None, key))):
            found = _written_column(shown, feature, is_list)._replace(required=False)
            if found.key == name:
                found = found._replace(key=keys.get(name, name))
            columns[name] = found
    keys = {name: key for name, key in keys.items() if name != key and name not in columns}
    is_sequence = any(column.is_list for column in columns.values())
    return WritePlan(columns, structs, keys, is_sequence) if columns or structs or keys else None


def _described(text: bytes) -> tuple[str, Any, bool]:
    """The key, the specification, and whether it is one of a feature list."""
    if len(text) > _MOST_METADATA:
        raise ValueError(f"expected at most {_MOST_METADATA} bytes, found {len(text)}")
    try:
        fields = json.loads(text)
        key_bytes(json.dumps(fields, ensure_ascii=False))  # JSON may name half of a character
    except (ValueError, RecursionError):
        raise ValueError("expected JSON") from None
    if not isinstance(fields, dict):
        raise TypeError("expected an object")
    key, kind = fields.pop("key", None), fields.pop("feature", None)
    part = fields.pop("part", None)
    if not isinstance(key, str) or part not in (None, "context", "feature_lists"):
        raise TypeError("expected a key and a part")
    cls = FEATURE_CLASSES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"expected one of {', '.join(FEATURE_CLASSES)}")
    if "partitions" in fields:
        if not isinstance(fields["partitions"], list):
            raise TypeError("expected a list of partitions")
        fields["partitions"] = list(map(_partition, fields["partitions"]))
    index_key = fields.get("index_key")
    keys = [fields.get("value_key"), *(index_key if isinstance(index_key, list) else [index_key])]
    if not all(each is None or isinstance(each, str) for each in keys):
        raise TypeError("expected texts as keys")
    try:
        feature = cls(**fields)
    except (TypeError, ValueError, AttributeError):
        names = ", ".join(cls._fields)
        raise ValueError(f"expected the arguments of a {kind}: {names}") from None
    return key, feature, part == "feature_lists"


def _partition(each: Any) -> Any:
    kind, value = each if isinstance(each, list) and len(each) == 2 else (None, None)
    if not isinstance(kind, str) or kind not in PARTITION_CLASSES:
        raise ValueError(f"expected pairs of {', '.join(PARTITION_CLASSES)} and a key or a length")
    if not isinstance(value, int if kind == "UniformRowLength" else str):
        raise TypeError("expected the key or the length of a partition")
    return PARTITION_CLASSES[kind](value)
