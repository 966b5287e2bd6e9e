"""Arguments that say something else each time they are asked: some answer, or an error. Of those
that say something else than the memory that they show, sizes are those of the memory.

`make check-sanitized` runs these over a sanitized core, where a wrong access ends the process.
"""

import io
import pickle
import random
from types import SimpleNamespace

import numpy as np
import pytest

import tfwire as tfw
from helpers.arguments.lying import Array, Dict, Table, lie, seed
from helpers.search import search
from tfwire._parsing import base_parser as parser_module

FEATURES = {
    "a": tfw.FixedLenFeature([2], tfw.int64, [0, 0]),
    "b": tfw.FixedLenFeature([], tfw.float32, 0.0),
    "c": tfw.VarLenFeature(tfw.string),
    "d": tfw.FixedLenFeature([], tfw.string, ""),
    "e": tfw.FixedLenSequenceFeature([], tfw.int64, True),
}
ROW = {"a": [1, 2], "b": 0.5, "c": ["x", b"yz"], "d": "w" * 9, "e": np.arange(3)}
COLUMNS = {
    "a": [[1, 2], [3, 4]],
    "b": np.array([0.5, 1.5], np.float32),
    "c": tfw.BytesColumn(b"abc", [0, 1, 3]),
    "d": tfw.RaggedTensor(np.arange(5), np.array([0, 2, 5])),
    "e": ["x", b"y"],
}
MESSAGE = tfw.encode_example(ROW)
SEQUENCE = tfw.encode_sequence_example({"a": [1, 2]}, {"e": [[1], [2]]})
LISTS = {"e": tfw.FixedLenSequenceFeature([], tfw.int64), "v": tfw.VarLenFeature(tfw.int64)}
CONTEXT = {"a": tfw.FixedLenFeature([2], tfw.int64)}
TENSOR = tfw.serialize_tensor(np.arange(6).reshape(2, 3))
JSON = tfw.example_to_json(MESSAGE)
FIXED = {key: FEATURES[key] for key in "abd"}
OUT = {"a": np.zeros((2, 2), np.int64), "b": np.zeros(3, np.float32)}


def parse_with_out(messages, out):
    return tfw.Parser(FEATURES).parse(messages, out=out)


def parse_with_default(default, dtype):
    spec = {"x": tfw.FixedLenFeature([2], dtype, default)}
    return tfw.parse_single_example(MESSAGE, spec), tfw.parse_example([MESSAGE] * 2, spec)


def parse_with_shape(shape, size):
    spec = {
        "x": tfw.FixedLenSequenceFeature(shape, tfw.int64, True),
        "s": tfw.SparseFeature(["a"], "e", tfw.int64, size),
    }
    return tfw.parse_example([MESSAGE] * 2, spec)


def encode_ragged(*arguments):
    return tfw.encode_columns({"r": tfw.RaggedTensor(*arguments)})


def fill(*arguments):
    return tfw.SparseTensor(*arguments).to_dense(max_padding=1 << 20)


