"""Tuples, named tuples and dicts: how functions get them, and what comes out."""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow
from compared import LIBRARIES

import tfwire
import tfwire.compat

Point = namedtuple("Point", "x y")


def shape_of(element):
    """The structure of an element; "." for a tensor."""
    if isinstance(element, dict):
        return {key: shape_of(value) for key, value in element.items()}
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        return type(element).__name__, *map(shape_of, element)
    if isinstance(element, (tuple, list)):
        return type(element)(map(shape_of, element))
    return "dataset" if hasattr(element, "as_numpy_iterator") else "."


ELEMENTS = {
    "point": Point([1, 2], [3, 4]),
    "tuple": ([1, 2], [3, 4]),
    "tuple of points": (Point([1, 2], [3, 4]), [5, 6]),
    "dict of points": {"a": Point([1, 2], [3, 4])},
    "point of tuples": Point(([1, 2], [3, 4]), {"q": [1, 2]}),
    "tuple of one": ([1, 2],),
    "tensor": [1, 2],
}


def made(element):
    return lambda tf, dataset, see: dataset.map(lambda *x: (see(*x), element(x))[1]).map(see)


METHODS = {
    "map": lambda tf, d, see: d.map(see),
    "filter": lambda tf, d, see: d.filter(lambda *x: (see(*x), True)[1]),
    "take_while": lambda tf, d, see: d.take_while(lambda *x: (see(*x), True)[1]),
    "flat_map": lambda tf, d, see: d.flat_map(lambda *x: (see(*x), tf.data.Dataset.range(2))[1]),
    "interleave": lambda tf, d, see: d.interleave(
        lambda *x: (see(*x), tf.data.Dataset.range(2))[1]
    ),
    "scan": lambda tf, d, see: d.scan(0, lambda *x: (see(*x), (x[0], x[0]))[1]),
    "reduce": lambda tf, d, see: SimpleNamespace(
        as_numpy_iterator=lambda: [d.reduce(0, lambda *x: (see(*x), x[0])[1]).numpy()]
    ),
    "group_by_window": lambda tf, d, see: d.group_by_window(
        lambda *x: (see(*x), tf.constant(0, tf.int64))[1], lambda key, group: group, 2
    ),
    "bucket": lambda tf, d, see: d.bucket_by_sequence_length(
        lambda *x: (see(*x), 1)[1], [5], [2, 2]
    ),
    "enumerate": lambda tf, d, see: d.enumerate().map(see),
    "zip": lambda tf, d, see: tf.data.Dataset.zip((d, d)).map(see),
    "zip of a point": lambda tf, d, see: tf.data.Dataset.zip(Point(d, d)).map(see),
    "zip of a dict": lambda tf, d, see: tf.data.Dataset.zip({"b": d, "a": d}).map(see),
    "batch": lambda tf, d, see: d.batch(2).map(see),
    "padded_batch": lambda tf, d, see: d.padded_batch(2).map(see),
    "unbatch": lambda tf, d, see: d.batch(2).unbatch().map(see),
    "window": lambda tf, d, see: d.window(2).map(see),
    "a point": made(lambda x: Point(x[0], x[0])),
    "a list": made(lambda x: [x[0], x[0]]),
    "a dict": made(lambda x: {"z": x[0], "a": (x[0],)}),
}


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("method", METHODS)
def test_arguments_of_functions(method, element):
    def seen_and_given(tf):
        seen = []

        def see(*arguments):
            seen.append(shape_of(arguments))
            return 1

        dataset = tf.data.Dataset.from_tensor_slices(ELEMENTS[element])
        given = list(METHODS[method](tf, dataset, see).as_numpy_iterator())
        return seen[0], seen[-1], list(map(shape_of, given))

    assert seen_and_given(tensorflow) == seen_and_given(tfwire.compat)


def signature(tf, dtype="int64"):
    return tf.TensorSpec((), getattr(tf, dtype))


@pytest.mark.parametrize("element", [Point(1, 2), (1, 2), [1, 2], {"x": 1, "y": 2}])
@pytest.mark.parametrize(
    "types",
    [
        lambda leaf: Point(leaf, leaf),
        lambda leaf: (leaf, leaf),
        lambda leaf: [leaf, leaf],
        lambda leaf: {"y": leaf, "x": leaf},
        lambda leaf: leaf,
    ],
)
@pytest.mark.parametrize("by_types", [True, False])
def test_elements_of_generators(types, element, by_types):
    def outcome(tf):
        try:
            if by_types:
                dataset = tf.data.Dataset.from_generator(lambda: [element], types(tf.int64))
            else:
                dataset = tf.data.Dataset.from_generator(
                    lambda: [element], output_signature=types(signature(tf))
                )
            return [
                repr(tf.nest.map_structure(lambda x: x.tolist(), found))
                for found in dataset.as_numpy_iterator()
            ]
        except (TypeError, ValueError, tensorflow.errors.OpError):
            return "error"

    assert outcome(tensorflow) == outcome(tfwire.compat)


def sparse(tf):
    return tf.SparseTensor([[0, 1]], tf.constant([5], tf.int64), [2, 3])


