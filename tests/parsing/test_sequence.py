"""SequenceExamples to columns: context, feature lists, lengths.

What each specification makes of each message is in the case table (test_cases.py); here is what
the table cannot say.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from cases.results import plain_dict

pytestmark = pytest.mark.short_strings

CONTEXT = {
    "length": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string, default_value="-"),
    "tags": tfw.VarLenFeature(tfw.string),
}

LISTS = {
    "words": tfw.FixedLenSequenceFeature([], tfw.int64),
    "frames": tfw.FixedLenSequenceFeature([2], tfw.float32, allow_missing=True),
    "labels": tfw.VarLenFeature(tfw.string),
    "ragged": tfw.RaggedFeature(tfw.int64),
}

MESSAGES = [
    (
        {"length": 3, "name": "first", "tags": ["x"]},
        {
            "words": [1, 2, 3],
            "frames": [[0.5, 1.0]],
            "labels": [["a", "b"], [], ["c"]],
            "ragged": [[1], [2, 3]],
        },
    ),
    ({"length": 0}, {"words": []}),
    (
        {"length": 1, "tags": ["y", "z"]},
        {
            "words": [4],
            "frames": [[1.0, 2.0], [3.0, 4.0]],
            "labels": [["d"]],
            "ragged": [[], [4]],
        },
    ),
]

RECORDS = [tfw.encode_sequence_example(*message) for message in MESSAGES]


def test_a_batch_gives_context_lists_and_lengths():
    context, lists, lengths = tfw.parse_sequence_example(RECORDS, CONTEXT, LISTS)
    assert [3, 0, 1] == context["length"].tolist()
    assert [b"first", b"-", b"-"] == context["name"].tolist()
    assert [[b"x", b""], [b"", b""], [b"y", b"z"]] == context["tags"].to_dense().tolist()
    assert [[1, 2, 3], [0, 0, 0], [4, 0, 0]] == lists["words"].tolist()
    nothing = [0.0, 0.0]
    frames = [[[0.5, 1.0], nothing], [nothing, nothing], [[1.0, 2.0], [3.0, 4.0]]]
    assert frames == lists["frames"].tolist()
    assert [[[1], [2, 3]], [], [[], [4]]] == lists["ragged"].to_list()
    assert (3, 3, 2) == lists["labels"].shape
    where = [[0, 0, 0], [0, 0, 1], [0, 2, 0], [2, 0, 0]]
    assert where == lists["labels"].indices.tolist()
    assert [b"a", b"b", b"c", b"d"] == lists["labels"].values.tolist()
    assert {"words": [3, 0, 1], "frames": [1, 0, 2]} == {
        key: value.tolist() for key, value in lengths.items()
    }
    assert {np.dtype("int64")} == {value.dtype for value in lengths.values()}


def test_a_single_message_gives_context_and_lists():
    context, lists = tfw.parse_single_sequence_example(RECORDS[0], CONTEXT, LISTS)
    assert (3, np.int64) == (context["length"], type(context["length"]))
    assert b"first" == context["name"]
    assert [1, 2, 3] == lists["words"].tolist()
    assert [[0.5, 1.0]] == lists["frames"].tolist()
    assert [[b"a", b"b"], [b"", b""], [b"c", b""]] == lists["labels"].to_dense().tolist()
    assert [[1], [2, 3]] == lists["ragged"].to_list()


def test_a_scalar_given_to_the_batch_function_is_a_single_message():
    parser = tfw.SequenceParser(CONTEXT, LISTS)
    expected = [plain_dict(part) for part in parser.parse_single(RECORDS[2])]
    assert expected == [plain_dict(part) for part in parser.parse(RECORDS[2])]


def test_one_part_is_enough():
    context, lists, lengths = tfw.parse_sequence_example(RECORDS, CONTEXT)
    assert ([3, 0, 1], {}, {}) == (context["length"].tolist(), lists, lengths)
    context, lists, lengths = tfw.parse_sequence_example(RECORDS, None, LISTS)
    assert ({}, 3) == (context, lengths["words"][0])
    context, lists = tfw.parse_single_sequence_example(RECORDS[0], sequence_features=LISTS)
    assert ({}, [1, 2, 3]) == (context, lists["words"].tolist())


def test_an_empty_batch_has_columns_without_records():
    context, lists, lengths = tfw.parse_sequence_example([], CONTEXT, LISTS)
    assert [(0,), (0,), (0, 0)] == [column.shape for column in context.values()]
    shapes = [(0, 0), (0, 0, 2), (0, 0, 0), (0, None, None)]
    assert shapes == [column.shape for column in lists.values()]
    assert [(0,), (0,)] == [column.shape for column in lengths.values()]


def test_strings_as_columns_are_the_same_strings():
    lists = {"s": tfw.FixedLenSequenceFeature([], tfw.string), "r": tfw.RaggedFeature(tfw.string)}
    steps = [["a", "b", ""], ["c"], []]
    records = [tfw.encode_sequence_example({}, {"s": s, "r": [s, s]}) for s in steps]
    objects = tfw.SequenceParser(None, lists).parse(records)[1]
    columns = tfw.SequenceParser(None, lists, bytes_as="column").parse(records)[1]
    assert [[b"a", b"b", b""], [b"c", b"", b""], [b""] * 3] == objects["s"].tolist()
    assert objects["s"].tolist() == columns["s"].to_list()
    assert objects["r"].to_list() == columns["r"].to_list()
    assert [[b"c"], [b"c"]] == objects["r"].to_list()[1]


def test_partitions_of_feature_lists_divide_every_step():
    lists = {
        "r": tfw.RaggedFeature(
            tfw.int64,
            "v",
            [tfw.RaggedFeature.RowLengths("n"), tfw.RaggedFeature.UniformRowLength(2)],
        )
    }
    steps = {"v": [[1, 2, 3, 4], [], [5, 6]], "n": [[1, 1], [0], [1]]}
    record = tfw.encode_sequence_example({}, steps)
    expected = [[[[1, 2]], [[3, 4]]], [[]], [[[5, 6]]]]
    assert expected == tfw.parse_single_sequence_example(record, None, lists)[1]["r"].to_list()
    batch = tfw.parse_sequence_example([record, b"", record], None, lists)[1]["r"]
    assert [expected, [], expected] == batch.to_list()
    assert (3, None, None, None, 2) == batch.shape


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({"v": [[1], [2]], "n": [[1]]}, "different numbers of steps"),
        ({"v": [[1], [2]], "n": [[1], [2]]}, "RowLengths beyond the values"),
        ({"v": [[1], [2, 3]], "n": [[1], [1]]}, "do not cover the values"),
    ],
)
def test_a_wrong_partition_of_feature_lists_names_the_record(steps, message):
    lists = {"r": tfw.RaggedFeature(tfw.int64, "v", [tfw.RaggedFeature.RowLengths("n")])}
    good = tfw.encode_sequence_example({}, {"v": [[1], [2]], "n": [[1], [1]]})
    bad = tfw.encode_sequence_example({}, steps)
    with pytest.raises(tfw.ParseError, match=f"record 2: Key: r. .*{message}") as caught:
        tfw.parse_sequence_example([good, good, bad, good], None, lists)
    assert (2, "r", "partition") == (
        caught.value.record_index,
        caught.value.feature,
        caught.value.reason,
    )


@pytest.mark.parametrize(
    ("context", "lists", "message"),
    [
        (None, None, "at least one should have values"),
        ({}, {}, "at least one should have values"),
        ({}, {"w": tfw.FixedLenFeature([], tfw.int64)}, "Unsupported FixedLenFeature .*'w'"),
        ({}, {"w": tfw.SparseFeature("i", "v", tfw.int64, 3)}, "Unsupported SparseFeature"),
        (
            {"c": tfw.FixedLenSequenceFeature([], tfw.int64, True)},
            {},
            "Unsupported FixedLenSequenceFeature .*'c'",
        ),
        (
            {},
            {"w": tfw.FixedLenSequenceFeature([], tfw.int64, default_value=0)},
            r"dense_defaults\[w\] must be None",
        ),
        (
            {},
            {"w": tfw.FixedLenSequenceFeature([None], tfw.int64)},
            "need to be known",
        ),
    ],
)
def test_a_wrong_specification_is_refused(context, lists, message):
    with pytest.raises(ValueError, match=message):
        tfw.parse_sequence_example([], context, lists)
    with pytest.raises(ValueError, match=message):
        tfw.SequenceParser(context, lists)


def test_given_arrays_are_those_of_the_context():
    out = {"length": np.zeros(3, np.int64)}
    tfw.SequenceParser(CONTEXT, LISTS).parse(RECORDS, out=out)
    assert [3, 0, 1] == out["length"].tolist()
    with pytest.raises(ValueError, match="out: 'words'"):
        tfw.SequenceParser(CONTEXT, LISTS).parse(RECORDS, out={"words": np.zeros((3, 3), int)})


def test_parsers_pickle():
    parser = tfw.SequenceParser(CONTEXT, LISTS, bytes_as="column")
    copy = pickle.loads(pickle.dumps(parser))
    context, lists, _ = copy.parse(RECORDS)
    assert isinstance(context["name"], tfw.BytesColumn)
    assert [[1, 2, 3], [0, 0, 0], [4, 0, 0]] == lists["words"].tolist()


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "words": st.lists(st.integers(-(2**63), 2**63 - 1)),
                "labels": st.lists(st.lists(st.binary(max_size=3), min_size=1)),
                "ragged": st.lists(st.lists(st.integers(0, 300), min_size=1)),
            }
        ),
        min_size=1,
    )
)
def test_what_was_encoded_is_parsed(messages):
    records = [tfw.encode_sequence_example({"length": 1}, lists) for lists in messages]
    _, lists, lengths = tfw.parse_sequence_example(records, CONTEXT, LISTS)
    assert [len(m["words"]) for m in messages] == lengths["words"].tolist()
    words = [row[:n].tolist() for row, n in zip(lists["words"], lengths["words"], strict=True)]
    assert [m["words"] for m in messages] == words
    assert [m["ragged"] for m in messages] == lists["ragged"].to_list()
    assert [v for m in messages for step in m["labels"] for v in step] == (
        lists["labels"].values.tolist()
    )
    for record, message in zip(records, messages, strict=True):
        single = tfw.parse_single_sequence_example(record, CONTEXT, LISTS)[1]
        assert message["words"] == single["words"].tolist()
        assert message["ragged"] == single["ragged"].to_list()
