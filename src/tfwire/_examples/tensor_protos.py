"""serialize_tensor and parse_tensor: TensorProto messages and the tensors in them."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array, BytesLike, DTypeLike, SupportsSerialize, Value
from tfwire._base.arguments import integer
from tfwire._base.errors import ParseError
from tfwire._base.strings import as_array, as_buffer, first_leaf, read_varint
from tfwire._examples.dtypes import (
    STRING,
    data_type_number,
    dtype_from_number,
    from_wire,
    is_string,
    to_numpy_dtype,
    to_wire,
    type_name,
    wire_dtype,
)
from tfwire._examples.protobuf import byte_string, byte_strings, message_classes, parse_message

Dtype = np.dtype[Any]


def serialize_tensor(tensor: object, name: str | None = None) -> bytes:
    """A tensor as a serialized TensorProto, the bytes that tf.io.serialize_tensor writes.

    Args:
        tensor: An array of any rank, a number or string, nested lists of them, or an object with
            a ``numpy()`` method. Types: bool, integers of 8 to 64 bits, float16 to float64,
            complex64, complex128, strings (str as UTF-8), bfloat16 and float8 of ml_dtypes.
            Numbers that are not in an array get TensorFlow's types: integers int32, or int64 if
            int32 cannot hold them; floats float32; lists of ``np.float64`` float64.
        name: Ignored; TensorFlow has it.

    Raises:
        TypeError: A type that TensorFlow does not have.
        ValueError: A message of 2 GiB or more, which no protobuf reader accepts.

    Example:
        >>> serialize_tensor(np.array([1, 2], np.float32))
        b'\\x08\\x01\\x12\\x04\\x12\\x02\\x08\\x02"\\x08\\x00\\x00\\x80?\\x00\\x00\\x00@'
    """
    array = _as_array(tensor)
    proto = _TensorProto(dtype=data_type_number(array.dtype))
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    if is_string(array.dtype):
        proto.string_val.extend(byte_strings(array.reshape(-1)))
    head: bytes = proto.SerializeToString()
    if is_string(array.dtype) or array.size == 0:
        return head
    # The content is appended here: protobuf would copy it twice.
    content_head = bytes([_CONTENT_TAG]) + _varint(array.nbytes)
    if len(head) + len(content_head) + array.nbytes > _MAX_MESSAGE:
        raise ValueError(f"a tensor of {array.nbytes} bytes: protobuf messages end at 2 GiB")
    return b"".join([head, content_head, to_wire(array).data])


def _as_array(tensor: Any) -> Array:
    """A tensor as an array. Values without a dtype get the one that TensorFlow infers."""
    if hasattr(tensor, "numpy"):
        tensor = tensor.numpy()
    if isinstance(tensor, (bytes, bytearray, memoryview, str)):
        return np.array(byte_string(tensor), object)
    if isinstance(tensor, (np.ndarray, np.generic)):
        return np.asarray(tensor)
    array = as_array(tensor)
    kind = array.dtype.kind
    if kind in "iu":
        return _smallest_integers(array)
    if kind == "f":
        leaf_dtype = np.dtype(getattr(first_leaf(tensor), "dtype", np.float32))
        with np.errstate(all="ignore"):  # beyond the range of float32 it is infinite
            return array.astype(leaf_dtype if leaf_dtype.kind == "f" else np.float32)
    return array.astype(np.complex128) if kind == "c" else array


def _smallest_integers(array: Array) -> Array:
    """int32 if it can hold the values, else int64."""
    low, high = int(array.min()), int(array.max())
    if high >= 2**63:
        raise ValueError("integers beyond int64: make them an array of uint64")
    return array.astype(np.int32 if -(2**31) <= low and high < 2**31 else np.int64)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# ---- Parsing ------------------------------------------------------------------------------------


def parse_tensor(
    serialized: BytesLike | SupportsSerialize,
    out_type: DTypeLike,
    name: str | None = None,
    *,
    max_fill: int = 2**26,
) -> Value:
    """The tensor of a serialized TensorProto.

    Both forms are read: the memory of the tensor (``tensor_content``), and lists of values. A list
    with fewer values than the shape has is filled up with its last value, or with zeros if it is
    empty, as in TensorFlow.

    Args:
        serialized: A TensorProto, bytes-like or a message.
        out_type: The type that the tensor must have: a numpy dtype, a name such as ``"float32"``
            or ``"string"``, or a dtype of tfwire or TensorFlow.
        name: Ignored; TensorFlow has it.
        max_fill: The largest tensor, in bytes, that is made from fewer values than its shape has: a
            message of 20 bytes can ask for any size. A tensor given in full has no limit.

    Returns:
        A writable array of the message's shape and type; strings are bytes objects. For rank 0 a
        numpy scalar, or bytes. Content is copied once.

    Raises:
        ParseError: The bytes are not a TensorProto (``reason`` "malformed"), the type differs
            ("kind"), or shape and values do not agree ("count").

    Example:
        >>> parse_tensor(serialize_tensor(np.eye(2)), "float64")
        array([[1., 0.],
               [0., 1.]])
    """
    expected = to_numpy_dtype(out_type)
    max_fill = integer("max_fill", max_fill, 0)
    proto, content = _read(serialized)
    _check_type(proto, expected)
    shape = _shape(proto)
    what = f"a tensor of shape {list(shape)} and type {type_name(expected)}"
    count = math.prod(shape)
    if len(content) == 0:
        values = _listed_values(proto, expected, count, what, max_fill)
    elif expected == STRING:
        values = _string_content(content, count, what)
    else:
        values = _numeric_content(content, expected, count, what)
    try:
        return values.reshape(shape)[()]
    except ValueError:  # more than 64 dimensions, or a size such as (2**62, 0)
        raise ParseError(f"{what}: numpy has no such arrays", reason="malformed") from None


def _read(serialized: Any) -> tuple[Any, Any]:
    """The message and its content: a view of the input if the content ends the message."""
    data = memoryview(as_buffer(serialized, "a serialized tensor")).cast("B")
    tag, content = _content_position(data)
    proto = parse_message(_TensorProto, data[:tag])
    return proto, proto.tensor_content if tag == len(data) else data[content:]


def _content_position(data: memoryview) -> tuple[int, int]:
    """Where the content's tag is, and where the content begins.

    Steps over the fields that writers put before the content. If there are others, or the content
    does not end the message, both are the end of the message: protobuf reads it all.
    """
    end = len(data)
    position = 0
    with suppress(ValueError):  # a varint without an end
        for _ in range(4):
            if position >= end:
                break
            tag = position
            value, position = read_varint(data, position + 1)
            if data[tag] == _CONTENT_TAG:
                return (tag, position) if value == end - position else (end, end)
            if data[tag] == _SHAPE_TAG:
                position += value
            elif data[tag] not in (_DTYPE_TAG, _VERSION_TAG):
                break
    return end, end


def _check_type(proto: Any, expected: Dtype) -> None:
    """Raises ParseError if the tensor is of another type."""
    if proto.dtype == data_type_number(expected):
        return
    dtype = dtype_from_number(proto.dtype)
    found = f"DataType {proto.dtype}" if dtype is None else type_name(dtype)
    raise ParseError(
        f"Type mismatch between parsed tensor ({found}) and dtype ({type_name(expected)})",
        reason="kind",
        expected=type_name(expected),
        found=found,
    )


def _shape(proto: Any) -> tuple[int, ...]:
    """The shape; ParseError if TensorFlow would not accept it."""
    dims = proto.tensor_shape.dim
    if proto.tensor_shape.unknown_rank:
        raise ParseError("a tensor of unknown rank", reason="malformed")
    if len(dims) > _MAX_RANK:
        raise ParseError(f"a tensor of rank {len(dims)}, more than {_MAX_RANK}", reason="malformed")
    shape = tuple(dim.size for dim in dims)
    if min(shape, default=0) < 0:
        raise ParseError(f"a tensor of negative size: {min(shape)}", reason="malformed")
    if math.prod(shape) >= 2**63:
        raise ParseError(f"a shape of 2**63 values or more, rank {len(shape)}", reason="malformed")
    return shape


def _numeric_content(content: Any, dtype: Dtype, count: int, what: str) -> Array:
    """``count`` numbers from the memory of a tensor. ``what`` describes the tensor in errors."""
    if count * dtype.itemsize != len(content):
        raise _count_error(what, "bytes", count * dtype.itemsize, len(content))
    stored = np.frombuffer(content, wire_dtype(dtype))
    if dtype == np.bool_ and stored.view(np.uint8).max() > 1:
        raise ParseError(f"{what} holds bytes other than 0 and 1", reason="malformed")
    return from_wire(stored.copy(), dtype)


def _string_content(content: Any, count: int, what: str) -> Array:
    """``count`` strings from their content form: all lengths as varints, then all bytes."""
    data = memoryview(content)
    if count > len(data):  # every length takes at least one byte
        raise _count_error(what, "strings", count, len(data))
    lengths, position = [], 0
    with suppress(ValueError):  # a length without an end
        for _ in range(count):
            length, position = read_varint(data, position)
            lengths.append(length)
    if len(lengths) < count or position + sum(lengths) != len(data):
        raise ParseError(f"{what}: its content is not {count} strings", reason="malformed")
    values = np.empty(count, object)
    for i, length in enumerate(lengths):
        values[i] = bytes(data[position : position + length])
        position += length
    return values


def _listed_values(proto: Any, dtype: Dtype, count: int, what: str, max_fill: int) -> Array:
    """``count`` values from the type's list, filled up to at most ``max_fill`` bytes."""
    stored = _stored_values(proto, dtype, what)
    if len(stored) == count:
        return stored
    if len(stored) > count:
        raise _count_error(what, "values", count, len(stored))
    if count * dtype.itemsize > max_fill:
        raise ParseError(
            f"{what} from {len(stored)} values: {count * dtype.itemsize} bytes are more than "
            f"max_fill={max_fill}",
            reason="count",
            expected=count,
            found=len(stored),
        )
    zero = b"" if dtype == STRING else np.zeros((), dtype)
    values = np.empty(count, dtype)
    values.fill(stored[-1] if len(stored) else zero)  # np.full would cut NULs off strings
    values[: len(stored)] = stored
    return values


