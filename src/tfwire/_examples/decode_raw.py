"""decode_raw: byte strings as the numbers that their memory holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._base.aliases import Array, BytesLike, DTypeLike, Strings
from tfwire._base.arguments import boolean, integer
from tfwire._base.strings import checked_column
from tfwire._examples.column_types import BytesColumn
from tfwire._examples.dtypes import STRING, from_wire, to_numpy_dtype, wire_dtype
from tfwire._examples.protobuf import byte_string, byte_strings

Dtype = np.dtype[Any]


def decode_raw(
    input_bytes: BytesLike | str | Strings | BytesColumn,
    out_type: DTypeLike,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Array:
    """Byte strings reinterpreted as vectors of numbers.

    Args:
        input_bytes: A byte string (str as UTF-8), or an array, nested lists or a BytesColumn of
            shape S of them, all of one length unless ``fixed_length`` is given.
        out_type: A type of numbers or bool: a numpy dtype, a name, or a dtype of tfwire or
            TensorFlow.
        little_endian: The byte order of the input.
        fixed_length: Bytes to use of each string, a positive multiple of the type's size. Longer
            strings are cut, shorter ones padded with zero bytes.
        name: Ignored; TensorFlow has it.

    Returns:
        A writable array of shape S + (length / size of the type,). The bytes are copied once.

    Raises:
        ValueError: A length is not a multiple of the type's size, or lengths differ.
        TypeError: The type is string, or the input holds anything but byte strings.

    Example:
        >>> decode_raw([b"\\x01\\x00\\x02\\x00", b"\\x03\\x00\\x04\\x00"], "uint16")
        array([[1, 2],
               [3, 4]], dtype=uint16)
    """
    dtype = to_numpy_dtype(out_type)
    little_endian = boolean("little_endian", little_endian)
    if fixed_length is not None:
        fixed_length = integer("fixed_length", fixed_length)
    if dtype == STRING:
        raise TypeError("decode_raw makes numbers of byte strings; string is not a type of numbers")
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
    """All strings in one new buffer, the length of each, and their shape."""
    if hasattr(input_bytes, "offsets") and fixed_length is None:  # a BytesColumn: joined already
        data, offsets = checked_column(input_bytes)
        width = _common_length(np.diff(offsets), dtype, data[offsets[0] :][:64].tobytes())
        return bytearray(data[offsets[0] : offsets[-1]].data), width, input_bytes.shape
    rows, shape = _as_rows(input_bytes)
    if fixed_length is not None:
        rows = _fixed_rows(rows, fixed_length, dtype)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    width = _common_length(lengths, dtype, rows[0]) if rows else fixed_length or 0
    return bytearray().join(rows), width, shape


def _as_rows(input_bytes: Any) -> tuple[list[bytes], tuple[int, ...]]:
    """The byte strings in row-major order, and their shape."""
    if hasattr(input_bytes, "numpy"):
        input_bytes = input_bytes.numpy()
    if isinstance(input_bytes, (str, bytes, bytearray, memoryview)):
        return [byte_string(input_bytes)], ()
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
    try:
        return [row[:length].ljust(length, b"\0") for row in rows]
    except OverflowError:
        raise ValueError(f"fixed_length of {length} is more than any string holds") from None


def _common_length(lengths: Array, dtype: Dtype, first: bytes) -> int:
    """The length that all strings have; the first one is named if it is a serialized tensor."""
    width = int(lengths[0]) if len(lengths) else 0
    # The type of its elements, then its shape: as serialize_tensor writes them.
    tensor = first[:1] == b"\x08" and first[2:3] == b"\x12"
    hint = "; is it a serialized tensor? parse_tensor reads it" if tensor else ""
    if width % dtype.itemsize:
        raise ValueError(
            f"decode_raw found a string of {width} bytes, which is not a multiple of "
            f"{dtype.itemsize}, the size of {dtype.name}{hint}"
        )
    if (lengths != width).any():
        i = int((lengths != width).argmax())
        raise ValueError(
            f"decode_raw needs strings of one length, found {width} bytes at element 0 and "
            f"{lengths[i]} at element {i}; fixed_length cuts and pads{hint}"
        )
    return width
