"""Strings keep the zero bytes at their ends, wherever values enter and leave.

numpy's own string types drop them, and make every string of an array as long as the longest.
"""

import tracemalloc

import numpy as np
import pytest

import tfwire as tfw
import tfwire.compat as tf
from helpers.products import check_each

STRINGS = pytest.mark.parametrize(
    "strings",
    [
        [b"\0"],
        [b"\0\0\0\0"],
        [b"Ab\0", b"\0", b"\0c\0"],
        [b" \xff\0", b"\0\0", b",a\0b,\0", b"\n\0"],
    ],
)


def objects(strings):
    array = np.empty(len(strings), object)
    array[:] = strings
    return array


def example(strings):
    return tfw.encode_example({"x": strings})


def sparse_of(library, strings):
    places = [[i] for i in range(len(strings))]
    return library.SparseTensor(np.array(places), strings, np.array([len(strings)]))


def padded(strings):
    """Each string as a vector of one, beside a vector of two that is padded with zeros."""
    rows = [objects(strings[:1]), objects([*strings[:1], b"end\0"])]
    dataset = tfw.Dataset.from_generator(lambda: iter(rows)).padded_batch(2, padding_values=b"p\0")
    (batch,) = dataset
    assert batch[0, 1] == b"p\0"
    assert batch[1, 1] == b"end\0"
    return [batch[0, 0], *strings[1:]]


def with_default(strings):
    spec = tfw.FixedLenFeature([len(strings)], tfw.string, default_value=strings)
    return tfw.parse_single_example(b"", {"x": spec})["x"]


def with_padding(strings):
    spec = tfw.FixedLenSequenceFeature([], tfw.string, True, default_value=strings[0])
    parsed = tfw.parse_example([b"", example(strings)], {"x": spec})["x"]
    assert [strings[0]] * len(strings) == list(parsed[0])
    return parsed[1]


LIBRARY = {
    "serialize_tensor": lambda s: tfw.parse_tensor(tfw.serialize_tensor(s), "string"),
    "serialize_tensor nested": lambda s: tfw.parse_tensor(tfw.serialize_tensor([s]), "string")[0],
    "serialize_tensor array": lambda s: tfw.parse_tensor(
        tfw.serialize_tensor(objects(s)), "string"
    ),
    "encode_example": lambda s: tfw.decode_example(example(s))["x"],
    "encode_example array": lambda s: tfw.decode_example(example(objects(s)))["x"],
    "encode_columns": lambda s: [
        tfw.decode_example(message)["x"][0] for message in tfw.encode_columns({"x": s})
    ],
    "encode_columns ragged": lambda s: tfw.decode_example(
        tfw.encode_columns({"x": [s, s[:1]]})[0]
    )["x"],
    "encode_examples": lambda s: tfw.decode_example(tfw.encode_examples([{"x": s}])[0])["x"],
    "encode_sequence_example": lambda s: tfw.decode_sequence_example(
        tfw.encode_sequence_example({}, {"x": [s]})
    )[1]["x"][0],
    "bytes_feature": lambda s: tfw.bytes_feature(s).bytes_list.value,
    "BytesList of arrays": lambda s: tfw.train.BytesList(value=objects(s)).value,
    "from_tensor_slices": lambda s: tfw.Dataset.from_tensor_slices(s),
    "from_tensor_slices nested": lambda s: next(iter(tfw.Dataset.from_tensor_slices([s]))),
    "batch": lambda s: next(iter(tfw.Dataset.from_tensor_slices(s).batch(9))),
    "batch of lists": lambda s: next(iter(tfw.Dataset.from_generator(lambda: [s, s]).batch(2)))[1],
    "padded_batch": padded,
    "batch of sparse": lambda s: next(
        iter(tfw.Dataset.from_generator(lambda: [sparse_of(tfw, s)]).batch(1))
    ).values,
    "to_dense": lambda s: sparse_of(tfw, s).to_dense(),
    "to_dense default": lambda s: tfw.SparseTensor(
        np.empty((0, 1), np.int64), objects([]), np.array([1])
    ).to_dense(s[0]).tolist() + s[1:],
    "default_value": with_default,
    "padding": with_padding,
    "RaggedTensor": lambda s: tfw.RaggedTensor(s, [0, len(s)]).to_list()[0],
}  # fmt: skip


