"""Encoding columns and feature lists."""

import io
from types import SimpleNamespace
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from helpers.arguments.encoding import encode_in_python
from tfwire import train
from tfwire._examples.column_types import BytesColumn, RaggedTensor, SparseTensor
from tfwire._examples.encode import (
    encode_columns,
    encode_example,
    encode_examples,
    encode_framed,
    encode_sequence_example,
    int64_feature,
)
from tfwire._records.writing.writer import TFRecordWriter

# ---- Columns ------------------------------------------------------------------------------------


class Ragged(NamedTuple):
    values: Any
    row_splits: Any


class Strings(NamedTuple):
    data: Any
    offsets: Any


TWO_STRINGS = Strings(np.frombuffer(b"xab", np.uint8), np.array([1, 1, 3]))


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        (np.array([1, 2]), [1, 2]),
        (np.array([1, 2], ">i2"), [1, 2]),
        (np.arange(12)[::6], [0, 6]),
        (np.array([[1, 2], [3, 4]]).T, [[1, 3], [2, 4]]),
        (np.zeros((2, 3, 0)), [np.empty(0)] * 2),
        (np.array([0.5, 1], np.float16), [0.5, 1.0]),
        (np.array([0.5, 2], ml_dtypes.bfloat16), [0.5, 2.0]),
        (np.array(["a", "\u00e9"]), ["a", "\u00e9"]),
        (np.array([["a", "b"], ["c", "d"]], object), [["a", "b"], ["c", "d"]]),
        (np.array([b"a", [b"b", b"c"]], object), [b"a", [b"b", b"c"]]),
        ([1, 2], [1, 2]),
        ([1, 2.5], [1.0, 2.5]),
        ((True, False), [1, 0]),
        (["a", b"b"], ["a", b"b"]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        ([[], [1]], [np.empty(0, np.int64), [1]]),
        ([[1], [2.5]], [[1.0], [2.5]]),
        ([[], []], [[], []]),
        ([1, [2, 3]], [1, [2, 3]]),
        ([np.arange(2), np.arange(3)], [[0, 1], [0, 1, 2]]),
        ([np.array([[1, 2], [3, 4]]), np.array([[5, 6]])], [[1, 2, 3, 4], [5, 6]]),
        (range(2), [0, 1]),
        (TWO_STRINGS, [b"", b"ab"]),
        (Ragged(np.array([1, 2, 3]), [0, 2, 3]), [[1, 2], [3]]),
        (Ragged(np.array([[1, 2], [3, 4]]), [0, 0, 2]), [np.empty(0, np.int64), [1, 2, 3, 4]]),
        (Ragged(TWO_STRINGS, [0, 2, 2]), [[b"", b"ab"], np.empty(0, "S1")]),
        (SimpleNamespace(numpy=lambda: np.array([1, 2])), [1, 2]),
    ],
)
def test_a_column_of_any_form_is_one_value_per_record(column, rows):
    assert encode_columns({"x": column}) == encode_in_python([{"x": row} for row in rows])


def test_a_column_of_strings_may_have_a_shape():
    strings = BytesColumn(b"abcd", [0, 1, 2, 3, 4], (2, 2))
    assert encode_columns({"x": strings}) == encode_columns({"x": [["a", "b"], ["c", "d"]]})
    with pytest.raises(TypeError, match="rank 0"):
        encode_columns({"x": BytesColumn(b"a", [0, 1], ())})


@pytest.mark.parametrize("count", [0, 1, 1000, 100_000])
def test_messages_may_be_a_column_themselves(count):
    columns = {"i": np.arange(count), "s": [b"x" * (i * i % 61) for i in range(count)]}
    messages = encode_columns(columns, bytes_as="column")
    assert list(messages) == encode_columns(columns)


def test_a_column_of_messages_that_become_longer():
    strings = [b"", b"x" * 5_000_000, b"y", b"z" * 9_000_000]
    messages = encode_columns({"x": strings}, bytes_as="column")
    assert list(messages) == [encode_example({"x": string}) for string in strings]


def test_rows_given_for_columns_are_told_where_they_belong():
    with TFRecordWriter(io.BytesIO()) as writer:
        for encode in (encode_columns, writer.write_columns):
            with pytest.raises(TypeError, match="mapping of names to columns, found list; rows"):
                encode([{"a": 1}])


def test_feature_lists_are_a_mapping():
    with pytest.raises(TypeError, match="mapping of names to feature lists, found list"):
        encode_sequence_example(None, [1])


def test_columns_differ_in_length():
    with pytest.raises(ValueError, match="'a' has 2 records, feature 'b' has 3"):
        encode_columns({"a": [1, 2], "b": [1, 2, 3]})


@pytest.mark.parametrize("column", [None, 1, "text", b"bytes", np.array(1), {}])
def test_a_column_has_an_entry_per_record(column):
    with pytest.raises(TypeError, match="feature 'x': "):
        encode_columns({"x": column})


