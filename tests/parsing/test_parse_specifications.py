"""Specifications: shapes, defaults, sparse and ragged features, and padding."""

from types import SimpleNamespace

import numpy as np
import pytest

import tfwire as tfw
from tfwire._parsing import padding

pytestmark = pytest.mark.short_strings


def fixed(shape, dtype=tfw.int64, **fields):
    return {"a": tfw.FixedLenFeature(shape, dtype, **fields)}


def one(**features):
    return tfw.encode_example(features)


# ---- Specifications ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "values", "expected"),
    [
        ([], [1], 1),
        ([1], [1], [1]),
        (3, [1, 2, 3], [1, 2, 3]),
        ([2, 3], range(6), [[0, 1, 2], [3, 4, 5]]),
        ((2, 1, 2), range(4), [[[0, 1]], [[2, 3]]]),
        (np.array([2]), [1, 2], [1, 2]),
        ([0], np.empty(0, np.int64), []),
    ],
)
def test_values_fill_the_shape_row_by_row(shape, values, expected):
    record = one(a=np.array(values, np.int64))
    assert expected == tfw.parse_single_example(record, fixed(shape))["a"].tolist()
    assert [expected] * 2 == tfw.parse_example([record] * 2, fixed(shape))["a"].tolist()


def test_dimensions_of_tensorflow_are_taken():
    """A TensorShape is an iterable of objects with a value."""
    shape = [SimpleNamespace(value=2)]
    assert [1, 2] == tfw.parse_single_example(one(a=[1, 2]), fixed(shape))["a"].tolist()


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ({}, ValueError, "features cannot be empty"),
        ([("a", tfw.VarLenFeature(tfw.int64))], TypeError, "features must be a dict"),
        ({"a": 5}, ValueError, "Unsupported int 5 for key 'a'; expected one of FixedLenFeature, "),
        ({5: tfw.VarLenFeature(tfw.int64)}, TypeError, "keys of features must be str or bytes"),
        (fixed([], None), ValueError, "Missing type for feature a"),
        (fixed([], ""), ValueError, "Missing type for feature a"),
        (fixed([], np.int32), ValueError, "int32 of feature a .* allowed.*: float32, int64, str"),
        (fixed([], bool), ValueError, "bool of feature a .* list of allowed values"),
        (fixed(None), ValueError, "Missing shape for feature a"),
        (fixed([None]), ValueError, "First dimension of shape for feature a unknown"),
        (fixed([2, None]), ValueError, r"need to be known but received \[2, None\]"),
        (fixed([-1]), ValueError, "Dimension -1 .* must be >= 0"),
        (fixed([2.0]), TypeError, "must be integer or None, got 2.0"),
        (fixed("2"), TypeError, "expected ints, found '2'"),
        (fixed([2**40, 2**40]), ValueError, "too large"),
        (fixed([], default_value=1.5), TypeError, r"cannot convert 1\.5 to int64"),
        (fixed([], default_value="1"), TypeError, "cannot convert '1' to int64"),
        (fixed([], default_value=2**70), ValueError, "outside of int64"),
        (fixed([], tfw.string, default_value=1), TypeError, "cannot convert 1 to string"),
        (fixed([2], default_value=1), ValueError, "with 1 values, but the requested shape has 2"),
        (fixed([], default_value=[]), ValueError, "with 0 values, but the requested shape has 1"),
        (
            {"a": tfw.FixedLenSequenceFeature([], tfw.int64)},
            ValueError,
            "requires allow_missing to be True",
        ),
        (
            {"a": tfw.FixedLenSequenceFeature([], tfw.int64, True, [1, 2])},
            ValueError,
            "with 2 values, but the requested shape has 1",
        ),
        (
            {"a": tfw.SparseFeature("i", "", tfw.int64, 3)},
            ValueError,
            "Missing value_key for SparseFeature",
        ),
        (
            {"a": tfw.SparseFeature(["i", "j"], "v", tfw.int64, [3])},
            ValueError,
            "equal lengths",
        ),
        ({"a": tfw.SparseFeature(["i"], "v", tfw.int64, 3)}, TypeError, "list of ints"),
        (
            {"a": tfw.VarLenFeature(tfw.int64), b"a": tfw.VarLenFeature(tfw.float32)},
            ValueError,
            "Conflicting type tf.int64 vs tf.float32 for feature",
        ),
        (fixed([]) | {b"a": tfw.FixedLenFeature([], tfw.int64)}, ValueError, "given twice"),
        (
            fixed([]) | {"r": tfw.RaggedFeature(tfw.int64, "a")},
            ValueError,
            "Dense and ragged keys must not intersect",
        ),
        (
            {"a": tfw.VarLenFeature(tfw.int64), "r": tfw.RaggedFeature(tfw.int64, "a")},
            ValueError,
            "Ragged and sparse keys must not intersect",
        ),
        (
            {
                "a": tfw.RaggedFeature(tfw.int64, "v"),
                "b": tfw.RaggedFeature(tfw.int64, "v", row_splits_dtype=tfw.int64),
            },
            ValueError,
            "Conflicting partition type",
        ),
        (
            {"a": tfw.RaggedFeature(tfw.int64, "v", [tfw.RaggedFeature.UniformRowLength(0)])},
            ValueError,
            "must be positive",
        ),
    ],
)
def test_a_wrong_specification_is_refused_before_any_message(features, error, message):
    for serialized in ([], b""):
        with pytest.raises(error, match=message):
            tfw.parse_example(serialized, features)


