"""tfwire's messages and encoders beside TensorFlow's, in one process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

import tfwire as tfw

FLOATS = st.floats(width=32)
INT64S = st.integers(-(2**63), 2**63 - 1)
KINDS = [st.lists(values, min_size=1) for values in (INT64S, FLOATS, st.binary())]
VALUES = st.one_of(*KINDS)
STEPS = st.one_of(*(st.lists(kind) for kind in KINDS))  # a feature list is of one kind
# The size leads, so that no key begins with another: see prefix-keys in docs/differences.md.
KEYS = st.text(max_size=8).map(lambda key: f"{len(key.encode()):02d}{key}")
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=6)
RAGGED = tf.io.RaggedFeature
ROWS = [[["a", "b"], [], ["c"]], [["d"]], []]
PARTITIONS = [
    *(RAGGED.RowLengths("p"), RAGGED.RowSplits("p"), RAGGED.RowStarts("p")),
    *(RAGGED.RowLimits("p"), RAGGED.ValueRowIds("p")),
]


def tensorflow_feature(values):
    if isinstance(values[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def tensorflow_example(mapping):
    feature = {key: tensorflow_feature(values) for key, values in mapping.items()}
    return tf.train.Example(features=tf.train.Features(feature=feature))


@settings(max_examples=200, deadline=None)
@given(mapping=MAPPINGS)
def test_encode_example_gives_tensorflows_deterministic_bytes(mapping):
    expected = tensorflow_example(mapping).SerializeToString(deterministic=True)
    assert expected == tfw.encode_example(mapping)


@settings(max_examples=200, deadline=None)
@given(mapping=MAPPINGS)
def test_decode_example_gives_what_tensorflow_wrote(mapping):
    """TensorFlow writes map entries in hash order; floats are compared by their bits."""
    decoded = tfw.decode_example(tensorflow_example(mapping).SerializeToString())
    assert sorted(mapping) == sorted(decoded)
    for key, values in mapping.items():
        found = decoded[key]
        if isinstance(values[0], float):
            assert np.array(values, np.float32).tobytes() == found.tobytes()
        else:
            assert values == list(found)


@settings(max_examples=100, deadline=None)
@given(context=MAPPINGS, lists=st.dictionaries(KEYS, STEPS, max_size=3))
def test_encode_sequence_example_gives_tensorflows_deterministic_bytes(context, lists):
    steps = {
        key: tf.train.FeatureList(feature=[tensorflow_feature(values) for values in rows])
        for key, rows in lists.items()
    }
    message = tf.train.SequenceExample(
        context=tensorflow_example(context).features,
        feature_lists=tf.train.FeatureLists(feature_list=steps),
    )
    expected = message.SerializeToString(deterministic=True)
    assert expected == tfw.encode_sequence_example(context, lists)


def test_messages_cross_over_by_their_bytes():
    theirs = tensorflow_example({"a": [1, 2], "b": [b"x"], "c": [0.5]})
    ours = tfw.train.Example.FromString(theirs.SerializeToString())
    assert theirs.SerializeToString(deterministic=True) == ours.SerializeToString(
        deterministic=True
    )
    assert sorted(str(theirs).split("\n")) == sorted(str(ours).split("\n"))
    assert theirs == tf.train.Example.FromString(ours.SerializeToString())


def test_tensorflows_messages_are_written_as_they_are(tmp_path):
    message = tensorflow_example({"a": [1]})
    tfw.write_records(tmp_path / "file", [message])
    assert [message.SerializeToString()] == list(tfw.read_records(tmp_path / "file"))


USE = """
from tfwire import train
ours = train.Example(features=train.Features(feature={
    str(i): train.Feature(float_list=train.FloatList(value=[i / 7])) for i in range(30)}))
theirs = tf.train.Example(features=tf.train.Features(feature={
    str(i): tf.train.Feature(float_list=tf.train.FloatList(value=[i / 7])) for i in range(30)}))
wire = theirs.SerializeToString(deterministic=True)
assert wire == ours.SerializeToString(deterministic=True)
assert theirs == tf.train.Example.FromString(ours.SerializeToString())
assert sorted(str(theirs).splitlines()) == sorted(str(ours).splitlines())
one = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
assert str(one) == str(train.Feature(int64_list=one.int64_list))
assert ours == train.Example(features=theirs.features)
assert {"x": [1]} == train.to_dict(train.Example(features=train.Features(feature={"x": one})))
assert train.FeatureList(feature=[one]).feature[0].int64_list.value == [1]
assert train.to_dict(ours) == train.to_dict(theirs)
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import tensorflow as tf, tfwire, tfwire.train",
        "import tfwire, tfwire.train; tfwire.train.Example(); import tensorflow as tf",
    ],
    ids=["tensorflow first", "tfwire first"],
)
def test_tensorflow_may_be_imported_before_or_after(imports):
    """Both build the same protobuf messages; the pools must not collide in either order."""
    subprocess.run([sys.executable, "-c", f"{imports}\n{USE}"], check=True, timeout=120)


DTYPES = ["float32", "float64", "int32", "uint8", "int64", "bool", "complex64", "complex128",
          "float16", "uint16", "int8", "int16", "uint32", "uint64"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (2, 1, 2)])
def test_tensors_have_the_same_bytes_and_come_back(dtype, shape):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    expected = tf.io.serialize_tensor(tf.constant(values)).numpy()
    assert expected == tfw.serialize_tensor(values)
    found = tfw.parse_tensor(expected, dtype)
    assert (values.dtype, values.shape) == (found.dtype, found.shape)
    assert np.array_equal(values, found)


# ---- Columns of lists in lists, by a specification ---------------------------------------------


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda each: type(each).__name__)
def test_ragged_features(partition):
    spec = {"x": RAGGED(tf.string, "values", [partition])}
    records = tfw.encode_columns({"x": ROWS}, features=spec)
    found = tf.io.parse_example(records, spec)["x"]
    assert found.to_list() == [[[s.encode() for s in row] for row in rows] for rows in ROWS]


def test_partitions_in_partitions():
    deep = [[[[1.5], []], [[2.5, 3]]], [], [[], [[4]]]]
    partitions = [RAGGED.RowLengths("a"), RAGGED.RowSplits("b")]
    spec = {"x": RAGGED(tf.float32, None, partitions)}
    records = tfw.encode_columns({"x": deep}, features=spec)
    assert tf.io.parse_example(records, spec)["x"].to_list() == deep
    uniform = np.arange(12).reshape(2, 3, 2)
    spec = {"x": RAGGED(tf.int64, None, [RAGGED.RowLengths("n"), RAGGED.UniformRowLength(2)])}
    records = tfw.encode_columns({"x": uniform[:, None]}, features=spec)
    assert tf.io.parse_example(records, spec)["x"].to_list() == uniform[:, None].tolist()


def test_feature_lists():
    context = {"id": tf.io.FixedLenFeature([], tf.int64)}
    lists = {
        "words": tf.io.RaggedFeature(tf.string),
        "box": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
    }
    columns = {
        "id": [1, 2],
        "words": [[["a"], None, ["b", "c"]], []],
        "box": [[[1, 2], [3, 4]], None],
    }
    records = tfw.encode_columns(columns, features=(context, lists))
    found = tf.io.parse_sequence_example(records, context, lists)
    assert found[0]["id"].numpy().tolist() == [1, 2]
    assert found[1]["words"].to_list() == [[[b"a"], [], [b"b", b"c"]], []]
    assert found[1]["box"].numpy()[0].tolist() == columns["box"][0]
    assert found[2]["box"].numpy().tolist() == [2, 0]
