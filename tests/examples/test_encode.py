"""Columns and rows become the bytes that protobuf's deterministic serialization writes."""

from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, strategies as st

from helpers.arguments.encoding import encode_in_python, encode_without
from tfwire import RaggedTensor
from tfwire._examples import encode_rows as row_encoding
from tfwire._examples.encode import (
    WriterRows,
    encode_columns,
    encode_example,
    encode_examples,
    encode_framed,
    encode_sequence_example,
)

try:
    from ml_dtypes import bfloat16 as HALF
except ImportError:  # not everywhere are there wheels of it
    HALF = np.float16

# What the tutorials print for (False, 4, b"goat", 0.9876).
GOAT = (
    b"\nR\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00\n\x11\n\x08feature1\x12\x05\x1a\x03\n\x01"
    b"\x04\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04["
    b"\xd3|?"
)
GOAT_ROW = {"feature2": b"goat", "feature1": 4, "feature3": 0.9876, "feature0": False}


def test_rows_and_columns_give_the_same_bytes():
    columns = {name: [value] * 1000 for name, value in GOAT_ROW.items()}
    assert encode_examples([GOAT_ROW] * 1000) == [GOAT] * 1000
    assert encode_columns(columns) == [GOAT] * 1000


def test_framed_records_are_the_file_of_the_tutorials():
    columns = {name: [value] for name, value in GOAT_ROW.items()}
    framed = b"".join(bytes(block.view) for block in encode_framed(columns))
    assert framed[:12].hex() == "54000000000000005f514587"
    assert framed[12:-4] == GOAT
    assert framed[-4:].hex() == "b524e9be"


@pytest.mark.parametrize(
    ("value", "feature"),
    [
        (True, b"\x1a\x03\n\x01\x01"),
        (np.bool_(True), b"\x1a\x03\n\x01\x01"),
        (np.uint8(200), b"\x1a\x04\n\x02\xc8\x01"),
        (-1, b"\x1a\x0c\n\x0a" + b"\xff" * 9 + b"\x01"),
        (np.exp(1), b"\x12\x06\n\x04T\xf8-@"),
        ([1, 2.0], b"\x12\x0a\n\x08\x00\x00\x80?\x00\x00\x00@"),
        (1e300, b"\x12\x06\n\x04\x00\x00\x80\x7f"),
        ("\u00e9", b"\n\x04\n\x02\xc3\xa9"),
        ([b"a", "b", bytearray(b"c"), memoryview(b"d")], b"\n\x0c\n\x01a\n\x01b\n\x01c\n\x01d"),
        ([], b""),
        (np.empty(0, np.int32), b"\x1a\x00"),
        (np.empty(0, np.float64), b"\x12\x00"),
        (np.empty(0, "S1"), b"\n\x00"),
        (np.empty(0, object), b"\n\x00"),
        (np.array([[1, 2], [3, 4]]), b"\x1a\x06\n\x04\x01\x02\x03\x04"),
        ([np.array(1), np.array(2)], b"\x1a\x04\n\x02\x01\x02"),
        (np.arange(4).reshape(2, 2).T, b"\x1a\x06\n\x04\x00\x02\x01\x03"),
    ],
)
def test_the_kind_follows_from_the_values(value, feature):
    entry = b"\n\x01x\x12" + bytes([len(feature)]) + feature
    expected = b"\n" + bytes([len(entry) + 2]) + b"\n" + bytes([len(entry)]) + entry
    assert encode_example({"x": value}) == expected


def test_an_example_without_features():
    assert encode_example({}) == b"\n\x00"


def test_a_sequence_example():
    assert encode_sequence_example({"n": 2}, {"w": [[1, 2], [3], []]}) == (
        b"\n\x0c\n\x0a\n\x01n\x12\x05\x1a\x03\n\x01\x02"
        b"\x12\x1a\n\x18\n\x01w\x12\x13\n\x06\x1a\x04\n\x02\x01\x02\n\x05\x1a\x03\n\x01\x03"
        b"\n\x02\x1a\x00"
    )


# ---- Rows: through C where their values are plain, else value by value --------------------------


@pytest.fixture
def only_c(monkeypatch):
    """Fails the test when a row is encoded value by value."""

    def refuse(*_):
        raise AssertionError("a row was left to Python")

    monkeypatch.setattr(row_encoding, "inputs_from_rows", refuse)