@pytest.mark.parametrize("key", ["n", "name", "feature", "dtype", "image"])
def test_a_refused_feature_is_named_whatever_its_name(key):
    with pytest.raises(TypeError, match=f"^feature {key}: dtype must be"):
        tfw.Parser({key: tfw.FixedLenFeature([], "foo")})


@pytest.mark.parametrize(
    ("dtype", "shape", "default", "expected"),
    [
        (tfw.int64, [], True, 1),
        (tfw.int64, [], np.int32(5), 5),
        (tfw.int64, [], [7], 7),
        (tfw.int64, [2, 2], [1, 2, 3, 4], [[1, 2], [3, 4]]),
        (tfw.int64, [2], np.array([[8], [9]], np.uint8), [8, 9]),
        (tfw.float32, [], 3, 3.0),
        (tfw.float32, [2], [0.5, 2], [0.5, 2.0]),
        (tfw.float32, [], 1e300, np.inf),
        (tfw.string, [], "é", "é".encode()),
        (tfw.string, [2], [b"", bytearray(b"x")], [b"", b"x"]),
        (tfw.string, [], SimpleNamespace(numpy=lambda: b"y"), b"y"),
    ],
)
def test_defaults_are_converted_and_reshaped(dtype, shape, default, expected):
    batch = tfw.parse_example([b"", b""], fixed(shape, dtype, default_value=default))
    assert [expected] * 2 == batch["a"].tolist()


def test_every_record_gets_a_default_of_its_own():
    batch = tfw.parse_example([b"", b""], fixed([2], default_value=[1, 2]))
    batch["a"][0, 0] = 9
    assert [[9, 2], [1, 2]] == batch["a"].tolist()


def test_keys_are_any_bytes():
    record = tfw.encode_example({b"\xff\0": 1, "": 2, "é": 3})
    features = {key: tfw.FixedLenFeature([], tfw.int64) for key in (b"\xff\0", "", "é")}
    assert {b"\xff\0": 1, "": 2, "é": 3} == tfw.parse_single_example(record, features)
    escaped = {"\udcff\0": tfw.FixedLenFeature([], tfw.int64)}
    assert [1] == list(tfw.parse_single_example(record, escaped).values())


def test_an_empty_list_may_count_as_missing():
    features = fixed([], default_value=7)
    record = one(a=np.empty(0, np.int64))
    parser = tfw.Parser(features, empty_is_missing=True)
    assert [7] == parser.parse([record])["a"].tolist()
    assert {"a": 7} == parser.parse_single(record)
    with pytest.raises(tfw.ParseError, match=r"Values size: 0 but output shape: \[\]"):
        tfw.parse_example([record], features)


def test_padding_takes_the_default_only_in_batches():
    features = {"a": tfw.FixedLenSequenceFeature([2], tfw.int64, True, default_value=-1)}
    records = [one(a=[1, 2]), one(), one(a=[3, 4, 5, 6])]
    expected = [[[1, 2], [-1, -1]], [[-1, -1], [-1, -1]], [[3, 4], [5, 6]]]
    assert expected == tfw.parse_example(records, features)["a"].tolist()
    assert (0, 2) == tfw.parse_single_example(b"", features)["a"].shape


@pytest.mark.parametrize("default", [None, "-", b"--"])
@pytest.mark.parametrize("bytes_as", ["object", "column"])
def test_padding_of_strings(default, bytes_as):
    features = {"a": tfw.FixedLenSequenceFeature([], tfw.string, True, default)}
    parser = tfw.Parser(features, bytes_as=bytes_as)
    fill = b"" if default is None else default.encode() if isinstance(default, str) else default
    found = parser.parse([one(a=["xy", ""]), one(), one(a=["z"])])["a"]
    expected = [[b"xy", b""], [fill, fill], [b"z", fill]]
    assert expected == np.asarray(found).tolist()


# ---- Sparse and ragged -------------------------------------------------------------------------


def test_one_column_serves_several_features():
    features = {
        "x": tfw.RaggedFeature(tfw.int64, "v", [tfw.RaggedFeature.RowLengths("n")]),
        "y": tfw.RaggedFeature(tfw.int64, "v", [tfw.RaggedFeature.UniformRowLength(3)]),
        "v": tfw.RaggedFeature(tfw.int64),
        "n": tfw.RaggedFeature(tfw.int64),
        "s": tfw.SparseFeature("i", "w", tfw.float32, 9),
        "i": tfw.VarLenFeature(tfw.int64),
    }
    record = one(v=[1, 2, 3], n=[1, 2], i=[5, 2], w=[0.5, 1.5])
    batch = tfw.parse_example([record, b""], features)
    assert [[[1], [2, 3]], []] == batch["x"].to_list()
    assert [[[1, 2, 3]], []] == batch["y"].to_list()
    assert (2, None, 3) == batch["y"].shape
    assert [[1, 2, 3], []] == batch["v"].to_list()
    assert [[1, 2], []] == batch["n"].to_list()
    assert [[0, 2], [0, 5]] == batch["s"].indices.tolist()
    assert [1.5, 0.5] == batch["s"].values.tolist()
    assert [5, 2] == batch["i"].values.tolist()


