"""Examples to columns: shapes, types, defaults, input in every form.

What each specification makes of each message is in the case table (test_cases.py); here is what
the table cannot say.
"""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from cases.results import plain_dict
from helpers.threads import at_once

pytestmark = pytest.mark.short_strings

FEATURES = {
    "i": tfw.FixedLenFeature([2], tfw.int64),
    "f": tfw.FixedLenFeature([], tfw.float32, default_value=0.5),
    "s": tfw.FixedLenFeature([], tfw.string),
    "v": tfw.VarLenFeature(tfw.string),
    "p": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True),
    "r": tfw.RaggedFeature(tfw.float32),
}

ROWS = [
    {"i": [1, 2], "f": 1.0, "s": b"a\0", "v": ["x", "y"], "p": [7], "r": [0.5]},
    {"i": [3, 4], "s": b""},
    {"i": [5, 6], "f": 3.0, "s": b"\xff", "v": ["z"], "p": [8, 9], "r": [1.5, 2.5]},
]

RECORDS = [tfw.encode_example(row) for row in ROWS]


def fixed(shape, dtype=tfw.int64, **fields):
    return {"a": tfw.FixedLenFeature(shape, dtype, **fields)}


def one(**features):
    return tfw.encode_example(features)


def check_batch(batch):
    assert list(FEATURES) == list(batch)
    assert [[1, 2], [3, 4], [5, 6]] == batch["i"].tolist()
    assert [1.0, 0.5, 3.0] == batch["f"].tolist()
    assert [b"a\0", b"", b"\xff"] == batch["s"].tolist()
    assert [[b"x", b"y"], [b"", b""], [b"z", b""]] == batch["v"].to_dense().tolist()
    assert [[7, 0], [0, 0], [8, 9]] == batch["p"].tolist()
    assert [[0.5], [], [1.5, 2.5]] == batch["r"].to_list()
    dtypes = [np.int64, np.float32, object, object, np.int64, np.float32]
    assert dtypes == [column.dtype for column in batch.values()]


# ---- Input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        iter,
        lambda records: np.array(records, object),
        lambda records: [bytearray(record) for record in records],
        lambda records: [memoryview(record) for record in records],
        lambda records: [np.array(record, object) for record in records],
        lambda records: [np.frombuffer(record, np.uint8) for record in records],
        lambda records: SimpleNamespace(numpy=lambda: np.array(records, object)),
        lambda records: tfw.BytesColumn(
            b"".join(records), np.cumsum([0, *(len(record) for record in records)])
        ),
    ],
)
def test_a_batch_may_be_any_vector_of_bytes(wrap):
    check_batch(tfw.parse_example(wrap(RECORDS), FEATURES))


@pytest.mark.parametrize(
    "wrap",
    [
        bytes,
        bytearray,
        memoryview,
        np.bytes_,
        lambda record: np.array(record, object),
        lambda record: np.frombuffer(record, np.uint8),
        lambda record: SimpleNamespace(numpy=lambda: record),
        lambda record: SimpleNamespace(numpy=lambda: np.array(record, object)),
    ],
)
@pytest.mark.parametrize("parse", [tfw.parse_example, tfw.parse_single_example])
def test_a_single_message_may_be_any_scalar_of_bytes(parse, wrap):
    """parse_example of a scalar gives results without a batch dimension, as in TensorFlow."""
    found = parse(wrap(RECORDS[0]), FEATURES)
    assert [1, 2] == found["i"].tolist()
    assert (1.0, np.float32) == (found["f"], type(found["f"]))
    assert (b"a\0", bytes) == (found["s"], type(found["s"]))
    assert (2,) == found["v"].shape
    assert [7] == found["p"].tolist()
    assert [0.5] == found["r"].tolist()


def test_scalars_are_numpy_scalars_and_arrays_of_strings_objects():
    found = tfw.parse_single_example(
        one(a=3, b=["x", "y"]),
        fixed([]) | {"b": tfw.FixedLenFeature([2, 1], tfw.string)},
    )
    assert (3, np.int64) == (found["a"], type(found["a"]))
    assert [[b"x"], [b"y"]] == found["b"].tolist()
    assert np.dtype(object) == found["b"].dtype


@pytest.mark.parametrize(
    ("serialized", "shape"),
    [
        ([[b""]], r"\[1, 1\]"),
        (np.array([[b"", b""]], object), r"\[1, 2\]"),
        ([np.array([b""], object)], r"\[1, 1\]"),
        (tfw.BytesColumn(b"", [0, 0, 0], (1, 2)), r"\[1, 2\]"),
    ],
)
def test_a_matrix_is_refused(serialized, shape):
    with pytest.raises(ValueError, match=rf"scalar or vector, got shape: {shape}"):
        tfw.parse_example(serialized, FEATURES)