def of_splits(tf, values, splits):
    if tf is tensorflow:
        return tf.RaggedTensor.from_row_splits(values, splits)
    return tf.RaggedTensor(tfwire.RaggedTensor(values, splits))


def ragged(tf):
    return of_splits(tf, np.array([1, 2, 3]), np.array([0, 2, 3]))


def of_vectors(tf):
    return of_splits(tf, np.array([[1, 2], [3, 4]], np.int32), np.array([0, 0, 2], np.int32))


def zeros(tf, *shape):
    return tf.data.Dataset.from_tensor_slices(np.zeros(shape, np.int64))


def one(tf, value):
    return tf.data.Dataset.from_tensors(value)


def vectors(tf, count=5):
    """Of a function, and of a shape that TensorFlow finds by tracing it."""
    return tf.data.Dataset.range(count).map(lambda x: tf.stack([x, x, x]))


def numbers(tf, count=5):
    return tf.data.Dataset.range(count).map(lambda x: x + 1)


SPECS = {
    "sizes": lambda tf, d: zeros(tf, 3, 2).concatenate(zeros(tf, 3, 4)),
    "ranks": lambda tf, d: zeros(tf, 3, 2).concatenate(zeros(tf, 3)),
    "one unknown size": lambda tf, d: d.range(5).batch(2, True).concatenate(d.range(3).batch(2)),
    "equal": lambda tf, d: zeros(tf, 3, 2).concatenate(zeros(tf, 1, 2)),
    "dicts": lambda tf, d: one(tf, {"a": [1, 2], "b": 1.5}).concatenate(
        one(tf, {"a": [1], "b": 2.5})
    ),
    "tuples": lambda tf, d: one(tf, ([1, 2], "x")).concatenate(one(tf, ([[1]], "y"))),
    "points": lambda tf, d: one(tf, Point([1, 2], "x")).concatenate(one(tf, Point([1], "y"))),
    "batches": lambda tf, d: zeros(tf, 3, 2).batch(2).concatenate(zeros(tf, 3, 2).batch(2)),
    "with a function": lambda tf, d: zeros(tf, 3, 2).concatenate(vectors(tf)),
    "a function first": lambda tf, d: vectors(tf).concatenate(zeros(tf, 3, 2)).batch(2),
    "chosen": lambda tf, d: d.choose_from_datasets([zeros(tf, 3, 2), zeros(tf, 3, 4)], d.range(2)),
    "sampled": lambda tf, d: d.sample_from_datasets([zeros(tf, 3, 2), zeros(tf, 3, 4)]),
    "sparse twice": lambda tf, d: (
        one(tf, sparse(tf)).batch(1).concatenate(one(tf, sparse(tf)).batch(1, True))
    ),
    "ragged twice": lambda tf, d: one(tf, ragged(tf)).concatenate(one(tf, ragged(tf))),
    "batch": lambda tf, d: numbers(tf).batch(2),
    "batch, no remainder": lambda tf, d: numbers(tf).batch(2, True),
    "batch of vectors": lambda tf, d: vectors(tf).batch(2).batch(2),
    "filtered": lambda tf, d: numbers(tf).filter(lambda x: x > 1).batch(2),
    "enumerated": lambda tf, d: numbers(tf).map(lambda x: (x, {"a": x})).batch(2).enumerate(),
    "taken": lambda tf, d: numbers(tf).batch(2).take(1).skip(0).repeat(2),
    "shuffled": lambda tf, d: numbers(tf).batch(2).shuffle(3).prefetch(1),
    "sharded": lambda tf, d: numbers(tf).batch(2).shard(2, 0),
    "cached": lambda tf, d: numbers(tf).batch(2).cache(),
    "unbatched": lambda tf, d: vectors(tf).batch(2).unbatch(),
    "rebatched": lambda tf, d: zeros(tf, 5, 2).batch(2).unbatch().batch(3),
    "zipped": lambda tf, d: d.zip((numbers(tf).batch(2), d.range(3))),
    "zipped dict": lambda tf, d: d.zip({"a": numbers(tf).batch(2)}),
    "take_while": lambda tf, d: numbers(tf).batch(2).take_while(lambda x: tf.constant(True)),
    "counted": lambda tf, d: numbers(tf).batch(2).apply(tf.data.experimental.assert_cardinality(3)),
    "windows": lambda tf, d: numbers(tf).batch(2).window(2),
    "padded": lambda tf, d: zeros(tf, 3, 2).padded_batch(2),
    "padded to": lambda tf, d: zeros(tf, 3, 2).padded_batch(2, [7]),
    "padded to any": lambda tf, d: zeros(tf, 3, 2, 4).padded_batch(2, [-1, -1], None, True),
    "padded tuples": lambda tf, d: one(tf, ([1, 2], [[1.5]])).padded_batch(2, ([3], [None, 4])),
    "padded dicts": lambda tf, d: one(tf, {"a": [1], "b": [1.5]}).padded_batch(
        2, {"a": [3], "b": [None]}
    ),
    "padded unknown": lambda tf, d: d.range(5).batch(2).padded_batch(2),
    "padded function": lambda tf, d: vectors(tf).padded_batch(2, [4]),
    "sparse": lambda tf, d: one(tf, sparse(tf)),
    "sparse batch": lambda tf, d: one(tf, (sparse(tf), 1)).batch(2),
    "sparse rows": lambda tf, d: one(tf, sparse(tf)).batch(2).unbatch(),
    "ragged": lambda tf, d: one(tf, ragged(tf)),
    "ragged batch": lambda tf, d: one(tf, {"a": ragged(tf)}).batch(2, True),
    "ragged of vectors": lambda tf, d: one(tf, of_vectors(tf)).batch(2).repeat(2),
    "any rank": lambda tf, d: d.from_generator(list, tf.int64).batch(2).take(1),
}