def test_sparse_strings_are_sorted_with_their_indices():
    features = {"s": tfw.SparseFeature(["i", "j"], "v", tfw.string, [4, 4])}
    record = one(i=[3, 0, 0], j=[0, 2, 1], v=["third", "second", ""])
    for bytes_as in ("object", "column"):
        found = tfw.Parser(features, bytes_as=bytes_as).parse([record, b"", record])["s"]
        assert [[0, 0, 1], [0, 0, 2], [0, 3, 0]] == found.indices.tolist()[:3]
        assert [b"", b"second", b"third"] * 2 == np.asarray(found.values).tolist()
        assert (3, 4, 4) == found.shape


def test_empty_rows_of_a_ragged_feature_are_bounded():
    """A row id is one number, but as many rows as it says would have to exist."""
    features = {"r": tfw.RaggedFeature(tfw.int64, "v", [tfw.RaggedFeature.ValueRowIds("p")])}
    for row in (2**24 + 2, 2**62, 2**63 - 1):
        with pytest.raises(tfw.ParseError, match="row ids are too large") as caught:
            tfw.parse_example([one(v=[1], p=[row])], features)
        assert "partition" == caught.value.reason


@pytest.mark.parametrize(
    ("partition", "rows"),
    [
        ("RowSplits", [0, 2**63 - 1, 3]),
        ("RowLengths", [2**63 - 1, 2**63 - 1, 5]),
        ("RowStarts", [0, -(2**63)]),
        ("RowLimits", [-(2**63), 3]),
        ("ValueRowIds", [0, -(2**63), 5]),
    ],
)
def test_partitions_at_the_ends_of_int64_do_not_overflow(partition, rows):
    kind = getattr(tfw.RaggedFeature, partition)
    features = {"r": tfw.RaggedFeature(tfw.int64, "v", [kind("p")])}
    with pytest.raises(tfw.ParseError, match=f"{partition}|row ids"):
        tfw.parse_example([one(v=[1, 2, 3], p=rows)], features)


# ---- Padding out of proportion ------------------------------------------------------------------

SHORT, LONG = [1], np.zeros(600_000, np.int64)  # 300 of the one and one of the other: 1.3 GiB
PADDED = {"a": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True)}
STRINGS = {"a": tfw.FixedLenSequenceFeature([], tfw.string, allow_missing=True, default_value="x")}
STEPS = {"a": tfw.FixedLenSequenceFeature([], tfw.int64)}


def padded_examples():
    rows = [tfw.encode_example({"a": LONG}), *[tfw.encode_example({"a": SHORT})] * 300]
    return tfw.parse_example(rows, PADDED)


def padded_strings():
    rows = [tfw.encode_example({"a": [b""] * len(LONG)}), *[tfw.encode_example({"a": b"y"})] * 300]
    return tfw.Parser(STRINGS).parse(rows)


def padded_steps():
    rows = [[[0]] * len(LONG), *[[[1]]] * 300]
    messages = [tfw.encode_sequence_example({}, {"a": steps}) for steps in rows]
    return tfw.SequenceParser({}, STEPS).parse(messages)


@pytest.mark.parametrize("parse", [padded_examples, padded_strings, padded_steps])
def test_padding_out_of_proportion_is_refused(parse):
    with pytest.raises(ValueError, match=r"Key: a\.  A batch would hold 1[0-9]* bytes of padding"):
        parse()


def test_padding_out_of_proportion_is_refused_in_files(tmp_path):
    rows = [tfw.encode_example({"a": a}) for a in (SHORT, LONG)]
    tfw.write_records(tmp_path / "a", [rows[1], *[rows[0]] * 300])
    for num_threads in (1, 2):
        batches = tfw.Parser(PADDED).parse_file(tmp_path / "a", 301, num_threads=num_threads)
        with pytest.raises(ValueError, match="bytes of padding"):
            next(batches)
    with pytest.raises(ValueError, match="bytes of padding"):
        next(iter(tfw.TFRecordDataset(tmp_path / "a").batch(301).parse_example(PADDED)))


@pytest.mark.parametrize("most", [1 << 30, 1000])
def test_padding_in_proportion_is_not_refused(monkeypatch, most):
    """Up to a limit, whatever the values take, and beyond it up to 16 times what they take."""
    monkeypatch.setattr(padding, "_MAX_PADDING", most)
    rows = [tfw.encode_example({"a": np.arange(200)}), *[tfw.encode_example({"a": []})] * 16]
    assert (17, 200) == tfw.parse_example(rows, PADDED)["a"].shape
    if most == 1000:
        with pytest.raises(ValueError, match="27200 bytes of padding for 1600"):
            tfw.parse_example([*rows, rows[-1]], PADDED)
