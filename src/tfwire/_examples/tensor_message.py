"""TensorProto messages: their layout, and the values in them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tfwire._examples.coerce import byte_strings
from tfwire._examples.dtypes import (
    STRING,
    data_type_of,
    dtype_of,
    from_wire,
    is_string,
    to_wire,
    type_name,
    wire_dtype,
)
from tfwire._examples.protobuf import as_bytes, message_classes, parse_message
from tfwire._spans import bytes_of
from tfwire.errors import ParseError

Array = np.ndarray[Any, Any]
Dtype = np.dtype[Any]

# tensor.proto without resources and variants; the type is an open enumeration.
_CLASSES = message_classes(
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
)
_TensorProto = _CLASSES["TensorProto"]


class _List(NamedTuple):
    """The field in which a type's values are listed, and the dtype of its elements."""

    field: str
    dtype: str


_FLOAT8_LIST = _List("float8_val", "u1")
_LISTS = {
    "float32": _List("float_val", "f4"),
    "float64": _List("double_val", "f8"),
    "int64": _List("int64_val", "i8"),
    "int32": _List("int_val", "i4"),
    "int16": _List("int_val", "i4"),
    "int8": _List("int_val", "i4"),
    "uint16": _List("int_val", "i4"),
    "uint8": _List("int_val", "i4"),
    "uint32": _List("uint32_val", "u4"),
    "uint64": _List("uint64_val", "u8"),
    "bool": _List("bool_val", "?"),
    "complex64": _List("scomplex_val", "f4"),  # real and imaginary parts in turn
    "complex128": _List("dcomplex_val", "f8"),
    "float16": _List("half_val", "i4"),  # bits, as for bfloat16 and float8
    "bfloat16": _List("half_val", "i4"),
    STRING.name: _List("string_val", "O"),
}

_DTYPE_TAG = 0x08
_SHAPE_TAG = 0x12
_VERSION_TAG = 0x18
_CONTENT_TAG = 0x22
_MAX_MESSAGE = 2**31 - 1  # of protobuf
_MAX_RANK = 254  # of TensorFlow


# ---- Writing ------------------------------------------------------------------------------------


def serialize(array: Array) -> bytes:
    """The message of an array. Content is appended by hand, so that it is copied only once."""
    proto = _TensorProto(dtype=data_type_of(array.dtype))
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    if is_string(array.dtype):
        proto.string_val.extend(byte_strings(array.reshape(-1)))
    head: bytes = proto.SerializeToString()
    if is_string(array.dtype) or array.size == 0:
        return head
    content_head = bytes([_CONTENT_TAG]) + _varint(array.nbytes)
    if len(head) + len(content_head) + array.nbytes > _MAX_MESSAGE:
        raise ValueError(f"a tensor of {array.nbytes} bytes: protobuf messages end at 2 GiB")
    return b"".join([head, content_head, to_wire(array).data])


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# ---- Reading: the message -----------------------------------------------------------------------


def read(serialized: Any) -> tuple[Any, Any]:
    """The message and its content; where content ends the message it is a view of the input."""
    data = memoryview(bytes_of(as_bytes(serialized), "a serialized tensor")).cast("B")
    tag, content = _content_position(data)
    proto = parse_message(_TensorProto, data[:tag])
    return proto, proto.tensor_content if tag == len(data) else data[content:]


def _content_position(data: memoryview) -> tuple[int, int]:
    """Where the tag of the content is, and where the content begins, if it ends the message.

    Steps over the fields that writers put in front of the content. Whatever else there is,
    protobuf itself reads: then both positions are the end of the message.
    """
    end = len(data)
    position = 0
    for _ in range(4):
        if position >= end:
            break
        tag = position
        value, position = _read_varint(data, position + 1)
        if data[tag] == _CONTENT_TAG:
            return (tag, position) if value == end - position else (end, end)
        if data[tag] == _SHAPE_TAG:
            position += value
        elif data[tag] not in (_DTYPE_TAG, _VERSION_TAG):
            break
    return end, end


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """A varint's value and the position behind it; a value beyond the data where there is none."""
    value = 0
    for i, byte in enumerate(data[position : position + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, position + i + 1
    return len(data) + 1, len(data)


def check_type(proto: Any, expected: Dtype) -> None:
    """Raises ParseError where the tensor is of another type."""
    if proto.dtype == data_type_of(expected):
        return
    dtype = dtype_of(proto.dtype)
    found = f"DataType {proto.dtype}" if dtype is None else type_name(dtype)
    raise ParseError(
        f"Type mismatch between parsed tensor ({found}) and dtype ({type_name(expected)})",
        reason="kind",
        expected=type_name(expected),
        found=found,
    )


def shape_of(proto: Any) -> tuple[int, ...]:
    """The shape; ParseError where the message has none that TensorFlow would take."""
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


# ---- Reading: the values ------------------------------------------------------------------------


def numeric_content(content: Any, dtype: Dtype, count: int, what: str) -> Array:
    """count numbers from the memory of a tensor; what describes the tensor in errors."""
    if count * dtype.itemsize != len(content):
        raise _count_error(what, "bytes", count * dtype.itemsize, len(content))
    stored = np.frombuffer(content, wire_dtype(dtype))
    if dtype == np.bool_ and stored.view(np.uint8).max() > 1:
        raise ParseError(f"{what} holds bytes other than 0 and 1", reason="malformed")
    return from_wire(stored.copy(), dtype)


def string_content(content: Any, count: int, what: str) -> Array:
    """count strings from their content form: all lengths as varints, then all bytes."""
    data = memoryview(content)
    if count > len(data):  # a length takes a byte at least
        raise _count_error(what, "strings", count, len(data))
    lengths = []
    position = 0
    for _ in range(count):
        length, position = _read_varint(data, position)
        lengths.append(length)
    if position + sum(lengths) != len(data):
        raise ParseError(f"{what}: its content is not {count} strings", reason="malformed")
    values = np.empty(count, object)
    for i, length in enumerate(lengths):
        values[i] = bytes(data[position : position + length])
        position += length
    return values


def listed_values(proto: Any, dtype: Dtype, count: int, what: str, max_fill: int) -> Array:
    """count values from the list that belongs to the type, filled up to at most max_fill bytes."""
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
    """The values of the list that belongs to a type, as many as there are."""
    field = _LISTS.get(dtype.name, _FLOAT8_LIST)
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
    """Values in the list of another type are an error, not values to be left out."""
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