@pytest.mark.parametrize("serialized", [[b""], (b"",), np.array([b""], object)])
def test_a_batch_is_no_single_message(serialized):
    with pytest.raises(ValueError, match="must be a scalar"):
        tfw.parse_single_example(serialized, FEATURES)


@pytest.mark.parametrize("serialized", ["text", 5, None, ["text"], [5], np.zeros(3)])
def test_what_is_no_bytes_is_refused(serialized):
    with pytest.raises(TypeError, match=r"bytes-like|serialized messages"):
        tfw.parse_example(serialized, FEATURES)


def test_an_empty_batch_has_columns_without_records():
    batch = tfw.parse_example([], FEATURES)
    shapes = [(0, 2), (0,), (0,), (0, 0), (0, 0), (0, None)]
    assert shapes == [column.shape for column in batch.values()]
    assert [np.int64, np.float32, object, object] == [batch[k].dtype for k in "ifsv"]


# ---- Results -----------------------------------------------------------------------------------


def column_features():
    return FEATURES | {"q": tfw.FixedLenFeature([2], tfw.string, default_value=["", "q"])}


def test_strings_as_columns_are_the_same_strings():
    objects = tfw.Parser(column_features()).parse(RECORDS)
    columns = tfw.Parser(column_features(), bytes_as="column").parse(RECORDS)
    for key in ("s", "q"):
        assert isinstance(columns[key], tfw.BytesColumn)
        assert objects[key].shape == columns[key].shape
        assert objects[key].tolist() == columns[key].to_list()
    assert isinstance(columns["v"].values, tfw.BytesColumn)
    assert objects["v"].to_dense().tolist() == columns["v"].to_dense().tolist()


def test_single_strings_as_columns():
    found = tfw.Parser(column_features(), bytes_as="column").parse_single(RECORDS[0])
    assert b"a\0" == found["s"]
    assert [b"", b"q"] == found["q"].to_list()
    assert [b"x", b"y"] == found["v"].values.to_list()


def test_results_are_writable_and_their_own():
    parser = tfw.Parser(FEATURES)
    first = parser.parse(RECORDS)
    for column in (first["i"], first["p"], first["v"].values, first["r"].values):
        assert column.flags.writeable
        assert column.flags.aligned
    first["i"][:] = -1
    first["r"].values[:] = -1
    second = parser.parse(RECORDS)
    del parser
    check_batch(second)
    assert (first["i"] == -1).all()


def test_given_arrays_are_filled():
    out = {"i": np.zeros((3, 2), np.int64), "f": np.zeros(5, np.float32)}
    batch = tfw.Parser(FEATURES).parse(RECORDS, out=out)
    check_batch(batch)
    assert batch["i"] is out["i"]
    assert np.shares_memory(batch["f"], out["f"])
    assert [1.0, 0.5, 3.0, 0, 0] == out["f"].tolist()


@pytest.mark.parametrize(
    ("key", "array", "error"),
    [
        ("i", np.zeros((3, 2), np.int32), TypeError),
        ("i", [[0, 0]] * 3, TypeError),
        ("i", np.zeros((3, 2), ">i8"), TypeError),
        ("i", np.zeros((2, 2), np.int64), ValueError),
        ("i", np.zeros((3, 3), np.int64), ValueError),
        ("i", np.zeros(6, np.int64), ValueError),
        ("i", np.zeros((3, 4), np.int64)[:, ::2], ValueError),
        ("i", np.broadcast_to(np.int64(0), (3, 2)), ValueError),
        ("s", np.zeros(3, object), ValueError),
        ("p", np.zeros((3, 2), np.int64), ValueError),
        ("no such key", np.zeros(3, np.int64), ValueError),
    ],
)
def test_given_arrays_that_do_not_fit_are_refused(key, array, error):
    with pytest.raises(error, match=f"out: '{key}'"):
        tfw.Parser(FEATURES).parse(RECORDS, out={key: array})