def _stored_values(proto: Any, dtype: Dtype, what: str) -> Array:
    """The values in the list of a type, as many as there are."""
    field = _VALUE_FIELDS.get(dtype.name, _FLOAT8_LIST)
    stored = getattr(proto, field.field)
    if len(stored) == 0:
        _refuse_other_lists(proto, field.field, what)
    if dtype == STRING:
        strings = np.empty(len(stored), object)
        strings[:] = list(stored)
        return strings
    values: Array = np.fromiter(stored, field.dtype, len(stored))
    if dtype.kind == "c":
        if len(values) % 2:
            raise ParseError(f"{what} with half a complex number", reason="malformed")
        return values.view(dtype)
    if field.field in ("half_val", "float8_val"):
        return values.astype(f"u{dtype.itemsize}").view(dtype)
    return values.astype(dtype, copy=False)


def _refuse_other_lists(proto: Any, expected: str, what: str) -> None:
    """Raises ParseError if the list of another type holds values: they would be ignored."""
    for field, _ in proto.ListFields():
        if field.name.endswith("_val"):
            raise ParseError(
                f"{what} has its values in {expected}, found {field.name}",
                reason="kind",
                expected=expected,
                found=field.name,
            )


def _count_error(what: str, unit: str, expected: int, found: int) -> ParseError:
    return ParseError(
        f"{what} has {expected} {unit}, found {found}",
        reason="count",
        expected=expected,
        found=found,
    )


