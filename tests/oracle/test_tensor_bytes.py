"""Tensors beside TensorFlow: the same bytes out of the same values, and back."""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from tensorflow.core.framework import tensor_pb2

import tfwire as tfw

EXAMPLES = int(os.environ.get("TFWIRE_ORACLE_EXAMPLES", "1000"))
NUMERIC = [
    *["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"],
    *["float16", "float32", "float64", "complex64", "complex128"],
]
SHAPES = hnp.array_shapes(min_dims=0, min_side=0, max_dims=4, max_side=4)
LISTS = {
    "float_val": tf.float32,
    "double_val": tf.float64,
    "int64_val": tf.int64,
    "bool_val": tf.bool,
    "scomplex_val": tf.complex64,
    "dcomplex_val": tf.complex128,
    "half_val": tf.float16,
    "uint32_val": tf.uint32,
    "uint64_val": tf.uint64,
    "string_val": tf.string,
}


@given(st.sampled_from(NUMERIC).flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)))
@settings(max_examples=EXAMPLES, deadline=None)
def test_random_numbers(array):
    theirs = tf.io.serialize_tensor(array).numpy()
    assert theirs == tfw.serialize_tensor(array)
    found = tfw.parse_tensor(theirs, tf.as_dtype(array.dtype))
    assert tf.io.parse_tensor(theirs, array.dtype).numpy().tobytes() == found.tobytes()
    assert (array.dtype, array.shape) == (found.dtype, found.shape)


@given(hnp.arrays(object, SHAPES, elements=st.binary() | st.text()))
@settings(max_examples=EXAMPLES // 5, deadline=None)
def test_random_strings(array):
    if array.size == 0:  # TensorFlow cannot know that these are strings
        array = tf.constant([], tf.string, array.shape)
    theirs = tf.io.serialize_tensor(array).numpy()
    assert theirs == tfw.serialize_tensor(array)
    expected = tf.io.parse_tensor(theirs, tf.string).numpy()
    assert np.array_equal(expected, tfw.parse_tensor(theirs, tf.string))


def test_bfloat16():
    array = np.arange(-3, 3).astype(ml_dtypes.bfloat16)
    theirs = tf.io.serialize_tensor(array).numpy()
    assert theirs == tfw.serialize_tensor(array)
    assert array.tobytes() == tfw.parse_tensor(theirs, tf.bfloat16).tobytes()


@pytest.mark.parametrize(
    "value",
    [
        *[1, -(2**31), 2**31, 1.5, True, 1j, "é", b"a\0", [], [[], []], [[1, 2], [3, 4]]],
        *[[1, 2.5], [1, 2**40], [np.float64(1), 2.0], [2.0, np.float64(1)], [np.float16(1)]],
        *[[np.int64(1)], [np.uint8(1)], [np.int64(1), 2.5], [np.bool_(True)], [1j, 2]],
        *[np.int64(1), np.float64(1), [np.arange(3)], [np.arange(3.0)], [b"a\0", "x"]],
        *[np.array(["a"]), np.array([b"a\0b"]), [np.complex64(1)], [np.float32(1)]],
        np.array([1, 2], ">i4"),
    ],
    ids=repr,
)
def test_python_values_become_the_same_tensor(value):
    assert tf.io.serialize_tensor(value).numpy() == tfw.serialize_tensor(value)


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("stored", [0, 1, 2, 4])
def test_listed_values_fill_the_shape(name, stored):
    dtype = LISTS[name]
    pairs = 2 if "complex" in name else 1
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    values = [b"a", b"b\0", b"c", b"d"] if name == "string_val" else [0, 1, 1, 0] * 2
    getattr(proto, name).extend(values[: stored * pairs])
    for size in [2, 2]:
        proto.tensor_shape.dim.add(size=size)
    expected = tf.io.parse_tensor(proto.SerializeToString(), dtype).numpy()
    for serialized in [proto, proto.SerializeToString()]:
        found = tfw.parse_tensor(serialized, dtype)
        assert expected.dtype == found.dtype
        assert expected.tolist() == found.tolist()


@given(
    st.lists(st.binary(max_size=12), max_size=4),
    st.sampled_from(["bool", "uint8", "int16", "float16", "int32", "float32", "complex64"]),
    st.booleans(),
    st.none() | st.integers(0, 24),
)
@settings(max_examples=EXAMPLES // 2, deadline=None)
def test_decode_raw(strings, dtype, little_endian, fixed_length):
    # TensorFlow has fixed_length for fewer types.
    assume(fixed_length is None or dtype not in ("bool", "float16", "complex64"))
    arguments = strings, dtype, little_endian, fixed_length
    try:
        expected = tf.io.decode_raw(*arguments).numpy()
    except tf.errors.InvalidArgumentError:
        with pytest.raises(ValueError, match=r"multiple|one length"):
            tfw.decode_raw(*arguments)
        return
    found = tfw.decode_raw(*arguments)
    assert (expected.dtype, expected.shape) == (found.dtype, found.shape)
    if dtype == "bool":  # TensorFlow keeps bytes other than 0 and 1
        assert (np.frombuffer(expected.tobytes(), np.uint8) != 0).tolist() == found.ravel().tolist()
    else:
        assert expected.tobytes() == found.tobytes()
