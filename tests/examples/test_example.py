"""Messages back to dicts, and the helpers that make one feature."""

import enum
import gc
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tfwire import train
from tfwire._base.errors import ParseError
from tfwire._examples.decode import decode_example, decode_examples, decode_sequence_example
from tfwire._examples.encode import (
    bytes_feature,
    encode_columns,
    encode_example,
    encode_examples,
    encode_sequence_example,
    float_feature,
    int64_feature,
)

pytestmark = pytest.mark.short_strings


class Label(enum.IntEnum):
    CAT = 1


def plain(values):
    """Decoded values as lists, with the dtype beside numbers."""
    return values if isinstance(values, list) else (values.dtype.name, values.tolist())


# ---- Decoding -----------------------------------------------------------------------------------


def test_a_decoded_example_has_arrays_and_lists_of_bytes():
    decoded = decode_example(encode_example({"i": [1, -2], "f": 0.5, "b": ["x", b"y"], "none": []}))
    assert {name: plain(values) for name, values in decoded.items()} == {
        "b": [b"x", b"y"],
        "f": ("float32", [0.5]),
        "i": ("int64", [1, -2]),
        "none": [],
    }


def test_decoded_arrays_are_writable_and_their_own():
    """Also where the values of many messages came in one piece."""
    records = encode_examples([{"i": i, "long": np.arange(600.0)} for i in range(100)])
    decoded = [decode_example(records[0]), *decode_examples(records)]
    for row in decoded:
        row["i"][0] += 1000
        row["long"][:] = 0
    assert [row["i"].tolist() for row in decoded] == [[1000]] + [[1000 + i] for i in range(100)]


@pytest.mark.parametrize("count", [0, 1, 2, 31, 33, 1000])
def test_many_decoded_at_once_equal_each_alone(count):
    rows = [
        {"i": list(range(i % 4)), "f": [0.5] * (i % 3 + 1), "s": [b"x"] * (i % 3), "one": i}
        for i in range(count)
    ]
    records = encode_examples(rows)
    together = [{k: plain(v) for k, v in d.items()} for d in decode_examples(records)]
    alone = [{k: plain(v) for k, v in decode_example(record).items()} for record in records]
    assert together == alone


@pytest.fixture
def collections():
    """The generations that were collected since."""
    found = []

    def note(phase, info):
        if phase == "stop":
            found.append(info["generation"])

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1023, 1024, 1025, 1026, 8000, 8300])
@pytest.mark.parametrize("count", [0, 1, 30, 31, 32, 40])
def test_one_of_any_size_equals_those_of_a_batch(size, count):
    """A small one is decoded into memory that others were decoded into before."""
    rows = [
        {str(i): np.arange(size if i == 0 else i % 4) for i in range(count)},
        {str(i): np.arange(size if i == 0 else i % 4, dtype=np.float32) for i in range(count)},
        {"s": bytes(size), "i": [3], "f": [0.5, 1.5]} | {str(i): 0.5 * i for i in range(count)},
    ]
    for message in encode_examples(rows, kinds="any"):
        for empty in (b"", b"\n\x0b\n\t\n\x01e\x12\x04\x1a\x02\n\x00"):  # an int64_list of none
            one, [first, _] = (
                decode_example(message + empty),
                decode_examples([message + empty] * 2),
            )
            assert list(one) == list(first)
            for key, values in one.items():
                assert plain(values) == plain(first[key])


def test_many_are_decoded_without_the_collector_looking_on(collections):
    """Which is left as it was found."""
    records = encode_examples([{"name": "x"}] * 4000)
    assert gc.isenabled()
    collections.clear()
    decoded = decode_examples(records)
    assert (4000, True, True) == (len(decoded), len(collections) < 4, gc.isenabled())


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        decode_examples([encode_example({"i": 1})])
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_was_decoded_stays_as_it_was():
    """Messages are decoded in memory that serves one after the other."""
    sizes = [1, 3, 1024, 1025, 70_000, 2, 1025, 0, 5]  # copied, handed over, too long to be kept
    messages = [
        {"i": np.arange(n), "f": np.full(n, n, np.float32), "s": [b"%d" % n] * n} for n in sizes
    ]
    decoded = [decode_example(encode_example(message)) for message in messages]
    for expected, found in zip(messages, decoded, strict=True):
        assert ["f", "i", "s"] == sorted(found)
        assert [expected["i"].tolist(), expected["s"]] == [list(found["i"]), found["s"]]
        assert expected["f"].tolist() == list(found["f"])
        for values in found["i"], found["f"]:
            assert len(values) == 0 or values.flags.writeable