# ---- The message --------------------------------------------------------------------------------

# tensor.proto without resources and variants. The type is an open enumeration.
_TensorProto = message_classes(
    "tensorflow",
    {
        "TensorProto": [
            "int32 dtype = 1",
            "TensorShapeProto tensor_shape = 2",
            "int32 version_number = 3",
            "bytes tensor_content = 4",
            "repeated float float_val = 5",
            "repeated double double_val = 6",
            "repeated int32 int_val = 7",
            "repeated bytes string_val = 8",
            "repeated float scomplex_val = 9",
            "repeated int64 int64_val = 10",
            "repeated bool bool_val = 11",
            "repeated double dcomplex_val = 12",
            "repeated int32 half_val = 13",
            "repeated uint32 uint32_val = 16",
            "repeated uint64 uint64_val = 17",
            "bytes float8_val = 18",
        ],
        "TensorShapeProto": ["repeated Dim dim = 2", "bool unknown_rank = 3"],
        "Dim": ["int64 size = 1", "string name = 2"],
    },
)["TensorProto"]


class _List(NamedTuple):
    """The field that lists a type's values, and the dtype of its elements."""

    field: str
    dtype: str


_FLOAT8_LIST = _List("float8_val", "u1")
_VALUE_FIELDS = {
    "float32": _List("float_val", "f4"),
    "float64": _List("double_val", "f8"),
    "int64": _List("int64_val", "i8"),
    **dict.fromkeys(["int32", "int16", "int8", "uint16", "uint8"], _List("int_val", "i4")),
    "uint32": _List("uint32_val", "u4"),
    "uint64": _List("uint64_val", "u8"),
    "bool": _List("bool_val", "?"),
    "complex64": _List("scomplex_val", "f4"),  # real and imaginary parts in turn
    "complex128": _List("dcomplex_val", "f8"),
    **dict.fromkeys(["float16", "bfloat16"], _List("half_val", "i4")),  # bits, as for float8
    STRING.name: _List("string_val", "O"),
}

_DTYPE_TAG, _SHAPE_TAG, _VERSION_TAG, _CONTENT_TAG = 0x08, 0x12, 0x18, 0x22
_MAX_MESSAGE = 2**31 - 1  # protobuf's
_MAX_RANK = 254  # TensorFlow's
