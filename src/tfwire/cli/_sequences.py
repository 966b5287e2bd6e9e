"""Rows of SequenceExamples, for tfwire convert: a row that is the context, with lists of steps.

In JSON lines they are ``{"context": {"id": 1}, "feature_lists": {"words": [["a"], ["b", "c"]]}}``.
A step that is null is a Feature without a kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tfwire import (
    RaggedFeature,
    VarLenFeature,
    decode_example,
    decode_json_example,
    decode_sequence_example,
    encode_columns,
    example_to_json,
    train,
)
from tfwire._interface.messages import quoted
from tfwire.cli import _rows, _tables
from tfwire.cli._row_survey import RowColumn, RowPlace, RowSurvey, RowValue
from tfwire.cli._rows import Encoder, Row, RowAndKinds

_LISTS = ("feature_lists", "featureLists")  # of plain JSON, and of protobuf's
_TARGETS = ("tfrecord", "jsonl")
_DTYPE_OF_KIND = {"int64": "int64", "float": "float32", "float32": "float32", "bytes": "string"}


class SequenceRow(Row):
    """The context of a SequenceExample, with the steps of its feature lists.

    Args:
        context: The row.
        lists: By name, a list of values for each step; None: a step without a kind.
        kinds: Of the steps, if they are known.
    """

    def __init__(
        self,
        context: Mapping[str, RowValue],
        lists: Mapping[str, list[Any]],
        kinds: Mapping[str, list[str | None]] | None = None,
    ) -> None:
        super().__init__(context)
        self.lists = lists
        self.kinds = kinds

    def step_kind(self, name: str, step: int) -> str | None:
        return None if self.kinds is None else self.kinds[name][step]


def record_row(record: bytes) -> tuple[Row, dict[str, str], int]:
    """As ``decoded_row``, of a record, which may be a SequenceExample.

    Raises:
        ParseError: It is neither.
    """
    features, lists = decode_sequence_example(record)
    row, kinds, kindless = _rows.decoded_row(features)
    return (_with_lists(row, lists) if lists else row), kinds, kindless


def _with_lists(context: Row, decoded: Mapping[str, Sequence[Any]]) -> SequenceRow:
    lists: dict[str, list[Any]] = {}
    kinds: dict[str, list[str | None]] = {}
    for name, steps in decoded.items():
        numbers = [str(i) for i in range(len(steps))]
        found, known, _ = _rows.decoded_row(dict(zip(numbers, steps, strict=True)))
        lists[name] = [_as_list(found.get(number)) for number in numbers]
        kinds[name] = [known.get(number) for number in numbers]
    return SequenceRow(context, lists, kinds)


def rows_of_batch(path: str, batch: Any, of_records: bool) -> Iterator[RowAndKinds]:
    """The rows of a record batch of a file.

    Args:
        path: The file.
        batch: The batch.
        of_records: As ``_tables.is_of_records`` says of it: rows are those of the records that its
            metadata makes of it.
    """
    with _tables.column_errors(path):
        if not of_records:
            for row in _tables.arrow_rows(batch):
                yield row, None
            return
        records = encode_columns(batch)
    for record in records:
        row, kinds, _ = record_row(record)
        yield row, kinds


def _as_list(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


# ---- What is in them ----------------------------------------------------------------------------


def check_target(target: str, place: RowPlace) -> None:
    """Refuses a format that holds no steps.

    Raises:
        ValueError: It holds none.
    """
    if target not in _TARGETS:
        raise ValueError(
            f"{place}: a SequenceExample can be converted to JSON "
            "lines, TFRecord, Parquet and Arrow files alone"
        )


def add_steps(survey: RowSurvey, place: RowPlace, row: SequenceRow) -> None:
    """Adds the steps of a row to a survey, in which each is a row."""
    for name, steps in row.lists.items():
        survey.add(place, {name: []})  # so that it is known, whatever its steps are
        for i, step in enumerate(steps):
            if step is not None:
                kind = row.step_kind(name, i)
                survey.add(place, {name: step}, None if kind is None else {name: kind})


def typed(row: SequenceRow, context: Row, columns: Sequence[RowColumn]) -> SequenceRow:
    """A row with steps in the kinds of their columns.

    Raises:
        ValueError: A step of another kind.
    """
    lists = {
        column.name: [
            None if step is None else column.typed(step) for step in row.lists[column.name]
        ]
        for column in columns
        if column.name in row.lists
    }
    return SequenceRow(context, lists)


def decode_all_base64(row: Row, names: Sequence[str]) -> None:
    """Decodes the strings of some columns and lists.

    Raises:
        ValueError: A value is not base64.
    """
    _rows.decode_base64(row, names)
    if not isinstance(row, SequenceRow):
        return
    for name in names:
        for i, step in enumerate(row.lists.get(name, ())):
            if step is not None:
                decoded: Row = {name: step}
                _rows.decode_base64(decoded, [name])
                row.lists[name][i] = decoded[name]


# ---- JSON ---------------------------------------------------------------------------------------


def json_sequence(tree: dict[str, Any]) -> RowAndKinds | None:
    """The row of a SequenceExample as JSON, plain or in protobuf's form; None: it is another row.

    Raises:
        ValueError: It has steps that are no steps, or another row has some.
    """
    if any(isinstance(tree.get(name), dict) for name in ("context", *_LISTS)):  # no value of a row
        name = next((name for name in _LISTS if name in tree), _LISTS[0])
        other = next((key for key in tree if key not in ("context", name)), None)
        if other is not None:
            raise ValueError(f"{quoted(other)}: unexpected beside 'context' and {quoted(name)}")
        if name not in tree:
            raise ValueError(f"{quoted(name)}: missing beside 'context'; give {{}} for none")
        context, lists = (_object(tree, key) for key in ("context", name))
        return (_from_plain if name == _LISTS[0] else _from_protobuf)(context, lists)
    for key, value in tree.items():
        if isinstance(value, list) and any(isinstance(item, list) for item in value):
            raise ValueError(
                f"{quoted(key)}: lists in a list, whose lengths no feature holds; steps are in "
                '{"context": {...}, "feature_lists": {...}}'
            )
    return None


def _object(tree: dict[str, Any], key: str) -> dict[str, Any]:
    found = tree.get(key)
    if found is None and key == "context":
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{quoted(key)}: expected an object, found {_rows.json_type(found)}")
    return found


def _from_plain(context: dict[str, Any], lists: dict[str, Any]) -> RowAndKinds:
    row = {
        name: _rows.plain_value(name, value) for name, value in context.items() if value is not None
    }
    steps = {name: _steps(name, value) for name, value in lists.items() if value is not None}
    return SequenceRow(row, steps), None


def _steps(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{quoted(name)}: expected a list of steps")
    return [None if step is None else _as_list(_rows.plain_value(name, step)) for step in value]


def _from_protobuf(context: dict[str, Any], lists: dict[str, Any]) -> RowAndKinds:
    row, kinds, _ = _rows.decoded_row(_decoded(context))
    decoded: dict[str, list[Any]] = {}
    for name, steps in (_member(lists, "featureList", dict) or {}).items():
        found = _member(steps or {}, "feature", list) or []
        features = {str(i): step for i, step in enumerate(found)}
        values = _decoded({"feature": features})
        decoded[name] = [values[number] for number in features]
    return _with_lists(row, decoded), kinds


def _decoded(features: dict[str, Any]) -> dict[str, Any]:
    return decode_example(decode_json_example(json.dumps({"features": features})))


def _member(tree: Any, name: str, kind: type) -> Any:
    """The only member that an object may have."""
    if not isinstance(tree, dict) or tree.keys() - {name}:
        raise ValueError(f"expected an object with {quoted(name)} alone")
    found = tree.get(name)
    if found is not None and not isinstance(found, kind):
        raise ValueError(f"{quoted(name)}: expected a {'list' if kind is list else 'object'}")
    return found


def record_line(record: bytes) -> bytes:
    """A record as a line of protobuf's JSON.

    Raises:
        ParseError: It is neither an Example nor a SequenceExample.
    """
    _, lists = decode_sequence_example(record)
    message: Any = train.SequenceExample.FromString(record) if lists else record
    return example_to_json(message).encode() + b"\n"


def encoder(
    plain: Encoder, columns: Sequence[RowColumn], steps: Sequence[RowColumn], examples: bool
) -> Encoder:
    """Rows as lines of JSON, of which some have steps.

    Args:
        plain: Encodes the others.
        columns, steps: Of the rows, and of their feature lists.
        examples: Lines are protobuf's JSON.
    """
    in_context = {column.name: column.text for column in columns}
    in_lists = {column.name: column.text for column in steps}

    def encode(row: Row) -> bytes:
        if not isinstance(row, SequenceRow):
            return plain.encode(row)
        if examples:
            table, features = columns_of_rows([row], columns, steps)
            return record_line(encode_columns(table, features=features)[0])
        context = {name: _rows.json_value(value, in_context[name]) for name, value in row.items()}
        lists = {
            name: [
                None if step is None else _rows.json_value(step, in_lists[name]) for step in values
            ]
            for name, values in row.lists.items()
        }
        return _rows.json_line({"context": context, "feature_lists": lists})

    return Encoder(encode)


# ---- Records ------------------------------------------------------------------------------------


def columns_of_rows(
    rows: Sequence[Row], columns: Sequence[RowColumn], steps: Sequence[RowColumn]
) -> tuple[dict[str, list[Any]], Any]:
    """Typed rows as columns, and the specifications by which they are written."""
    table: dict[str, list[Any]] = {}
    context: dict[str, Any] = {}
    lists: dict[str, Any] = {}
    for column in columns:
        table[column.name] = [row.get(column.name) for row in rows]
        context[column.name] = VarLenFeature(_DTYPE_OF_KIND[column.kind])
    every = [row.lists if isinstance(row, SequenceRow) else {} for row in rows]
    for column in steps:
        name, dtype = column.name, _DTYPE_OF_KIND[column.kind]
        while name in table:  # which has one column of a name, context included
            name += " (feature list)"
        is_own = name == column.name
        lists[name] = VarLenFeature(dtype) if is_own else RaggedFeature(dtype, column.name)
        table[name] = [found.get(column.name) for found in every]
    return table, (context, lists)