LIST = [1, 2, 3]
TUPLE = (4.5, 6)
KNOWN = [
    {},
    {"only": 1},
    {"bool": True, "int": -1, "big": 2**63 - 1, "small": -(2**63), "float": 0.1, "inf": 1e300},
    {
        "str": "caf\u00e9",
        "bytes": b"\x00\xff",
        "empty": "",
        "long": b"x" * 70000,
        "b": bytearray(b"b"),
    },
    {
        "ints": [1, 2**40],
        "floats": [0.5],
        "mixed": [1, 2.5, True],
        "strings": ["a", b"b"],
        "none": [],
    },
    {"tuple": (1,), "pair": (1, 2), "three": (1, 2, 3), "four": (1, 2, 3, 4), "no": ()},
    {"thousands": list(range(2500)), "texts": [str(i) for i in range(1500)]},
    {"list": LIST, "again": LIST, "tuple": TUPLE, "tuple again": TUPLE},
    {f"key {i}": i for i in range(2500)},
    {"numpy": np.int32(7), "float": np.float32(0.1), "bool": np.bool_(True), "str": np.str_("s")},
    {"array": np.arange(3), "f2": np.ones((2, 2), np.float16), "none": np.empty(0, np.uint8)},
    {"strings": np.array(["a", "b"]), "objects": np.array([b"x", "y"], object)},
    {b"bytes key": 1, "str key": 2},
    {"half": HALF(1.5), "numbers": [np.float64(1.5), np.int8(1)]},
    {
        "none": None,
        "masked": np.ma.masked,
        "again": np.ma.masked,
        "time": np.datetime64("NaT", "s"),
    },
]


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: next(iter(row), "empty"))
def test_plain_rows_are_left_to_c(only_c, row):
    assert len(encode_examples([row, dict(row), row])) == 3


@pytest.mark.parametrize("sort_keys", [True, False])
def test_c_and_python_encode_rows_alike(sort_keys):
    rows = KNOWN + KNOWN[::-1]
    expected = encode_in_python(rows, sort_keys=sort_keys, kinds="any")
    assert encode_examples(rows, sort_keys=sort_keys, kinds="any") == expected
    assert [encode_example(row, sort_keys=sort_keys) for row in rows] == expected


UNKNOWN = [
    {"view": memoryview(b"v"), "range": range(3), "deque": deque([1])},
    {"scalars": [np.array(1), np.array(2)]},
    {"masked": np.ma.array([1, 2])},
    {"empty": np.array([], "S3")},
    OrderedDict(b=1, a=2),
    MappingProxyType({"a": 1}),
]


@pytest.mark.parametrize("row", UNKNOWN, ids=lambda row: next(iter(row)))
def test_other_rows_stand_among_plain_ones(row):
    rows = [{"a": 1}, row, {"b": 2}]
    assert encode_examples(rows) == [encode_example(row) for row in rows] == encode_in_python(rows)


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (TypeError, [1, None], "a null inside a list; leave it out or fill it"),
        (TypeError, 1j, "found complex"),
        (TypeError, {}, "found dict"),
        (TypeError, {1}, "found set"),
        (TypeError, object(), "found object"),
        (TypeError, print, "found builtin_function_or_method"),
        (TypeError, np.datetime64(1, "s"), "found datetime64"),
        (TypeError, np.array([1j]), "arrays of complex128"),
        (TypeError, Decimal(1), "found Decimal"),
        (TypeError, [1, "a"], "numbers and strings"),
        (TypeError, np.ma.array([1, 2], mask=[0, 1]), "a null inside a list"),
        (ValueError, 2**63, "outside of int64"),
        (ValueError, [-(2**63) - 1], "outside of int64"),
        (ValueError, np.uint64(2**63), "outside of int64"),
        (ValueError, np.array([2**63], np.uint64), "outside of int64"),
        (ValueError, np.array([2**63], ">u8"), "outside of int64"),
        (ValueError, [10**400, 1.0], "beyond the range of floats"),
        (ValueError, "\ud800", "lone surrogate at index 0"),
        (ValueError, [[1], [1, 2]], "lists in lists"),
        (ValueError, [[1, 2], [3, 4]], "lists in lists"),
        (ValueError, [(1,), (2,)], "lists in lists"),
        (ValueError, [1, [2]], "lists in lists"),
        (ValueError, [[], []], "lists in lists"),
        (ValueError, [np.arange(2), np.arange(2)], "lists in lists"),
        (ValueError, np.array([[1, 2], [3]], object), "lists in lists"),
        (ValueError, RaggedTensor(np.arange(2), [0, 2]), "lists in lists, .* features="),
    ],
)
def test_values_that_no_feature_holds_are_named(kind, value, error):
    with pytest.raises(kind, match=f"^feature 'x': .*{error}"):
        encode_example({"fine": 1, "x": value})
    with pytest.raises(kind, match=f"^feature 'x': record 1: .*{error}"):
        encode_examples([{"x": 1}, {"x": value}, {"x": [None]}])