@STRINGS
def test_values_come_back_whole(strings):
    def check(way):
        assert strings == list(LIBRARY[way](strings))

    check_each(check, LIBRARY)


def mapped(function):
    """A function applied to the elements of a dataset, each a vector of strings."""
    return lambda s: next(
        iter(tf.data.Dataset.from_tensor_slices([s]).map(function).map(lambda x: x))
    )


def read_back(strings):
    tf.io.write_file("file", strings[0])
    return [tf.io.read_file("file").numpy(), *strings[1:]]


def parsed_back(strings):
    spec = {"x": tf.io.FixedLenFeature([len(strings)], tf.string)}
    serialized = tf.constant([example(strings), b"\n\0"])[0]
    return tf.io.parse_single_example(serialized, spec)["x"]


def split_by_commas(strings):
    kept = [string.replace(b",", b"") for string in strings]
    assert kept == list(tf.strings.split(b",".join(kept), ",").numpy())
    assert [kept] == tf.strings.split([b",".join(kept)], ",").to_list()
    return strings


def generated(strings):
    dataset = tf.data.Dataset.from_generator(lambda: [strings], output_types=tf.string)
    return next(iter(dataset))


COMPAT = {
    "constant": tf.constant,
    "constant dtype": lambda s: tf.constant(s, tf.string),
    "constant array": lambda s: tf.constant(objects(s)),
    "constant shape": lambda s: tf.constant(s, shape=[1, len(s)])[0],
    "constant filled": lambda s: [tf.constant(s[0], shape=[2])[1], *s[1:]],
    "constant scalars": lambda s: [tf.constant(item) for item in s],
    "convert_to_tensor": tf.convert_to_tensor,
    "convert_to_tensor of tensors": lambda s: tf.convert_to_tensor(list(map(tf.constant, s))),
    "identity": lambda s: tf.identity(tf.constant(s)),
    "cast": lambda s: tf.cast(s, tf.string),
    "stack": tf.stack,
    "stack of tensors": lambda s: tf.stack(list(map(tf.constant, s))),
    "stack of vectors": lambda s: tf.stack([s, s], axis=1)[:, 1],
    "unstack": tf.unstack,
    "concat": lambda s: tf.concat([[item] for item in s], 0),
    "split": lambda s: tf.concat(tf.split(s, len(s)), 0),
    "reshape": lambda s: tf.reshape(tf.reshape(s, [1, -1]), [-1]),
    "reshape scalar": lambda s: [tf.reshape([item], ()) for item in s],
    "squeeze": lambda s: tf.squeeze(tf.expand_dims(s, 0), 0),
    "squeeze scalar": lambda s: [tf.squeeze([item]) for item in s],
    "transpose": lambda s: tf.transpose([s])[:, 0],
    "reverse": lambda s: tf.reverse(tf.reverse(s, [0]), [0]),
    "tile": lambda s: tf.tile(s, [2])[len(s) :],
    "pad": lambda s: tf.pad(s, [[1, 1]], constant_values=s[0])[1:-1],
    "padding": lambda s: [tf.pad(s, [[1, 1]], constant_values=s[0])[0], *s[1:]],
    "fill": lambda s: [tf.fill([2], s[0])[1], *s[1:]],
    "broadcast_to": lambda s: tf.broadcast_to(s, [2, len(s)])[1],
    "gather": lambda s: tf.gather(s, list(range(len(s)))),
    "gather scalar": lambda s: [tf.gather(s, i) for i in range(len(s))],
    "slice": lambda s: tf.slice(s, [0], [-1]),
    "boolean_mask": lambda s: tf.boolean_mask(s, [True] * len(s)),
    "where": lambda s: tf.where([True] * len(s), s, "other"),
    "where scalar": lambda s: [tf.where(False, "other", item) for item in s],
    "one_hot": lambda s: [tf.one_hot(0, 1, s[0], "off", dtype=tf.string)[0], *s[1:]],
    "indexing": lambda s: [tf.constant(s)[i] for i in range(len(s))],
    "iteration": lambda s: iter(tf.constant(s)),
    "numpy": lambda s: np.asarray(tf.constant(s)),
    "addition": lambda s: [tf.constant(item[:-1]) + b"\0" for item in s],
    "tf.add": lambda s: tf.add([item[:-1] for item in s], b"\0"),
    "py_function": lambda s: tf.py_function(lambda x: x.numpy(), [s], tf.string),
    "py_function list": lambda s: tf.py_function(lambda: s, [], [tf.string] * len(s)),
    "numpy_function": lambda s: tf.numpy_function(lambda x: x, [s], tf.string),
    "numpy_function list": lambda s: tf.numpy_function(lambda: s, [], [tf.string] * len(s)),
    "serialize_tensor": lambda s: tf.io.parse_tensor(tf.io.serialize_tensor(s), tf.string),
    "parse": parsed_back,
    "decode_raw": lambda s: [tf.io.decode_raw(item, tf.uint8).numpy().tobytes() for item in s],
    "sparse": lambda s: sparse_of(tf, s).values,
    "to_dense": lambda s: tf.sparse.to_dense(sparse_of(tf, s)),
    "sparse default": lambda s: tf.sparse.to_dense(
        tf.SparseTensor(np.empty((0, 1), np.int64), tf.constant([], tf.string), [len(s)]), s[0]
    ).numpy()[:1].tolist() + s[1:],
    "ragged to_tensor": lambda s: tf.strings.split([b"x"]).to_tensor(s[0]).numpy()[0, 1:].tolist()
    + s,
    "ensure_shape": lambda s: tf.ensure_shape(s, [None]),
    "join": lambda s: tf.strings.join([[item[:-1] for item in s], b"\0"]),
    "reduce_join": lambda s: tf.strings.reduce_join([[item[:-1], b"\0"] for item in s], axis=1),
    "strings.split": split_by_commas,
    "bytes_split": lambda s: [
        b"".join(part.numpy() for part in tf.strings.bytes_split(item)) for item in s
    ],
    "substr": lambda s: tf.strings.substr(s, 0, -1),
    "strip": lambda s: tf.strings.strip(s).numpy()
    if not any(item.strip(b" \t\n\v\f\r") != item for item in s) else s,
    "lower": lambda s: s if tf.strings.lower(s).numpy().tolist() == [
        item.lower() for item in s] else None,
    "upper": lambda s: s if tf.strings.upper(s).numpy().tolist() == [
        item.upper() for item in s] else None,
    "length": lambda s: s if tf.strings.length(s).numpy().tolist() == list(map(len, s)) else None,
    "regex_replace": lambda s: tf.strings.regex_replace(s, b"\0$", b"\0"),
    "as_string": tf.strings.as_string,
    "read_file": read_back,
    "from_tensor_slices": lambda s: tf.data.Dataset.from_tensor_slices(s),
    "from_generator": generated,
    "batch": lambda s: next(iter(tf.data.Dataset.from_tensor_slices(s).batch(9))),
    "unique": lambda s: s if list(dict.fromkeys(s)) == [
        item.numpy() for item in tf.data.Dataset.from_tensor_slices(s).unique()] else None,
    "unbatch of ragged": lambda s: next(iter(
        tf.data.Dataset.from_tensors(tf.RaggedTensor(tfw.RaggedTensor(s, [0, len(s)]))).unbatch())),
    "map": mapped(lambda x: x),
    "map to numpy": mapped(lambda x: x.numpy()),
    "map to list": mapped(lambda x: tf.stack(list(x))),
}  # fmt: skip


@STRINGS
def test_tensors_hold_values_whole(strings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def check(way):
        found = COMPAT[way](strings)
        assert strings == [getattr(item, "numpy", lambda item=item: item)() for item in found]

    check_each(check, COMPAT)


@pytest.mark.parametrize("way", [tfw.serialize_tensor, tfw.Dataset.from_tensor_slices, tf.constant])
def test_one_long_string_does_not_make_the_others_long(way):
    strings = [b"x" * 10**5] + [b""] * 10**4
    tracemalloc.start()
    try:
        way(strings)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
