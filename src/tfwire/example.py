"""tf.train.Example and SequenceExample messages from Python values, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, overload

import numpy as np

from tfwire._core import lib
from tfwire._examples.decoder import decode_message, decode_messages
from tfwire._examples.encoder import (
    FRAME_ROOM,
    STRING_ROOM,
    Block,
    encode_blocks,
    encode_whole,
)
from tfwire._examples.normalize import FLOAT, INT64, NONE, as_float32, as_int64, cell_of
from tfwire._examples.rows import RowEncoder, encode_row
from tfwire._examples.table import columns_of_mapping, columns_of_rows, lists_of_mapping
from tfwire._spans import bytes_of
from tfwire.columns import BytesColumn

__all__ = [
    "FramedRows",
    "bytes_feature",
    "decode_example",
    "decode_examples",
    "decode_sequence_example",
    "encode_example",
    "encode_examples",
    "encode_framed",
    "encode_rows",
    "encode_sequence_example",
    "float_feature",
    "int64_feature",
]

# The values of a decoded feature: int64 or float32 of rank 1, or the strings of a bytes_list.
Values = np.ndarray[Any, Any] | list[bytes]

Features = Mapping[str, Any] | Mapping[bytes, Any]


def encode_example(mapping: Features, *, sort_keys: bool = True) -> bytes:
    """Encodes one record as a serialized ``tf.train.Example``.

    bool and ints become an int64_list, floats (and ints among floats) a float_list, str and bytes
    a bytes_list; arrays and nested lists are flattened row by row; ``[]`` becomes a Feature
    without a kind, an empty array an empty list of its kind. Feature messages, objects with a
    ``numpy()`` method and whatever numpy takes as an array are accepted too.

    Args:
        mapping: Feature names (str, or bytes for names that are no UTF-8) to values.
        sort_keys: Write features in the order of their names' bytes, so that equal mappings give
            equal messages; False keeps the order of the mapping.

    Returns:
        The serialized message, numbers packed.

    Raises:
        TypeError: A value of a type that no feature holds (None, complex, datetime, dict, ...).
        ValueError: An integer outside of int64, nested lists that are ragged.

    Example:
        >>> encode_example({"label": 3})
        b'\\n\\x10\\n\\x0e\\n\\x05label\\x12\\x05\\x1a\\x03\\n\\x01\\x03'
    """
    return encode_row(mapping, sort_keys)


def encode_rows(rows: Iterable[Features], *, sort_keys: bool = True) -> list[bytes]:
    """Encodes many records, each a mapping; they may differ in keys, kinds and lengths.

    Equal to ``[encode_example(row) for row in rows]`` and much faster.

    Args:
        rows: An iterable of mappings, as encode_example takes them.
        sort_keys: As for encode_example.

    Returns:
        A serialized ``tf.train.Example`` per row.

    Raises:
        TypeError, ValueError: As encode_example.

    Example:
        >>> [len(message) for message in encode_rows([{"a": 1}, {"a": [1, 2], "b": "x"}])]
        [14, 27]
    """
    return _strings(RowEncoder(STRING_ROOM, sort_keys).encode_all(rows))


@overload
def encode_examples(
    columns: Features, *, sort_keys: bool = True, bytes_as: Literal["object"] = "object"
) -> list[bytes]: ...


@overload
def encode_examples(
    columns: Features, *, sort_keys: bool = True, bytes_as: Literal["column"]
) -> BytesColumn: ...


def encode_examples(
    columns: Features, *, sort_keys: bool = True, bytes_as: str = "object"
) -> list[bytes] | BytesColumn:
    """Encodes columns as one serialized ``tf.train.Example`` per record.

    Args:
        columns: Names to columns whose first axis counts the records: an array of rank 1 (one
            value per record) or higher (flattened per record), a list of scalars, a list of
            lists or arrays of any length, a BytesColumn, a RaggedTensor. A column has one kind:
            ints are written as floats where floats stand in the same column.
        sort_keys: Write features in the order of their names.
        bytes_as: "object" for a list of bytes; "column" for a BytesColumn, which takes no Python
            object per record.

    Returns:
        One message per record.

    Raises:
        TypeError, ValueError: As encode_example; also for columns that differ in length.

    Example:
        >>> [len(record) for record in encode_examples({"i": [1, 2], "s": [["a"], ["b", "c"]]})]
        [26, 29]
    """
    if bytes_as not in ("object", "column"):
        raise ValueError(f"bytes_as must be 'object' or 'column', found {bytes_as!r}")
    found, num_records = columns_of_mapping(columns, sort_keys)
    if bytes_as == "column":
        return BytesColumn(*encode_whole(found, num_records))
    return _strings(encode_blocks(found, None, num_records, STRING_ROOM))


def encode_framed(columns: Features, *, sort_keys: bool = True) -> Iterator[Block]:
    """Encodes columns as the bytes of a TFRecord file, some hundred KiB at a time.

    Every block is valid until the next one is asked for.

    Raises:
        TypeError, ValueError: As encode_examples.
    """
    found, num_records = columns_of_mapping(columns, sort_keys)
    return _framed(encode_blocks(found, None, num_records, FRAME_ROOM))


class FramedRows:
    """Encodes rows as the bytes of a TFRecord file; one serves any number of iterables."""

    def __init__(self, *, sort_keys: bool = True) -> None:
        self._encoder = RowEncoder(FRAME_ROOM, sort_keys, numbered=False)

    def encode(self, rows: Iterable[Features]) -> Iterator[Block]:
        """Blocks of some hundred KiB; every one is valid until the next is asked for.

        Raises:
            TypeError, ValueError: As encode_example, after the blocks of the rows before.
        """
        return _framed(self._encoder.encode_all(rows))


def _framed(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        block.frame()
        yield block


def encode_sequence_example(
    context: Features | None,
    feature_lists: Features | None,
    *,
    sort_keys: bool = True,
) -> bytes:
    """Encodes one record as a serialized ``tf.train.SequenceExample``.

    Args:
        context: Names to values, as for encode_example; None for none.
        feature_lists: Names to steps: a list with one entry per step (scalars, lists, arrays,
            Feature messages), an array whose first axis counts the steps, or a RaggedTensor.
        sort_keys: Write features in the order of their names.

    Raises:
        TypeError, ValueError: As encode_example.

    Example:
        >>> decode_sequence_example(encode_sequence_example({"n": 2}, {"words": [[1, 2], [3]]}))
        ({'n': array([2])}, {'words': [array([1, 2]), array([3])]})
    """
    columns = columns_of_rows([context or {}], sort_keys)
    lists = lists_of_mapping(feature_lists or {}, sort_keys)
    return _strings(encode_blocks(columns, lists, 1, STRING_ROOM))[0]


def _strings(blocks: Iterator[Block]) -> list[bytes]:
    """The records of all blocks as bytes objects."""
    records: list[bytes] = []
    for block in blocks:
        records += block.strings()
    return records


# ---- Decoding ---------------------------------------------------------------------------------


def decode_example(serialized: Any) -> dict[str, Values]:
    """Decodes one serialized ``tf.train.Example`` without a specification.

    Args:
        serialized: A bytes-like object, or an object whose ``numpy()`` is one.

    Returns:
        Feature names to values: an int64 or float32 array of rank 1, or a list of bytes; an empty
        list for a Feature without a kind. Names that are no UTF-8 hold their bytes as
        surrogateescape does.

    Raises:
        ParseError: Not a well-formed message.
        TypeError: ``serialized`` is not bytes-like.

    Example:
        >>> decode_example(encode_example({"label": 3, "name": "goat"}))
        {'label': array([3]), 'name': [b'goat']}
    """
    decoded: dict[str, Values] = decode_message(bytes_of(serialized), 0)
    return decoded


def decode_examples(serialized: Any) -> list[dict[str, Values]]:
    """Decodes many serialized Examples; their arrays are slices of arrays common to many.

    Args:
        serialized: A list or array of bytes-like objects, or a BytesColumn.

    Returns:
        One dict per message, as decode_example gives it.

    Raises:
        ParseError: A message is not well-formed; ``record_index`` says which.
        TypeError: An item is not bytes-like.
    """
    return decode_messages(serialized, 0)


def decode_sequence_example(
    serialized: Any,
) -> tuple[dict[str, Values], dict[str, list[Values]]]:
    """Decodes one serialized ``tf.train.SequenceExample`` without a specification.

    Args:
        serialized: A bytes-like object, an object with ``numpy()``, or a message.

    Returns:
        The context as decode_example gives it, and the feature lists: names to one entry of
        values per step.

    Raises:
        ParseError: Not a well-formed message.
        TypeError: ``serialized`` is not bytes-like.

    Example:
        >>> decode_sequence_example(encode_sequence_example({"n": 2}, {"word": ["a", "b"]}))
        ({'n': array([2])}, {'word': [[b'a'], [b'b']]})
    """
    decoded: tuple[dict[str, Values], dict[str, list[Values]]]
    decoded = decode_message(bytes_of(serialized), lib.TFW_SEQUENCE)
    return decoded


# ---- Features one by one ----------------------------------------------------------------------


def bytes_feature(value: Any) -> Any:
    r"""A ``tf.train.Feature`` holding a bytes_list.

    Args:
        value: bytes, bytearray, memoryview, str (as UTF-8), an object whose ``numpy()`` is one of
            them, or a list or object array of them. An array of numbers becomes one string, its
            bytes in row-major order (``tobytes()``), as the tutorials store images.

    Returns:
        A Feature with one string, or with one per entry of a list.

    Raises:
        TypeError: A value that is no string.

    Example:
        >>> bytes_feature("cat").SerializeToString()
        b'\n\x05\n\x03cat'
    """
    from tfwire.train import BytesList, Feature

    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OSU":
        value = value.tobytes()
    cell = cell_of(value, None)
    if cell.kind in (INT64, FLOAT):
        helper = "int64_feature" if cell.kind == INT64 else "float_feature"
        raise TypeError(f"bytes_feature takes strings, found {_found(cell.values)}; use {helper}")
    strings = [v.encode() if isinstance(v, str) else bytes(v) for v in cell.values]
    return Feature(bytes_list=BytesList(value=strings))


def float_feature(value: Any) -> Any:
    r"""A ``tf.train.Feature`` holding a float_list.

    Args:
        value: A float or int of Python or numpy, or a list or array of them (flattened row by
            row); rounded to float32, beyond its range to infinity.

    Returns:
        A Feature with one number, or with all of a list or array.

    Raises:
        TypeError: A value that is no number.

    Example:
        >>> float_feature(2.0).SerializeToString()
        b'\x12\x06\n\x04\x00\x00\x00@'
    """
    from tfwire.train import Feature, FloatList

    cell = cell_of(value, None)
    if cell.kind not in (INT64, FLOAT, NONE):
        raise TypeError(
            f"float_feature takes numbers, found {_found(cell.values)}; use bytes_feature"
        )
    return Feature(float_list=FloatList(value=as_float32(cell.values, None).tolist()))


def int64_feature(value: Any) -> Any:
    r"""A ``tf.train.Feature`` holding an int64_list.

    Args:
        value: A bool or int of Python or numpy (an IntEnum too), or a list or array of them
            (flattened row by row).

    Returns:
        A Feature with one integer, or with all of a list or array.

    Raises:
        TypeError: A value that is no integer, as 1.0.
        ValueError: An integer outside of int64.

    Example:
        >>> int64_feature(True).SerializeToString()
        b'\x1a\x03\n\x01\x01'
    """
    from tfwire.train import Feature, Int64List

    cell = cell_of(value, None)
    if cell.kind not in (INT64, NONE):
        helper = "float_feature" if cell.kind == FLOAT else "bytes_feature"
        raise TypeError(f"int64_feature takes integers, found {_found(cell.values)}; use {helper}")
    return Feature(int64_list=Int64List(value=as_int64(cell.values, None).tolist()))


def _found(values: Any) -> str:
    return type(values[0]).__name__ if len(values) else f"an array of {values.dtype}"