numbers = st.integers(0, 600).map(lambda n: np.arange(n) % 7)
few_keys = st.lists(st.sampled_from("abcdefghijkl"), max_size=12, unique=True)
shapes = few_keys.flatmap(lambda keys: st.tuples(*(st.tuples(st.just(k), numbers) for k in keys)))


@given(st.lists(st.tuples(shapes, st.integers(1, 4)), max_size=8), st.integers(0, 2**32))
def test_messages_of_other_keys_and_sizes_may_follow_each_other(rows, seed):
    """A decoder knows the keys of the message before, and its numbers lie beside those of it. Each
    kind of message comes several times; a twice set key and the other values stay as they are."""
    rows = [dict(row) for row, times in rows for _ in range(times)]
    decoded = []
    for i, row in enumerate(rows):
        again = encode_example(dict([*row.items()][seed % 13 :]))  # some keys occur twice
        message = encode_example({k: v if k < "h" else v / 8 for k, v in row.items()}) + again
        [expected] = decode_examples([message])
        found = decode_example(message)
        assert list(expected) == list(found)
        for key, values in found.items():
            assert (values.dtype, plain(values)) == (expected[key].dtype, plain(expected[key]))
            values += i
        decoded.append((found, expected))
    for i, (found, expected) in enumerate(decoded):
        assert {k: plain(v) for k, v in found.items()} == {
            k: plain(v + i) for k, v in expected.items()
        }


def test_an_empty_message_has_no_features():
    assert decode_example(b"") == {}
    assert decode_examples([]) == []
    assert decode_sequence_example(b"") == ({}, {})


def test_a_sequence_example_has_context_and_lists():
    record = encode_sequence_example(
        {"n": 2}, {"w": [[1, 2], [3]], "s": ["a", ["b", "c"]], "e": []}
    )
    context, lists = decode_sequence_example(record)
    assert {name: plain(values) for name, values in context.items()} == {"n": ("int64", [2])}
    assert {name: [plain(step) for step in steps] for name, steps in lists.items()} == {
        "e": [],
        "s": [[b"a"], [b"b", b"c"]],
        "w": [("int64", [1, 2]), ("int64", [3])],
    }


def test_a_key_that_is_no_text_comes_back_as_it_went():
    record = encode_example({b"\xff\x00": 1})
    (name,) = decode_example(record)
    assert name.encode("utf-8", "surrogateescape") == b"\xff\x00"
    assert encode_example(decode_example(record)) == record


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, lambda b: np.array(b, object)])
def test_a_message_may_be_any_bytes(wrap):
    record = encode_example({"i": 1})
    assert plain(decode_example(wrap(record))["i"]) == ("int64", [1])


@pytest.mark.parametrize("wrong", ["text", None, 3, ["list"]])
def test_a_message_that_is_not_bytes_is_refused(wrong):
    with pytest.raises(TypeError, match="must be bytes-like"):
        decode_example(wrong)


def test_a_malformed_message_is_named():
    good = encode_example({"i": 1})
    with pytest.raises(ParseError, match=r"message 2 is malformed at byte \d+: ") as caught:
        decode_examples([good, good, good[:-1], good])
    assert caught.value.record_index == 2
    assert caught.value.reason == "malformed"
    with pytest.raises(ParseError, match="the message is malformed"):
        decode_example(good[:-1])


def test_every_truncation_is_a_message_or_an_error():
    record = encode_example({"i": [1, 300], "b": "text", "f": 1.5})
    for end in range(1, len(record)):
        with pytest.raises(ParseError):
            decode_example(record[:end])


# ---- One feature --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.bool_(True),
        1,
        np.int8(1),
        np.uint64(1),
        [1],
        (1,),
        np.array(1),
        np.array([[1]], np.uint16),
        SimpleNamespace(numpy=lambda: np.int64(1)),
        Label.CAT,
    ],
)
def test_int64_feature_takes_whatever_is_an_integer(value):
    assert int64_feature(value) == train.Feature(int64_list=train.Int64List(value=[1]))


@pytest.mark.parametrize("helper", [int64_feature, float_feature, bytes_feature])
@pytest.mark.parametrize("value", [None, 1j, {}, {1}, object(), np.datetime64(1, "s")])
def test_what_no_feature_can_hold_is_refused(helper, value):
    with pytest.raises(TypeError):
        helper(value)


@pytest.mark.parametrize("value", [2**63, np.uint64(2**63), [-(2**63) - 1]])
def test_int64_feature_knows_its_range(value):
    with pytest.raises(ValueError, match="outside of int64"):
        int64_feature(value)


@pytest.mark.parametrize(
    "value",
    [1.5, np.float16(1.5), np.float32(1.5), ml_dtypes.bfloat16(1.5), [1.5], np.full(1, 1.5)],
)
def test_float_feature_takes_whatever_is_a_number(value):
    assert list(float_feature(value).float_list.value) == [1.5]
    assert list(float_feature([1, True, np.int8(3)]).float_list.value) == [1, 1, 3]


