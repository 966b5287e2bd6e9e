"""What is wrong with a message is said with record, feature, expected and found; never payload."""

import gc
import pickle
import re
import warnings

import numpy as np
import pytest

import tfwire as tfw

pytestmark = pytest.mark.short_strings

INT = tfw.FixedLenFeature([], tfw.int64)
PAIR = tfw.FixedLenFeature([2], tfw.int64)
SECRET = b"never to be seen"


def one(**features):
    return tfw.encode_example(features | {"payload": SECRET})


def error_of(call, *arguments, **keywords):
    with pytest.raises(tfw.ParseError) as caught:
        call(*arguments, **keywords)
    assert SECRET.decode() not in str(caught.value)
    return caught.value


def attributes(error):
    return (error.record_index, error.feature, error.reason, error.expected, error.found)


MISFITS = [
    (
        INT,
        one(b=1),
        ("a", "missing", "int64", None),
        "Feature: a (data type: int64) is required but could not be found. "
        "The record has b, payload.",
    ),
    (
        PAIR,
        one(a=[1, 2, 3]),
        ("a", "count", 2, 3),
        "Key: a.  Number of int64 values != expected.  Values size: 3 but output shape: [2]",
    ),
    (
        tfw.FixedLenFeature([], tfw.string),
        one(a=["x", "y"]),
        ("a", "count", 1, 2),
        "Key: a.  Number of string values != expected.  Values size: 2 but output shape: []",
    ),
    (
        INT,
        one(a=0.5),
        ("a", "kind", "int64", "float32"),
        "Key: a.  Data types don't match. Data type: float32 but expected type: int64",
    ),
    (
        tfw.VarLenFeature(tfw.string),
        one(a=1),
        ("a", "kind", "string", "int64"),
        "Key: a.  Data types don't match. Expected type: string, Actual type: int64",
    ),
    (
        tfw.FixedLenSequenceFeature([2], tfw.float32, True),
        one(a=[0.5, 1.5, 2.5]),
        ("a", "count", 2, 3),
        "Key: a.  Number of float32 values is not a multiple of stride length. "
        "Saw 3 values but output shape is: [?,2]",
    ),
    (
        tfw.SparseFeature("i", "v", tfw.string, 5),
        one(i=[1], v=["x", "y"]),
        ("a", "count", 2, 1),
        "Key: a.  1 indices for 2 values",
    ),
    (
        tfw.RaggedFeature(tfw.int64, "v", [tfw.RaggedFeature.RowLengths("n")]),
        one(v=[1, 2, 3], n=[1, 1]),
        ("a", "partition", None, None),
        "Key: a.  RowLengths do not cover the values",
    ),
]


@pytest.mark.parametrize(("feature", "bad", "expected", "message"), MISFITS)
def test_a_failure_says_what_it_is_and_in_a_batch_the_record(feature, bad, expected, message):
    """Records without the feature that is optional, or with a default, stand around the bad one."""
    good = one(a=[1, 2]) if feature is PAIR else one(a=1) if feature is INT else None
    if good is None:
        good = one(a="x") if isinstance(feature, tfw.FixedLenFeature) else b""
    error = error_of(tfw.parse_example, [good, good, bad, good, bad], {"a": feature})
    assert (2, *expected) == attributes(error)
    assert f"record 2: {message}" == str(error)
    error = error_of(tfw.parse_single_example, bad, {"a": feature})
    assert (None, *expected) == attributes(error)
    assert message == str(error)


def test_names_of_examples_are_told():
    bad = [one(a=1), one()]
    error = error_of(tfw.parse_example, bad, {"a": INT}, example_names=["x", b"second"])
    assert str(error).startswith("record 1: Name: second: Feature: a ")
    error = error_of(tfw.parse_single_example, one(), {"a": INT}, example_names="the one")
    assert str(error).startswith("Name: the one: Feature: a ")
    error = error_of(tfw.parse_example, bad, {"a": INT}, example_names=["too few"])
    assert str(error).startswith("record 1: Feature: a ")


def test_a_message_that_is_none_says_where():
    error = error_of(tfw.parse_example, [b"", b"\x0a\x05abc"], {"a": tfw.VarLenFeature(tfw.int64)})
    assert (1, None, "malformed", None, None) == attributes(error)
    assert re.fullmatch(r"record 1: Could not parse example input: .* at byte \d+", str(error))


def test_a_malformed_feature_is_named():
    record = one(a=[1]).replace(b"\x0a\x01\x01", b"\x0a\x01\x80")
    error = error_of(tfw.parse_single_example, record, {"a": INT})
    assert (None, "a", "malformed", None, None) == attributes(error)
    assert " in feature a at byte " in str(error)


@pytest.mark.parametrize("record", [SECRET * 100, b"TFRecord" * 50, b"\xff" * 500])
def test_what_is_no_example_is_not_shown(record):
    error = error_of(tfw.parse_example, [record], {"a": INT})
    assert "malformed" == error.reason
    assert len(str(error)) < 200


def test_available_keys_are_few_and_short():
    record = tfw.encode_example({f"key{i:03}": 1 for i in range(100)} | {"x" * 500: 1})
    error = error_of(tfw.parse_single_example, record, {"a": INT})
    assert "key000, key001" in str(error)
    assert "and 81 more" in str(error)
    error = error_of(tfw.parse_single_example, tfw.encode_example({"x" * 500: 1}), {"a": INT})
    assert len(str(error)) < 250


def test_keys_that_are_no_text_can_be_shown():
    error = error_of(
        tfw.parse_single_example,
        tfw.encode_example({b"\xfe\n": 1}),
        {b"\xff": tfw.FixedLenFeature([], tfw.int64)},
    )
    str(error).encode()
    assert b"\xff" == error.feature.encode("utf-8", "surrogateescape")