# Every entry point of parsing and encoding, with honest arguments.
CALLS = [
    (tfw.parse_single_example, [MESSAGE, FIXED]),
    (tfw.parse_single_example, [MESSAGE, FEATURES]),
    (tfw.parse_example, [[MESSAGE, MESSAGE], FEATURES]),
    (tfw.parse_example, [tfw.BytesColumn(MESSAGE, [0, len(MESSAGE)]), FEATURES, ["name"]]),
    (tfw.parse_single_sequence_example, [SEQUENCE, CONTEXT, LISTS]),
    (tfw.parse_sequence_example, [[SEQUENCE, SEQUENCE], CONTEXT, LISTS]),
    (parse_with_out, [[MESSAGE, MESSAGE], OUT]),
    (tfw.decode_example, [MESSAGE]),
    (tfw.decode_examples, [[MESSAGE, MESSAGE]]),
    (tfw.decode_sequence_example, [SEQUENCE]),
    (tfw.encode_example, [ROW]),
    (tfw.encode_examples, [[ROW, ROW]]),
    (tfw.encode_columns, [COLUMNS]),
    (lambda columns: tfw.encode_columns(columns, bytes_as="column"), [COLUMNS]),
    (tfw.encode_sequence_example, [ROW, COLUMNS]),
    (tfw.bytes_feature, [["x", b"y"]]),
    (tfw.int64_feature, [[1, 2]]),
    (tfw.float_feature, [np.arange(2.0)]),
    (tfw.serialize_tensor, [[[1, 2], [3, 4]]]),
    (tfw.serialize_tensor, [np.arange(4.0)]),
    (tfw.parse_tensor, [TENSOR, "int64"]),
    (tfw.decode_raw, [[b"abcd", b"efgh"], "int16", True, 2]),
    (tfw.decode_raw, [tfw.BytesColumn(b"abcd", [0, 2, 4]), "int16"]),
    (tfw.decode_json_example, [[JSON, JSON]]),
    (tfw.example_to_json, [MESSAGE]),
    (lambda *a: tfw.BytesColumn(*a).to_numpy(), [b"abc", [0, 1, 3], (2,)]),
    (lambda *a: tfw.BytesColumn(*a).take(np.array([1, 0])), [b"abc", np.array([0, 1, 3])]),
    (lambda *a: tfw.BytesColumn(b"abc", [0, 1, 3]).take(*a), [np.array([1, 0])]),
    (lambda *a: tfw.RaggedTensor(*a).to_list(), [[1, 2, 3], [0, 1, 3]]),
    (encode_ragged, [np.arange(3), np.array([0, 1, 3])]),
    (encode_ragged, [tfw.BytesColumn(b"abc", [0, 1, 2, 3]), np.array([0, 1, 3])]),
    (fill, [np.array([[0, 1]]), np.array([5]), np.array([2, 2])]),
    (parse_with_default, [np.array([1, 2]), tfw.int64]),
    (parse_with_default, [np.array([0.5, 2], np.float32), tfw.float32]),
    (parse_with_default, [["x", b"yz"], tfw.string]),
    (parse_with_shape, [np.array([1]), [3]]),
    (tfw.crc32c, [np.arange(3)]),
    (lambda *a: tfw.write_records(io.BytesIO(), *a), [[MESSAGE, np.arange(3), ROW]]),
]

# What a program may meet that gives wrong arguments. Not SystemError, AssertionError, ...
ERRORS = (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, MemoryError)


def test_no_lie_makes_a_wrong_access():
    def case(rng):
        function, arguments = rng.choice(CALLS)
        try:
            pickle.dumps(function(*(lie(rng, argument) for argument in arguments)))
        except (*ERRORS, RecursionError, Warning, pickle.PicklingError):
            pass

    search(case, least=100)


@pytest.mark.parametrize("make", [Dict, Table, dict])
@pytest.mark.parametrize("shape", [(2, 2), (1, 2), (2, 1), (0,), (4,), (2, 2, 1)])
def test_out_is_looked_at_once(make, shape):
    """Only arrays of the right true shape are written to, whatever they say."""
    real = np.zeros(shape, np.int64)
    for number in range(50):
        seed(random.Random(number))
        out = make({"a": real.view(Array), "b": np.zeros(3, np.float32)})
        try:
            found = parse_with_out([MESSAGE, MESSAGE], out)
        except (TypeError, ValueError):
            continue
        assert [[1, 2], [1, 2]] == found["a"].tolist()
    assert shape == (2, 2) or not real.any()


def test_out_that_says_it_is_empty_is_checked_all_the_same():
    class Empty(dict):
        def __len__(self):
            return 0

        def get(self, key, default=None):
            return np.zeros(0, np.int64)

    found = tfw.Parser({"a": FEATURES["a"]}).parse([MESSAGE] * 100, out=Empty())
    assert (100, 2) == found["a"].shape


@pytest.mark.parametrize("out", [0, False, [], (), "", "a", [("a", 1)]])
def test_out_must_be_a_mapping_also_when_it_is_false(out):
    with pytest.raises(TypeError, match="out must be a dict of arrays"):
        parse_with_out([MESSAGE], out)


def test_a_plain_array_of_out_is_what_comes_back():
    out = {"b": np.zeros(1, np.float32)}
    assert parse_with_out([MESSAGE], out)["b"] is out["b"]


@pytest.mark.parametrize("length", [0, 1, 3, 1000])
def test_a_list_of_messages_that_lies_about_its_length(length):
    """Nothing of what memory held before comes back."""

    class Lying(list):
        def __len__(self):
            return length

    lists = {"e": tfw.FixedLenSequenceFeature([], tfw.int64)}
    for parse, messages, expected in [
        (lambda m: tfw.parse_example(m, FIXED)["b"].tolist(), [MESSAGE] * 2, [0.5, 0.5]),
        (
            lambda m: tfw.parse_sequence_example(m, None, lists)[1]["e"].tolist(),
            [SEQUENCE],
            [[1, 2]],
        ),
        (lambda m: tfw.decode_examples(m), [b""] * 2, [{}, {}]),
    ]:
        try:
            found = parse(Lying(messages))
        except (TypeError, ValueError):
            continue
        assert expected[:length] == found[: len(expected[:length])]
        assert len(found) <= len(expected)


