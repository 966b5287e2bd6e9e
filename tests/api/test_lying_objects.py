"""Arguments that say something else each time they are asked: some answer, or an error.

`make check-sanitized` runs these over a sanitized core, where a wrong access ends the process.
"""

import io
import pickle
import random

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