def test_a_record_without_any_feature_says_so():
    error = error_of(tfw.parse_single_example, b"", {"a": INT})
    assert "The record has no features" in str(error)


def test_a_missing_feature_of_a_record_with_damage_elsewhere_is_still_told():
    """Features that nobody asks for are not looked into, also not for the list of keys."""
    record = tfw.encode_example({"b": [1]}).replace(b"\x0a\x01\x01", b"\x0a\x01\x80")
    error = error_of(tfw.parse_single_example, record, {"a": INT})
    assert "missing" == error.reason
    assert str(error).endswith("could not be found.")


def test_the_first_record_at_fault_is_told_first():
    records = [one(a=1), one(a=0.5), one()]
    assert (1, "kind") == (
        error_of(tfw.parse_example, records, {"a": INT}).record_index,
        error_of(tfw.parse_example, records, {"a": INT}).reason,
    )


def test_a_parser_works_on_after_an_error():
    parser = tfw.Parser({"a": INT, "v": tfw.VarLenFeature(tfw.string)})
    good = one(a=1, v=["x"])
    for bad in (one(), b"\xff", one(a=1, v=[2])):
        error_of(parser.parse, [good, bad])
        error_of(parser.parse_single, bad)
        assert [1, 1] == parser.parse([good, good])["a"].tolist()
        assert [b"x"] == parser.parse_single(good)["v"].values.tolist()


def test_errors_pickle():
    error = error_of(tfw.parse_example, [one()], {"a": INT})
    copy = pickle.loads(pickle.dumps(error))
    assert (str(error), attributes(error)) == (str(copy), attributes(copy))
    assert isinstance(copy, ValueError)


# ---- SequenceExamples ---------------------------------------------------------------------------

WORDS = {"words": tfw.FixedLenSequenceFeature([2], tfw.int64)}


def sequence(context=None, **lists):
    return tfw.encode_sequence_example(context or {"id": SECRET}, lists)


@pytest.mark.parametrize(
    ("bad", "expected", "message"),
    [
        (
            sequence(other=[[1]]),
            ("words", "missing", "int64", None),
            "Feature list 'words' is required but could not be found. The record has other.",
        ),
        (
            sequence(words=[[1, 2], [3]]),
            ("words", "count", 2, 1),
            "Feature list: words, step 1.  Number of int64 values != expected.  "
            "Values size: 1 but output shape: [2]",
        ),
        (
            sequence(words=[[0.5, 1.5]]),
            ("words", "kind", "int64", "float32"),
            "Feature list: words, step 0.  Data types don't match. "
            "Expected type: int64, Actual type: float32",
        ),
    ],
)
def test_a_failure_of_a_feature_list_names_record_and_step(bad, expected, message):
    good = sequence(words=[[1, 2]])
    error = error_of(tfw.parse_sequence_example, [good, bad], None, WORDS)
    assert (1, *expected) == attributes(error)
    assert f"record 1: {message}" == str(error)
    error = error_of(tfw.parse_single_sequence_example, bad, None, WORDS, example_name="name")
    assert f"Name: name: {message}" == str(error)


def test_a_failure_of_the_context_lists_the_keys_of_the_context():
    record = sequence({"length": 1}, words=[[1, 2]])
    error = error_of(tfw.parse_single_sequence_example, record, {"size": INT}, WORDS)
    assert (None, "size", "missing", "int64", None) == attributes(error)
    assert "The record has length." in str(error)


def test_a_malformed_sequence_example_says_where():
    good = sequence(words=[[1, 2]])
    error = error_of(tfw.parse_sequence_example, [good, good[:-1]], None, WORDS)
    assert (1, "malformed") == (error.record_index, error.reason)


# ---- Row splits --------------------------------------------------------------------------------


def test_row_splits_beyond_int32_are_refused(monkeypatch):
    """TensorFlow wraps them around. Four billion values are too many for a test."""
    features = {"r": tfw.RaggedFeature(tfw.int64)}
    parser = tfw.Parser(features)
    limit = np.iinfo(np.int8)
    monkeypatch.setattr(np, "iinfo", lambda dtype: limit)
    error = error_of(parser.parse, [one(r=range(128))])
    assert "Key: r.  Row splits up to 128 need row_splits_dtype=int64" == str(error)
    assert (None, "r", "partition", None, None) == attributes(error)
    assert 127 == len(parser.parse([one(r=range(127))])["r"][0])


def test_an_error_keeps_nothing_alive_but_itself(tmp_path):
    """Not the batch, in a cycle of references with its traceback that only a collection ends."""
    path = tmp_path / "records"
    tfw.write_records(path, [one(a=1), one(a="x"), one()])
    parser, lists = tfw.Parser({"a": INT}), tfw.SequenceParser({"a": INT})
    general = tfw.Parser({"a": INT, "b": tfw.VarLenFeature(tfw.int64)})

    def fail(call, argument):  # pytest.raises would keep the error
        try:
            call(argument)
        except tfw.ParseError:
            return
        raise AssertionError

    def failing():
        for message in (b"\xff", one(a="x"), one(a=[1, 2]), b""):
            for call in (parser.parse_single, general.parse_single, lists.parse_single):
                fail(call, message)
            for each in (parser, general, lists):
                fail(each.parse, [one(a=1), message])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert 1 == sum(len(b["a"]) for b in parser.parse_file(path, on_parse_error="skip"))

    failing()
    gc.collect()
    gc.disable()
    try:
        failing()
        assert 0 == gc.collect()
    finally:
        gc.enable()