@pytest.mark.parametrize("splits", [[0, 2, 1, 3], [0, 4], [1, 3], [0, 1], [], [0, -1, 3]])
def test_splits_that_do_not_fit_are_refused(splits):
    with pytest.raises(ValueError, match="feature 'x': row_splits"):
        encode_columns({"x": Ragged(np.arange(3), splits)})


ROWS = RaggedTensor(RaggedTensor(np.array([1.5, 2, 3]), [0, 1, 1, 3]), [0, 2, 3])


@pytest.mark.parametrize(
    ("column", "record"),
    [
        ([[1], [[1], [2, 3]]], "record 1: "),
        ([[1], [[1, 2], [3, 4]]], "record 1: "),
        ([[[1]], None], "record 0: "),
        (np.array([[1], [[2]]], object), "record 1: "),
        ([[np.arange(2)]], "record 0: "),
        (ROWS, ""),
        (RaggedTensor(np.array([1, [2]], object), [0, 1, 2]), ""),
    ],
)
def test_lists_in_lists_are_refused(column, record):
    with pytest.raises(ValueError, match=f"^feature 'x': {record}lists in lists, .* features="):
        encode_columns({"x": column})
    steps = record.replace("record", "step")
    with pytest.raises(ValueError, match=f"^feature 'x': {steps}lists in lists"):
        encode_sequence_example(None, {"x": column})


@pytest.mark.parametrize("offsets", [[0, 2, 1], [0, 4], [-1, 2]])
def test_offsets_that_do_not_fit_are_refused(offsets):
    with pytest.raises(ValueError, match=r"feature 'x': record [01]: "):
        encode_columns({"x": Strings(np.zeros(3, np.uint8), np.array(offsets))})


def test_no_columns_are_no_records():
    assert encode_columns({}) == []
    assert encode_columns({"x": []}) == []
    assert list(encode_framed({"x": np.empty((0, 3))})) == []


def test_more_than_a_block_of_records():
    column = np.arange(200_000)
    records = encode_columns({"x": column})
    assert len(records) == len(column)
    assert records[::9999] == encode_examples([{"x": i} for i in column[::9999].tolist()])


def test_a_record_larger_than_a_block():
    image = bytes(3_000_000)
    assert encode_columns({"x": [b"", image]})[1] == encode_example({"x": image})
    assert len(encode_example({"x": image})) == len(image) + 28


def test_the_order_of_the_keys():
    columns = {"b": [1], "a": [2], b"\xff": [3], "\u00e9": [4]}
    keys = [b"a", b"b", b"\xc3\xa9", b"\xff"]
    (record,) = encode_columns(columns)
    assert sorted(keys, key=record.index) == keys
    (record,) = encode_columns(columns, sort_keys=False)
    assert sorted(keys, key=record.index) == [b"b", b"a", b"\xff", b"\xc3\xa9"]


# ---- Sequence examples --------------------------------------------------------------------------


def test_feature_lists_of_every_form():
    steps = [[1, 2], [3], []]
    expected = encode_sequence_example(None, {"w": steps})
    assert encode_sequence_example({}, {"w": [np.array(s, np.int64) for s in steps]}) == expected
    assert encode_sequence_example({}, {"w": Ragged(np.arange(1, 4), [0, 2, 3, 3])}) == expected


def test_feature_lists_of_messages():
    message = train.FeatureList(feature=[int64_feature(1), int64_feature([])])
    expected = encode_sequence_example({}, {"w": [1, np.empty(0, np.int64)]})
    assert encode_sequence_example({}, {"w": message}) == expected
    assert encode_sequence_example({}, {"w": list(message.feature)}) == expected


def test_feature_lists_without_steps_or_kinds():
    assert encode_sequence_example({}, {"e": []}) == b"\n\x00\x12\x07\n\x05\n\x01e\x12\x00"
    assert encode_sequence_example({}, {"e": [[], []]}) == (
        b"\n\x00\x12\x0b\n\x09\n\x01e\x12\x04\n\x00\n\x00"
    )


def test_a_step_of_another_kind_is_named():
    with pytest.raises(TypeError, match="feature 'w': step 1: numbers and strings"):
        encode_sequence_example({}, {"w": [[1], ["a"]]})


def test_ragged_columns_may_be_made_of_lists():
    ragged = RaggedTensor(["a", b"b\0"], [0, 0, 2])
    expected = [encode_example({"x": np.array([], object)}), encode_example({"x": ["a", b"b\0"]})]
    assert expected == encode_columns({"x": ragged})


def test_a_sparse_tensor_is_no_column():
    """Its three parts are not three records."""
    sparse = SparseTensor(np.array([[0, 0]]), np.array([1]), np.array([1, 1]))
    with pytest.raises(TypeError, match="feature 'x': a SparseTensor cannot be a column"):
        encode_columns({"x": sparse})


@pytest.mark.parametrize(("rows", "found"), [({"a": [1]}, "one mapping"), (None, "NoneType")])
def test_rows_that_are_no_iterable_of_mappings_are_refused(rows, found):
    with pytest.raises(TypeError, match=f"rows must be an iterable of mappings, found {found}"):
        encode_examples(rows)
