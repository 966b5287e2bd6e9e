"""Which columns become which fields of a table: Arrow types by specification."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tfwire._base.native import create, ffi, lib
from tfwire._base.text import column_name, quoted
from tfwire._parsing.features import string
from tfwire._parsing.fields import Dense, Padded, Sparse, Steps, StepValues, VarLen
from tfwire._parsing.native_session import Schema
from tfwire._parsing.ragged import Ragged
from tfwire._parsing.spec import Plan
from tfwire.arrow._table_types import BINARY_TYPES, TableTypes

_NUMBERS = {"int64": "int64", "float32": "float"}
_PARTITION_KINDS = {
    "UniformRowLength": lib.TFW_UNIFORM_ROW_LENGTH,
    "RowLengths": lib.TFW_ROW_LENGTHS,
    "RowSplits": lib.TFW_ROW_SPLITS,
    "RowStarts": lib.TFW_ROW_STARTS,
    "RowLimits": lib.TFW_ROW_LIMITS,
    "ValueRowIds": lib.TFW_VALUE_ROW_IDS,
}
_MAX_LIST_SIZE = 2**31 - 1
# The columns that tell where a record comes from, with their types.
POSITIONS = {
    "path": "dictionary<values=large_string, indices=int32>",
    "record_index": "int64",
    "offset": "int64",
}


class ArrowSchema(Schema):
    """The tfw_schema of a plan, which belongs to a layout."""

    layout: TableLayout | None = None  # kept alive

    def for_files(self) -> Any:
        return self.handle  # no other layout has it


class TableField(NamedTuple):
    """A field of a table.

    Attributes:
        name: Of the column.
        type: Arrow's name of its type.
        metadata: By key.
        column: Index of the column of the values.
        is_list: True for a feature list.
        shape: Of an element.
        strings: Arrow's name of their type; None: it holds numbers.
        is_scalar: True for one value or null.
        partitions: Kind, column and length of each.
        index_columns: Of a SparseFeature.
        is_flat: True for a tensor: one list holds the values of all dimensions.
    """

    name: str
    type: str
    metadata: dict[str, str]
    column: int
    is_list: bool
    strings: str | None
    is_scalar: bool = False
    shape: tuple[int, ...] = ()
    partitions: tuple[tuple[int, int, int], ...] = ()
    index_columns: tuple[int, ...] = ()
    is_flat: bool = False


class TableLayout:
    """The ``tfw_arrow_layout *`` of plans.

    Args:
        plans: Of Examples, or of contexts and feature lists.
        types: What the types of the columns depend on beside the plans.
        tensors: FixedLenFeatures of numbers with a shape are tensors.
        positions: Add the columns that tell where a record comes from.
        sampled: The plans were inferred from some of the records.

    Attributes:
        handle: For C.
        schemas: Of the plans.
        fields: Of the tables.
        positions, sampled: As given.

    Raises:
        ValueError: Two columns have the same name, or a shape is too large.
    """

    def __init__(
        self,
        plans: Sequence[Plan | None],
        types: TableTypes,
        tensors: bool,
        positions: bool,
        sampled: bool,
    ) -> None:
        self.schemas: list[ArrowSchema | None] = [
            None if plan is None else ArrowSchema(plan) for plan in plans
        ]
        self.positions: bool = positions
        self.sampled: bool = sampled
        self.fields: list[TableField] = []
        for plan in plans:
            if plan is not None:
                self.fields += [
                    _table_field(key, plan, types, tensors, part=len(plans) == 2)
                    for key in plan.fields
                ]
        for field in self.fields:
            _check_shape(field)
        _check_names([*(field.name for field in self.fields), *(POSITIONS if positions else ())])
        flags = lib.TFW_ARROW_POSITIONS if positions else 0
        flags |= lib.TFW_ARROW_SEQUENCE if len(plans) == 2 else 0
        flags |= lib.TFW_ARROW_SAMPLED if sampled else 0
        handles = [ffi.NULL if schema is None else schema.handle for schema in self.schemas]
        native, pinned = _native_fields(self.fields)
        layout = create(
            lib.tfw_arrow_layout_create,
            "tfw_arrow_layout",
            native,
            len(self.fields),
            *(handles if len(plans) == 2 else (handles[0], ffi.NULL)),
            flags,
        )
        del pinned  # C has copied everything
        self.handle: Any = ffi.gc(layout, lib.tfw_arrow_layout_free)
        for schema in self.schemas:
            if schema is not None:
                ffi.gc(schema.handle, None)  # the layout's now
                schema.layout = self

    def types(self) -> dict[str, str]:
        """The types of the columns by name."""
        found = {field.name: field.type for field in self.fields}
        return {**found, **POSITIONS} if self.positions else found


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(
                f"two columns would have the name {quoted(name)}; leave it out by `columns`, "
                "or one of them out of the specification"
            )
        seen.add(name)


def _check_shape(field: TableField) -> None:
    """Sizes are int32 in Arrow. The number of lists that hold nothing is limited, too."""
    name, shape = field.name, field.shape
    lists = shape[: shape.index(0)] if 0 in shape else shape if field.is_flat else ()
    if max(*shape, math.prod(lists), 0) > _MAX_LIST_SIZE:
        raise ValueError(
            f"feature {quoted(name)}: an Arrow fixed size list holds at most 2**31 - 1 values, "
            f"found the shape {list(shape)}"
        )


def _table_field(key: Any, plan: Plan, types: TableTypes, tensors: bool, part: bool) -> TableField:
    field, feature = plan.fields[key], plan.features[key]
    strings = types.strings[column_name(key)] if feature.dtype == string else None
    item = strings or _NUMBERS[feature.dtype.name]
    metadata = {"tfwire:feature": _description(key, feature, plan, part)}
    name = column_name(key)
    if isinstance(field, Sparse):
        rank = len(field.index_columns)
        index = "int64" if rank == 1 else _fixed("int64", (rank,))
        kind = f"struct<indices: {_lists(index, 1)}, values: {_lists(item, 1)}>"
        return TableField(
            name, kind, metadata, field.column, False, strings, index_columns=field.index_columns
        )
    if isinstance(field, Dense):
        shape = field.shape
        kind = _fixed(item, shape)
        if tensors and not strings and shape:
            metadata["ARROW:extension:name"] = "arrow.fixed_shape_tensor"
            metadata["ARROW:extension:metadata"] = json.dumps({"shape": list(shape)})
            kind = f"fixed_shape_tensor<{item}, {list(shape)}>"
            return TableField(
                name, kind, metadata, field.column, False, None, shape=shape, is_flat=True
            )
        return TableField(name, kind, metadata, field.column, False, strings, shape=shape)
    if isinstance(field, Ragged):
        return _ragged_field(name, field, item, strings, metadata)
    if name in types.scalars:
        assert isinstance(field, VarLen)
        return TableField(name, item, metadata, field.column, False, strings, is_scalar=True)
    shape = field.shape if isinstance(field, (Padded, Steps)) else ()
    assert isinstance(field, (Padded, Steps, VarLen, StepValues))
    depth = 2 if isinstance(field, StepValues) else 1
    kind = _lists(_fixed(item, shape), depth)
    return TableField(name, kind, metadata, field.column, plan.lists, strings, shape=shape)


def _ragged_field(
    name: str, field: Ragged, item: str, strings: str | None, metadata: dict[str, str]
) -> TableField:
    """Uniform partitions at the end only reshape the values."""
    partitions, shape = list(field.partitions), list[int]()
    while partitions and partitions[-1].kind == "UniformRowLength":
        shape.insert(0, partitions.pop().length)
    native = tuple((_PARTITION_KINDS[kind], max(i, 0), length) for kind, i, length in partitions)
    kind = _lists(_fixed(item, shape), 1 + field.lists + len(native))
    return TableField(
        *(name, kind, metadata, field.column, field.lists, strings),
        shape=tuple(shape),
        partitions=native,
    )


def _fixed(item: str, shape: Sequence[int]) -> str:
    for size in reversed(shape):
        item = f"fixed_size_list<{item}>[{size}]"
    return item


def _lists(item: str, count: int) -> str:
    return "large_list<" * count + item + ">" * count


def _description(key: Any, feature: Any, plan: Plan, part: bool) -> str:
    """A specification as JSON: its key, its class, and the fields of that."""
    text = key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else key
    described: dict[str, Any] = {"key": text, "feature": type(feature).__name__}
    if part:
        described["part"] = "feature_lists" if plan.lists else "context"
    for name, value in zip(feature._fields, feature, strict=True):
        if name == "partitions":
            described[name] = [[type(each).__name__, each[0]] for each in value]
        elif name.endswith("dtype"):
            described[name] = value.name
        elif name not in ("default_value", "validate") and value is not None:
            described[name] = value
    return json.dumps(described, default=str)


# ---- As C takes them ----------------------------------------------------------------------------


def _encode_metadata(pairs: dict[str, str]) -> bytes:
    """As ArrowSchema has it."""
    encoded = struct.pack("=i", len(pairs))
    for pair in pairs.items():
        for text in map(str.encode, pair):
            encoded += struct.pack("=i", len(text)) + text
    return encoded


def _native_fields(fields: Sequence[TableField]) -> tuple[Any, list[Any]]:
    """An array of ``tfw_arrow_field``, and what it points into."""
    pinned: list[Any] = []

    def pin(kind: str, values: Any) -> Any:
        pinned.append(ffi.new(kind, values))
        return pinned[-1]

    native = ffi.new("tfw_arrow_field[]", len(fields))
    for out, field in zip(native, fields, strict=True):
        metadata = _encode_metadata(field.metadata)
        out.name = pin("char[]", field.name.encode())
        out.metadata, out.metadata_len = pin("uint8_t[]", metadata), len(metadata)
        out.column, out.is_list, out.is_flat = field.column, field.is_list, field.is_flat
        out.strings = BINARY_TYPES[field.strings or "large_binary"]
        out.is_scalar = field.is_scalar
        out.shape, out.rank = pin("uint64_t[]", field.shape), len(field.shape)
        partitions = pin("tfw_partition[]", len(field.partitions))
        for partition, values in zip(partitions, field.partitions, strict=True):
            partition.kind, partition.column, partition.length = values
        out.partitions, out.partition_count = partitions, len(field.partitions)
        out.index_columns = pin("uint64_t[]", field.index_columns)
        out.index_count = len(field.index_columns)
    return native, pinned
