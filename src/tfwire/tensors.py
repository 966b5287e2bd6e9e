"""Tensors in byte strings: TensorProto messages and raw memory, as tf.io has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfwire._arguments import boolean, integer
from tfwire._examples import tensor_message
from tfwire._examples.coerce import byte_strings
from tfwire._examples.dtypes import STRING, as_dtype, from_wire, type_name, wire_dtype
from tfwire._objects import as_array, first_leaf
from tfwire.errors import ParseError

__all__ = ["decode_raw", "parse_tensor", "serialize_tensor"]

Array = np.ndarray[Any, Any]
Dtype = np.dtype[Any]


# ---- Tensors to messages ------------------------------------------------------------------------


def serialize_tensor(tensor: Any, name: None = None) -> bytes:
    """A tensor as a serialized TensorProto, the bytes that tf.io.serialize_tensor writes.

    Args:
        tensor: An array of any rank, a number or string, nested lists of them, or an object with
            a ``numpy()`` method. Types: bool, integers of 8 to 64 bits, float16 to float64,
            complex64, complex128, strings (str as UTF-8), bfloat16 and float8 of ml_dtypes.
            Numbers without an array become what TensorFlow makes of them: integers int32, or
            int64 where int32 cannot hold them; floats float32, lists of ``np.float64`` float64.
        name: Ignored, as TensorFlow has it.

    Raises:
        TypeError: A type that TensorFlow does not have.
        ValueError: A message of 2 GiB or more, which no protobuf reader takes.

    Example:
        >>> serialize_tensor(np.array([1, 2], np.float32))
        b'\\x08\\x01\\x12\\x04\\x12\\x02\\x08\\x02"\\x08\\x00\\x00\\x80?\\x00\\x00\\x00@'
    """
    return tensor_message.serialize(_as_array(tensor))


def _as_array(tensor: Any) -> Array:
    """A tensor as an array, with the types that TensorFlow infers for what has none."""
    if hasattr(tensor, "numpy"):
        tensor = tensor.numpy()
    if isinstance(tensor, (bytes, bytearray, memoryview, str)):
        return np.array(byte_strings([tensor])[0], object)
    if isinstance(tensor, (np.ndarray, np.generic)):
        return np.asarray(tensor)
    array = as_array(tensor)
    kind = array.dtype.kind
    if kind in "iu":
        return _smallest_integers(array)
    if kind == "f":
        leaf_dtype = np.dtype(getattr(first_leaf(tensor), "dtype", np.float32))
        return array.astype(leaf_dtype if leaf_dtype.kind == "f" else np.float32)
    return array.astype(np.complex128) if kind == "c" else array


def _smallest_integers(array: Array) -> Array:
    """int32 where it can hold the values, else int64."""
    low, high = int(array.min()), int(array.max())
    if high >= 2**63:
        raise ValueError("integers beyond int64: make them an array of uint64")
    return array.astype(np.int32 if -(2**31) <= low and high < 2**31 else np.int64)


# ---- Messages to tensors ------------------------------------------------------------------------


def parse_tensor(
    serialized: Any, out_type: Any, name: None = None, *, max_fill: int = 2**26
) -> Any:
    """The tensor of a serialized TensorProto.

    Both forms are read: the memory of the tensor (``tensor_content``), and lists of values. Of a
    list, fewer values than the shape has are filled up with the last one, or with zeros when
    there is none, as in TensorFlow.

    Args:
        serialized: A TensorProto, bytes-like or a message.
        out_type: The type that the tensor must have: a numpy dtype, a name such as ``"float32"``
            or ``"string"``, or a dtype of tfwire or TensorFlow.
        name: Ignored, as TensorFlow has it.
        max_fill: The largest tensor, in bytes, that is made from fewer values than its shape has;
            a message of 20 bytes can ask for any size. A tensor given in full has no limit.

    Returns:
        A writable array of the message's shape and type; strings are objects of type bytes. For
        rank 0 a numpy scalar, or bytes. Content is copied once.

    Raises:
        ParseError: The bytes are no TensorProto (``reason`` "malformed"), the type is another
            one ("kind"), or shape and values do not agree ("count").

    Example:
        >>> parse_tensor(serialize_tensor(np.eye(2)), "float64")
        array([[1., 0.],
               [0., 1.]])
    """
    expected = as_dtype(out_type)
    max_fill = integer("max_fill", max_fill, 0)
    proto, content = tensor_message.read(serialized)
    tensor_message.check_type(proto, expected)
    shape = tensor_message.shape_of(proto)
    what = f"a tensor of shape {list(shape)} and type {type_name(expected)}"
    count = math.prod(shape)
    if len(content) == 0:
        values = tensor_message.listed_values(proto, expected, count, what, max_fill)
    elif expected == STRING:
        values = tensor_message.string_content(content, count, what)
    else:
        values = tensor_message.numeric_content(content, expected, count, what)
    try:
        return values.reshape(shape)[()]
    except ValueError:  # more than 64 dimensions, or a size such as (2**62, 0)
        raise ParseError(f"{what}: numpy has no such arrays", reason="malformed") from None


# ---- Raw memory ---------------------------------------------------------------------------------


def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: None = None,
) -> Array:
    """Byte strings reinterpreted as vectors of numbers.

    Args:
        input_bytes: A byte string (str as UTF-8), or an array, nested lists or a BytesColumn of
            shape S of them, all of one length unless ``fixed_length`` is given.
        out_type: A type of numbers or bool: a numpy dtype, a name, or a dtype of tfwire or
            TensorFlow.
        little_endian: The byte order of the input.
        fixed_length: Bytes of each string to use: longer ones are cut, shorter ones padded with
            zero bytes. A positive multiple of the type's size.
        name: Ignored, as TensorFlow has it.

    Returns:
        An array of shape S + (length / size of the type,). It owns its memory and is writable:
        the bytes are copied once.

    Raises:
        ValueError: A length is no multiple of the type's size, or lengths differ.
        TypeError: The type is string, or the input holds anything but byte strings.

    Example:
        >>> decode_raw([b"\\x01\\x00\\x02\\x00", b"\\x03\\x00\\x04\\x00"], "uint16")
        array([[1, 2],
               [3, 4]], dtype=uint16)
    """
    dtype = as_dtype(out_type)
    little_endian = boolean("little_endian", little_endian)
    if fixed_length is not None:
        fixed_length = integer("fixed_length", fixed_length)
    if dtype == STRING:
        raise TypeError("decode_raw makes numbers of byte strings; string is no type of numbers")
    buffer, width, shape = _joined(input_bytes, dtype, fixed_length)
    if dtype == np.bool_:
        values: Array = np.frombuffer(buffer, np.uint8) != 0
    else:
        wire = wire_dtype(dtype)
        stored = np.frombuffer(buffer, wire if little_endian else wire.newbyteorder(">"))
        values = from_wire(stored, dtype)
    return values.reshape(*shape, width // dtype.itemsize)


def _joined(
    input_bytes: Any, dtype: Dtype, fixed_length: int | None
) -> tuple[bytearray, int, tuple[int, ...]]:
    """All strings in a buffer of their own, the length of each, and their shape."""
    if hasattr(input_bytes, "offsets") and fixed_length is None:  # a BytesColumn, joined already
        offsets = input_bytes.offsets
        width = _common_length(np.diff(offsets), dtype)
        return bytearray(input_bytes.data[offsets[0] : offsets[-1]].data), width, input_bytes.shape
    rows, shape = _rows_of(input_bytes)
    if fixed_length is not None:
        rows = _fixed_rows(rows, fixed_length, dtype)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    width = _common_length(lengths, dtype) if rows else fixed_length or 0
    return bytearray().join(rows), width, shape


def _rows_of(input_bytes: Any) -> tuple[list[bytes], tuple[int, ...]]:
    """The byte strings in row-major order, and their shape."""
    if hasattr(input_bytes, "numpy"):
        input_bytes = input_bytes.numpy()
    if isinstance(input_bytes, (str, bytes, bytearray, memoryview)):
        return byte_strings([input_bytes]), ()
    if hasattr(input_bytes, "offsets"):
        input_bytes = np.asarray(input_bytes)
    if isinstance(input_bytes, np.ndarray) and input_bytes.dtype.kind not in "OUT":
        if input_bytes.dtype.kind == "S":
            raise TypeError("numpy 'S' arrays drop trailing NUL bytes; use dtype=object")
        raise TypeError(f"decode_raw reads byte strings, found an array of {input_bytes.dtype}")
    array = np.array(input_bytes, object)
    return byte_strings(array.reshape(-1)), array.shape


def _fixed_rows(rows: list[bytes], length: int, dtype: Dtype) -> list[bytes]:
    if length <= 0 or length % dtype.itemsize:
        raise ValueError(
            f"fixed_length must be a positive multiple of {dtype.itemsize}, the size of "
            f"{dtype.name}, found {length}"
        )
    return [row[:length].ljust(length, b"\0") for row in rows]


def _common_length(lengths: Array, dtype: Dtype) -> int:
    """The length that all strings have."""
    width = int(lengths[0]) if len(lengths) else 0
    if width % dtype.itemsize:
        raise ValueError(
            f"decode_raw found a string of {width} bytes, which is no multiple of "
            f"{dtype.itemsize}, the size of {dtype.name}"
        )
    if (lengths != width).any():
        i = int((lengths != width).argmax())
        raise ValueError(
            f"decode_raw needs strings of one length, found {width} bytes at element 0 and "
            f"{lengths[i]} at element {i}; fixed_length cuts and pads"
        )
    return width