@given(
    st.lists(
        st.fixed_dictionaries(
            {"i": st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2)},
            optional={
                "v": st.lists(st.binary(max_size=5)),
                "p": st.lists(st.integers(-5, 300)),
                "r": st.lists(st.floats(width=32, allow_nan=False)),
            },
        )
    )
)
def test_what_was_encoded_is_parsed(rows):
    records = tfw.encode_examples([row | {"s": b"!"} for row in rows])
    batch = tfw.parse_example(records, FEATURES)
    assert [row["i"] for row in rows] == batch["i"].tolist()
    assert [row.get("r", []) for row in rows] == batch["r"].to_list()
    for key, value in (("v", batch["v"]), ("p", None)):
        width = max((len(row.get(key, [])) for row in rows), default=0)
        fill = b"" if key == "v" else 0
        padded = [row.get(key, []) + [fill] * (width - len(row.get(key, []))) for row in rows]
        dense = batch[key] if value is None else value.to_dense()
        assert padded == dense.tolist()
    singles = [tfw.parse_single_example(record, FEATURES) for record in records]
    assert [row.get("p", []) for row in rows] == [single["p"].tolist() for single in singles]


# ---- One at a time ------------------------------------------------------------------------------

FIXED = {
    "s": tfw.FixedLenFeature([], tfw.string, default_value="none"),
    "i": tfw.FixedLenFeature([], tfw.int64),
    "z": tfw.FixedLenFeature([0], tfw.string),
    "m": tfw.FixedLenFeature([2, 1], tfw.float32, default_value=[1, 2]),
    "t": tfw.FixedLenFeature([2], tfw.string, default_value=["", "x"]),
    "f": tfw.FixedLenFeature([], tfw.float32),
    "v": tfw.FixedLenFeature([2], tfw.int64, default_value=[0, 0]),
    "u": tfw.FixedLenFeature([], tfw.string),
}


@given(
    st.fixed_dictionaries(
        {
            "i": st.integers(-(2**63), 2**63 - 1),
            "f": st.floats(width=32, allow_nan=False),
            "u": st.binary(max_size=5) | st.sampled_from([b"l" * 4096, b"l" * 5000]),
        },
        optional={
            "s": st.binary(max_size=5) | st.sampled_from([b"l" * 4096, b"l" * 5000]),
            "t": st.lists(st.binary(max_size=5), min_size=2, max_size=2),
            "m": st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=2),
            "v": st.lists(st.integers(0, 300), min_size=2, max_size=2),
        },
    ),
    st.sampled_from([bytes, bytearray, memoryview]),
)
def test_fixed_features_of_one_message_are_those_of_a_batch_of_one(row, wrap):
    """They take a way of their own, for least latency."""
    record = wrap(tfw.encode_example(row | {"z": np.empty(0, object)}))
    record = wrap(bytes(record) + bytes.fromhex("0a090a070a017a12020a00"))  # "z": an empty list
    single, batch = tfw.parse_single_example(record, FIXED), tfw.parse_example([record], FIXED)
    assert list(FIXED) == list(single)
    for key, column in batch.items():
        assert plain_dict({key: column[0]}) == plain_dict({key: single[key]})
    assert row["u"] == single["u"]
    column = tfw.Parser(FIXED, bytes_as="column").parse_single(record)
    assert single["s"] == column["s"]
    assert single["t"].tolist() == column["t"].to_list()


def test_arrays_of_one_message_are_not_those_of_the_next():
    record = one(i=1, f=1.0, u="", m=[3.0, 4.0], z=np.array([], "S1"), v=[5, 6])
    parser = tfw.Parser({key: FIXED[key] for key in "imvt"})
    first, second = parser.parse_single(record), parser.parse_single(one(i=2))
    assert ([5, 6], [[3], [4]]) == (first["v"].tolist(), first["m"].tolist())
    assert ([0, 0], [[1], [2]]) == (second["v"].tolist(), second["m"].tolist())
    assert first["v"].flags.writeable


# ---- Parsers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bytes_as", ["object", "column"])
def test_parsers_pickle(bytes_as):
    parser = tfw.Parser(FEATURES, bytes_as=bytes_as, empty_is_missing=True)
    copy = pickle.loads(pickle.dumps(parser))
    same = {key: np.asarray(value) for key, value in copy.parse(RECORDS).items() if key in "is"}
    assert ROWS[0]["i"] == same["i"][0].tolist()
    assert [b"a\0", b"", b"\xff"] == same["s"].tolist()
    assert bytes_as == ("object" if isinstance(copy.parse(RECORDS)["s"], np.ndarray) else "column")
    empty = one(i=[1, 2], s="", f=np.empty(0, np.float32))
    assert 0.5 == copy.parse_single(empty)["f"]


def test_a_parser_serves_threads_at_once():
    parser = tfw.Parser(FEATURES)
    expected = plain_dict(parser.parse(RECORDS * 50))
    single = plain_dict(parser.parse_single(RECORDS[0]))

    def work(_):
        for _ in range(50):
            assert expected == plain_dict(parser.parse(RECORDS * 50))
            assert single == plain_dict(parser.parse_single(RECORDS[0]))

    at_once(work)