ANY_TEXT = st.text(st.characters(), max_size=20)  # with lone surrogates
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    ANY_TEXT,
    st.binary(max_size=20),
    st.sampled_from([None, np.int8(-1), np.uint64(2**63), np.float32(0.1), np.str_("s"), 1j]),
)
VALUES = st.recursive(
    st.one_of(
        SCALARS, st.sampled_from([np.arange(3), np.ones((2, 2)), np.empty(0, np.int8), LIST])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.tuples(inner, inner)),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.one_of(ANY_TEXT, st.binary(max_size=3)), VALUES, max_size=5))


def outcome(call, *arguments, **options):
    try:
        return call(*arguments, **options)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


KINDS = st.one_of(
    st.sampled_from([None, "any"]),
    st.dictionaries(ANY_TEXT, st.sampled_from(["int64", "float32", "string", "any"]), max_size=3),
)


@given(ROWS, st.booleans(), KINDS)
def test_rows_of_anything_have_one_outcome(rows, sort_keys, kinds):
    """The same messages, or the same error, whichever way a row takes."""
    options = {"sort_keys": sort_keys, "kinds": kinds}
    expected = outcome(encode_in_python, rows, **options)
    assert outcome(encode_examples, rows, **options) == expected
    for form in ("_as_it_is", "_plain"):
        assert outcome(encode_without, [form], rows, **options) == expected


PLAIN = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text())
PLAIN_ROW = st.dictionaries(
    st.text(max_size=3), st.one_of(PLAIN, st.lists(st.integers(-9, 9)), st.just(LIST)), max_size=20
)


@given(st.lists(PLAIN_ROW), st.sampled_from([None, "any", {"": "float32"}]), st.data())
def test_rows_of_numbers_and_text_are_the_same_in_every_form(rows, kinds, data):
    """Also where rows, lists and texts occur again, and rows are wide."""
    rows += data.draw(st.lists(st.sampled_from(rows or [{}])))
    expected = outcome(encode_in_python, rows, kinds=kinds)
    assert expected == outcome(encode_examples, rows, kinds=kinds)
    assert expected == outcome(encode_without, ["_as_it_is"], rows, kinds=kinds)
    assert expected == outcome(encode_without, ["_plain"], rows, kinds=kinds)


def test_rows_are_numbered_across_chunks():
    rows = [{"x": i} for i in range(5000)]
    rows[4321] = {"x": [None]}
    with pytest.raises(TypeError, match=r"^feature 'x': record 4321: "):
        encode_examples(iter(rows))


def test_rows_before_a_bad_one_are_framed():
    rows = [{"x": i} for i in range(100)] + [{"x": [None]}]
    sizes = []
    with pytest.raises(TypeError, match=r"^feature 'x': "):
        sizes.extend(block.length for block in WriterRows().framer()(rows, 0))
    assert sum(sizes) == sum(len(record) + 16 for record in encode_examples(rows[:-1]))


@pytest.mark.parametrize("row", [[("a", 1)], None, 3, "ab"])
def test_a_row_is_a_mapping(row):
    with pytest.raises(TypeError, match="expected a mapping of names to values"):
        encode_example(row)
    with pytest.raises(TypeError, match="record 1: expected a mapping of names to values"):
        encode_examples([{}, row])


def test_a_key_is_text_or_bytes():
    with pytest.raises(TypeError, match="keys of features must be str or bytes, found int"):
        encode_example({1: 1})


def test_a_key_twice_is_refused():
    with pytest.raises(ValueError, match="the same feature"):
        encode_example({"k": 1, b"k": 2})


def test_no_code_of_a_value_is_run_by_pickling_rows():
    class Trap:
        def __reduce__(self):
            raise AssertionError("pickled")

    with pytest.raises(TypeError, match="found Trap"):
        encode_examples([{"x": Trap()}] * 2)


def test_an_error_inside_a_value_is_not_hidden():
    class Broken:
        def numpy(self):
            raise RuntimeError("no data")

    with pytest.raises(RuntimeError, match="no data"):
        encode_example({"x": Broken()})


def test_a_list_within_itself_is_an_error():
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        encode_example({"x": loop})


def test_threads_encode_at_the_same_time():
    rows = [[{f"k{i}": j, "s": "x" * j} for j in range(50)] for i in range(8)]
    expected = [encode_examples(chunk) for chunk in rows]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            assert list(pool.map(encode_examples, rows)) == expected


def test_rows_of_many_sizes_are_framed_whole():
    rows = [{"x": b"x" * (i * i % 5000)} for i in range(3000)]
    framed = b"".join(bytes(block.view) for block in WriterRows().framer()(iter(rows), 0))
    columns = {"x": [row["x"] for row in rows]}
    expected = b"".join(bytes(block.view) for block in encode_framed(columns))
    assert framed == expected
