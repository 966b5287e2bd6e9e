"""Columns and tables as what C encodes, some records at a time: by a specification, or without."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

from tfwire._base.native import ffi
from tfwire._base.text import quoted
from tfwire._examples.arrow_import import ArrowImport, is_arrow
from tfwire._examples.encoder_inputs import inputs_from_columns
from tfwire._examples.kinds import Agree
from tfwire._examples.missing import columns_of_frame
from tfwire._examples.native_encoder import NativeInputs, native_inputs
from tfwire._examples.nested import Nested, nested_of_input
from tfwire._examples.written import WrittenBatch, WrittenInputs, written_columns
from tfwire._examples.written_columns import WritePlan
from tfwire._examples.written_sparse import INDICES, VALUES

METADATA_KEY = b"tfwire:feature"
"""What a table that tfwire made says of a column: its specification, as JSON."""

Batches = Generator[tuple[NativeInputs, int], None, None]
"""Inputs, valid until the next ones, and the number of their records."""

_PlanOfTable = Callable[[ArrowImport], WritePlan | None]


def batches_of_columns(
    columns: Any, features: Any, sort_keys: bool, room: int, agree: Agree | None = None
) -> Batches:
    """Columns in one batch, or the batches of a table.

    Args:
        columns, features, sort_keys: As for encode_columns.
        room: Bytes of memory that conversions of a table may take at a time, unless one record
            needs more.
        agree: As WriterRows.agree gives it.

    Raises:
        TypeError, ValueError: As encode_columns; of a table now only what its schema shows.
    """
    columns = columns_of_frame(columns)
    plan = None if features is None else _plan(features)
    if is_arrow(columns):
        plan_of = _plan_of_table if plan is None else lambda _: plan
        batches = _batches_of_table(columns, sort_keys, room, plan_of)
    elif plan is None:
        inputs, num_records = inputs_from_columns(columns, sort_keys)
        batches = (batch for batch in [(native_inputs(inputs), num_records)])
    else:
        batch = _native_batch(written_columns(columns, sort_keys, plan), plan.is_sequence)
        batches = (batch for batch in [batch])
    return batches if agree is None else _agreeing(batches, agree)


def _agreeing(batches: Batches, agree: Agree) -> Batches:
    with closing(batches):
        for features, num_records in batches:
            yield agree(features, num_records), num_records


def _native_batch(batch: WrittenBatch, is_sequence: bool) -> tuple[NativeInputs, int]:
    features = native_inputs(batch.features)
    lists = native_inputs(batch.lists) if is_sequence else None
    return features._replace(lists=lists), batch.num_records


# ---- Plans --------------------------------------------------------------------------------------


def _plan(features: Any) -> WritePlan:
    from tfwire._parsing.write_plans import write_plan

    return write_plan(features)


def _plan_of_table(table: ArrowImport) -> WritePlan | None:
    """How the columns of a table become features, by its metadata; None: each becomes one."""
    described = {}
    for i, name in enumerate(table.names):
        text = table.metadata(i, METADATA_KEY)
        if text is not None:
            described[name] = text
    if not described:
        return None
    from tfwire._parsing.write_plans import plan_of_metadata

    return plan_of_metadata(described)


# ---- Tables -------------------------------------------------------------------------------------


def _batches_of_table(table: Any, sort_keys: bool, room: int, plan_of: _PlanOfTable) -> Batches:
    """The columns of a table, some records at a time. Closing this releases the table.

    Args:
        table: An object with ``__arrow_c_stream__`` or ``__arrow_c_array__``.
        sort_keys: Order features by their names' bytes.
        room: Bytes of memory that conversions may take at a time, unless one record needs more.
        plan_of: Called with the table, whose schema is known.

    Raises:
        TypeError: Not a table, a column of a type that no feature holds, or null in a list.
        ValueError: A value outside of int64, two columns of one name, or data that is not as Arrow
            says.
        OSError, MemoryError: As the table's stream says.
    """
    source = ArrowImport(table)
    with source.released_on_error():
        source.read_schema()
        names, fields = source.names, source.fields
        places = list(zip(names, fields, strict=True))
        if len(set(places)) != len(places):
            twice = next(name for name, field in places if places.count((name, field)) > 1)
            raise ValueError(
                f"two columns are named {quoted(twice.decode(errors='surrogateescape'))}"
            )
        plan = plan_of(source)
        if plan is not None:
            plan.check_names(names)
            for name, sparse in plan.structs.items():
                if name in names:
                    sparse.check_fields([field for other, field in places if other == name])
            for i, (name, field) in enumerate(places):
                if name in plan.structs or (name in plan.columns and field is None):
                    source.nest(i)
    if plan is None:
        return _batches_of(source, sort_keys, room)
    return _planned_batches(source, sort_keys, room, plan)


def _planned_batches(source: ArrowImport, sort_keys: bool, room: int, plan: WritePlan) -> Batches:
    first = 0
    with closing(source.batches(room)) as batches:
        for found, num_records, keep in batches:
            written = WrittenInputs(first)
            fields: dict[bytes, dict[bytes | None, Nested]] = {}
            for i, name in enumerate(source.names):
                column, key = plan.columns.get(name), plan.keys.get(name, name)
                if name in plan.structs:
                    part = nested_of_input(source, i, found[i], num_records)
                    fields.setdefault(name, {})[source.fields[i]] = part
                elif column is None:
                    shown = name.decode("utf-8", "surrogateescape")
                    written.add(key, shown, found[i])
                else:
                    written.add_column(column, nested_of_input(source, i, found[i], num_records))
            for name, parts in fields.items():
                written.add_sparse(plan.structs[name], parts[INDICES], parts[VALUES])
            batch = written.batch(num_records, sort_keys, plan)
            features, _ = _native_batch(batch, plan.is_sequence)
            yield features._replace(keep=(features.keep, keep)), num_records
            first += num_records


def _batches_of(source: ArrowImport, sort_keys: bool, room: int) -> Batches:
    numbers = range(len(source.names))
    order = sorted(numbers, key=source.names.__getitem__) if sort_keys else list(numbers)
    keys = [source.names[column] for column in order]
    inputs = ffi.new("tfw_input[]", len(order))
    with closing(source.batches(room)) as batches:
        for found, num_records, keep in batches:
            for i, column in enumerate(order):
                inputs[i] = found[column]
            yield NativeInputs(keys, inputs, keep), num_records