@pytest.mark.parametrize(
    ("helper", "other", "values"),
    [
        (int64_feature, "float_feature", [1.0, np.float32(1), np.float64(1), [1, 2.0], np.ones(2)]),
        (int64_feature, "bytes_feature", ["1", b"1", ["1"]]),
        (float_feature, "bytes_feature", ["1.5"]),
        (bytes_feature, "int64_feature", [1]),
        (bytes_feature, "float_feature", [1.5]),
    ],
)
def test_a_helper_tells_the_one_for_other_values(helper, other, values):
    for value in values:
        with pytest.raises(TypeError, match=rf"{helper.__name__} takes .*use {other}"):
            helper(value)


@pytest.mark.parametrize(
    "value",
    [
        b"ab",
        "ab",
        bytearray(b"ab"),
        memoryview(b"ab"),
        np.bytes_(b"ab"),
        np.str_("ab"),
        ["ab"],
        np.array(["ab"], object),
        np.array(b"ab", object),
        SimpleNamespace(numpy=lambda: b"ab"),
        np.frombuffer(b"ab", np.uint8),
        np.frombuffer(b"ab", np.uint8).reshape(1, 2),
    ],
)
def test_bytes_feature_takes_strings_and_the_bytes_of_arrays(value):
    assert list(bytes_feature(value).bytes_list.value) == [b"ab"]


def test_empty_lists_have_the_kind_of_their_helper():
    assert int64_feature([]).WhichOneof("kind") == "int64_list"
    assert float_feature([]).WhichOneof("kind") == "float_list"
    assert bytes_feature([]).WhichOneof("kind") == "bytes_list"


def test_features_are_values_of_an_example():
    """The tutorials' helpers and encode_example go together."""
    features = {"i": int64_feature(1), "f": float_feature(2), "b": bytes_feature("x")}
    record = encode_example({**features, "none": train.Feature()})
    message = train.Example(features=train.Features(feature={**features, "none": train.Feature()}))
    assert record == message.SerializeToString(deterministic=True)
    assert encode_examples([features] * 2) == [encode_example(features)] * 2


# ---- Round trips --------------------------------------------------------------------------------

values = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1),
    st.lists(st.binary(), min_size=1),
    st.just([]),
)
kinds = st.one_of(
    values.map(lambda v: v if not v or isinstance(v[0], bytes) else np.array(v)),
    st.sampled_from([np.array([], dtype) for dtype in (object, np.int64, np.float32)]),
)
rows = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), kinds, max_size=4)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values))
def test_what_goes_in_comes_out(row):
    record = encode_example(row)
    decoded = decode_example(record)
    assert {k: v if isinstance(v, list) else v.tolist() for k, v in decoded.items()} == row
    message = train.Example.FromString(record)
    assert (len(record), set(row)) == (message.ByteSize() or 2, set(message.features.feature))


@given(rows, st.booleans())
def test_decoding_and_encoding_are_inverses(row, many):
    """Empty lists keep their kind, and a Feature without one stays so."""
    message = encode_examples([row] * 40)[7] if many else encode_example(row)
    decoded = decode_examples([message] * 40)[7] if many else decode_example(message)
    assert (message, {k: plain(v) for k, v in decoded.items()}) == (
        encode_example(decoded),
        {k: plain(v.astype("f") if getattr(v, "dtype", 0) == "d" else v) for k, v in row.items()},
    )


def test_empty_lists_and_features_without_a_kind():
    """Encoded, decoded, and in the steps of feature lists."""
    empty = {"bytes": np.array([], object), "none": []}
    message = encode_example(empty)
    feature = train.Example.FromString(message).features.feature
    assert ("bytes_list", None) == tuple(feature[name].WhichOneof("kind") for name in empty)
    for decoded in decode_example(message), *decode_examples([message] * 33):
        assert ("object", []) == plain(decoded["bytes"])
        assert decoded["none"] == []
    steps = {"s": [np.array([], object), [b"x"]], "n": [[], []]}
    context, lists = decode_sequence_example(encode_sequence_example(empty, steps))
    assert [("object", []), []] == [plain(context[name]) for name in empty]
    assert [("object", []), [b"x"]] == [plain(step) for step in lists["s"]]
    assert lists["n"] == [[], []]


@given(st.lists(st.tuples(values, values), min_size=1))
def test_columns_of_lists_equal_rows_where_kinds_agree(pairs):
    rows = [{"a": [1, *range(len(a))], "b": [b"", *map(repr, b)]} for a, b in pairs]
    columns = {"a": [row["a"] for row in rows], "b": [row["b"] for row in rows]}
    assert encode_columns(columns) == encode_examples(rows)