@pytest.mark.parametrize("name", SPECS)
def test_element_spec(name):
    expected, found = (SPECS[name](tf, tf.data.Dataset).element_spec for tf in LIBRARIES)
    assert repr(expected) == repr(found)


SIGNATURES = {
    "sparse": lambda tf: tf.SparseTensorSpec([2, 3], tf.int64),
    "sparse of any size": lambda tf: tf.SparseTensorSpec([None, None], tf.int64),
    "sparse of any rank": lambda tf: tf.SparseTensorSpec(None, tf.int64),
    "sparse of another size": lambda tf: tf.SparseTensorSpec([2, 4], tf.int64),
    "sparse of another rank": lambda tf: tf.SparseTensorSpec([2], tf.int64),
    "sparse of another dtype": lambda tf: tf.SparseTensorSpec([2, 3], tf.int32),
    "ragged": lambda tf: tf.RaggedTensorSpec([2, None], tf.int64),
    "ragged of any size": lambda tf: tf.RaggedTensorSpec([None, None], tf.int64),
    "ragged of any rank": lambda tf: tf.RaggedTensorSpec(None, tf.int64, 1),
    "ragged of another size": lambda tf: tf.RaggedTensorSpec([3, None], tf.int64),
    "ragged of another rank": lambda tf: tf.RaggedTensorSpec([2, None, None], tf.int64),
    "ragged of another dtype": lambda tf: tf.RaggedTensorSpec([2, None], tf.int32),
    "ragged of other splits": lambda tf: tf.RaggedTensorSpec(
        [2, None], tf.int64, row_splits_dtype=tf.int32
    ),
    "ragged of vectors": lambda tf: tf.RaggedTensorSpec([2, None, 2], tf.int32, 1, tf.int32),
    "tensor": lambda tf: tf.TensorSpec([2, None], tf.int64),
    "in a tuple": lambda tf: (tf.SparseTensorSpec([2, 3], tf.int64), tf.TensorSpec([], tf.int64)),
    "in a dict": lambda tf: {
        "r": tf.RaggedTensorSpec([2, None], tf.int64),
        "n": tf.TensorSpec([], tf.int64),
    },
    "in a point": lambda tf: Point(
        tf.RaggedTensorSpec([2, None], tf.int64), tf.SparseTensorSpec([2, 3], tf.int64)
    ),
    "in a list": lambda tf: [tf.RaggedTensorSpec([2, None], tf.int64)],
}
YIELDED = {
    "sparse": sparse,
    "ragged": ragged,
    "ragged of vectors": of_vectors,
    "rows": lambda tf: [[1, 2], [3, 4]],
    "array": lambda tf: np.zeros((2, 3), np.int64),
    "in a tuple": lambda tf: (sparse(tf), 1),
    "in a dict": lambda tf: {"r": ragged(tf), "n": 1},
    "in a point": lambda tf: Point(ragged(tf), sparse(tf)),
    "in a list": lambda tf: [ragged(tf)],
}


def parts(element):
    """The values of an element and their dtypes."""
    if isinstance(element, dict):
        return {key: parts(value) for key, value in element.items()}
    if isinstance(element, tuple):
        return list(map(parts, element))
    if hasattr(element, "dense_shape"):
        element = [element.indices, element.values, element.dense_shape]
    elif hasattr(element, "nested_row_splits"):
        element = [element.flat_values, *element.nested_row_splits]
    else:
        element = [element]
    return [(np.asarray(part).tolist(), np.asarray(part).dtype) for part in element]


@pytest.mark.parametrize("element", YIELDED)
@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_of_generators(name, element):
    def outcome(tf, after):
        try:
            dataset = after(
                tf.data.Dataset.from_generator(
                    lambda: [YIELDED[element](tf)], output_signature=SIGNATURES[name](tf)
                )
            )
        except TypeError:
            return "refused"
        spec = repr(dataset.element_spec)
        try:
            elements = list(dataset)
        except (TypeError, tensorflow.errors.OpError, tfwire.compat.errors.OpError):
            return spec
        return spec, shape_of(elements), list(map(parts, elements))

    for after in (lambda d: d, lambda d: d.take(1), lambda d: d.batch(2)):
        expected, found = (outcome(tf, after) for tf in LIBRARIES)
        assert expected == found