def test_slices_that_hold_another_number_of_messages_are_refused(monkeypatch):
    """As they would where a list is changed by another thread after it was counted."""
    honest = parser_module.message_slices
    monkeypatch.setattr(parser_module, "message_slices", lambda some: (3, honest(some)[1]))
    with pytest.raises(ValueError, match="3 messages at first, then 2"):
        tfw.parse_example([MESSAGE] * 2, FIXED)


# ---- Sizes -----------------------------------------------------------------------------------


ONE_NUMBER = tfw.encode_example({"i": 1})
SPEC = {"i": tfw.FixedLenFeature([], tfw.int64)}


class Long(bytes):
    """A byte string that says it is far longer than it is."""

    def __len__(self):
        return 1 << 40

    def __bytes__(self):
        return self


class LongText(str):
    """Text whose bytes are others than those it has."""

    def encode(self, *_):
        return Long(b"other")


def test_a_key_has_the_length_of_its_bytes():
    plain = tfw.encode_columns({b"key": np.arange(2)})
    for key in (Long(b"key"), LongText("key")):
        assert tfw.encode_columns({key: np.arange(2)}) == plain
        assert tfw.encode_example({key: 1}) == tfw.encode_example({"key": 1})


@pytest.mark.parametrize("size", [3, 300_000])
def test_a_record_has_the_length_of_its_bytes(size, tmp_path):
    path, payload = tmp_path / "a", b"x" * size
    message = SimpleNamespace(SerializeToString=lambda: Long(payload))
    for record in (Long(payload), LongText("x" * size), message):
        with tfw.TFRecordWriter(path) as writer:
            writer.write(record)
            writer.write_many([record, b"y", record])
        assert list(tfw.read_records(path)) == [payload, payload, b"y", payload]


def test_a_message_has_the_length_of_its_bytes():
    lying = Long(ONE_NUMBER)
    assert tfw.decode_example(lying)["i"].tolist() == [1]
    assert tfw.decode_examples([lying])[0]["i"].tolist() == [1]
    assert tfw.parse_example([ONE_NUMBER, lying], SPEC)["i"].tolist() == [1, 1]
    assert tfw.parse_single_example(lying, SPEC)["i"] == 1


def test_a_string_has_the_length_of_its_bytes():
    plain = tfw.encode_columns({"s": [b"abc"] * 3})
    for lying in (Long(b"abc"), LongText("abc")):
        assert tfw.encode_columns({"s": [lying] * 3}) == plain
        assert tfw.encode_columns({"s": [b"abc", lying, b"abc"]}) == plain
        assert tfw.encode_examples([{"s": lying}] * 3) == plain
        assert tfw.encode_example({"s": lying}) == plain[0]


@pytest.mark.parametrize("shape", [(4, 0), (2, 2), ()])
def test_row_splits_have_rank_one(shape):
    ragged = tfw.RaggedTensor(np.arange(3), np.zeros(4, np.int64))
    ragged.row_splits = np.zeros(shape, np.int64)
    with pytest.raises(ValueError, match="row_splits"):
        tfw.encode_columns({"r": ragged})


@pytest.mark.parametrize("name", ["data", "offsets"])
def test_a_column_whose_arrays_have_no_memory(name):
    column = tfw.BytesColumn(ONE_NUMBER * 3, np.arange(4) * len(ONE_NUMBER))
    setattr(column, name, np.zeros((100, 0), getattr(column, name).dtype))
    for call in (
        column.to_numpy,
        lambda: tfw.parse_example(column, SPEC),
        lambda: tfw.decode_examples(column),
        lambda: tfw.encode_columns({"s": column}),
    ):
        with pytest.raises(ValueError, match=r"offsets|records|rank"):
            call()


def test_an_array_that_lies_about_its_shape():
    class Lying(np.ndarray):
        shape = (1000, 1000)
        ndim = 2
        size = 10**6

        def __len__(self):
            return 1000

        def ravel(self, *_):
            return np.arange(3)

    plain = np.arange(6)
    array = plain.view(Lying)
    assert tfw.encode_columns({"a": array}) == tfw.encode_columns({"a": plain})
    assert tfw.encode_example({"a": array}) == tfw.encode_example({"a": plain})
    spec = {"x": tfw.FixedLenFeature([6], tfw.int64, array)}
    assert tfw.parse_single_example(ONE_NUMBER, spec)["x"].tolist() == plain.tolist()
