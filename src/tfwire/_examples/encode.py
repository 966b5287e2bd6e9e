"""Examples and SequenceExamples from Python values: rows, columns, single records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, overload

from tfwire._arguments import boolean, choice
from tfwire._examples.encoder import (
    FRAME_ROOM,
    STRING_ROOM,
    Block,
    encode_blocks,
    encode_whole,
)
from tfwire._examples.rows import RowEncoder, encode_row
from tfwire._examples.table import columns_of_mapping, columns_of_rows, lists_of_mapping
from tfwire.columns import BytesColumn

__all__ = [
    "FramedRows",
    "encode_columns",
    "encode_example",
    "encode_examples",
    "encode_framed",
    "encode_sequence_example",
]

Features = Mapping[str, Any] | Mapping[bytes, Any]


def encode_example(row: Features, *, sort_keys: bool = True) -> bytes:
    """Encodes one record as a serialized ``tf.train.Example``.

    bool and ints become an int64_list, floats (and ints among floats) a float_list, str and bytes
    a bytes_list; arrays and nested lists are flattened row by row; ``[]`` becomes a Feature
    without a kind, an empty array an empty list of its kind. Feature messages, objects with a
    ``numpy()`` method and whatever numpy takes as an array are accepted too.

    Args:
        row: A mapping of feature names (str, or bytes for names that are no UTF-8) to values.
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
    return encode_row(row, sort_keys is True or boolean("sort_keys", sort_keys))


def encode_examples(rows: Iterable[Features], *, sort_keys: bool = True) -> list[bytes]:
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
        >>> [len(message) for message in encode_examples([{"a": 1}, {"a": [1, 2], "b": "x"}])]
        [14, 27]
    """
    if isinstance(rows, Mapping):
        raise TypeError(
            "rows must be an iterable of mappings, found one mapping; encode_columns takes "
            "columns, encode_example one row"
        )
    if not isinstance(rows, Iterable):
        raise TypeError(f"rows must be an iterable of mappings, found {type(rows).__name__}")
    sort_keys = boolean("sort_keys", sort_keys)
    return _strings(RowEncoder(STRING_ROOM, sort_keys).encode_all(rows))


@overload
def encode_columns(
    columns: Features, *, sort_keys: bool = True, bytes_as: Literal["object"] = "object"
) -> list[bytes]: ...


@overload
def encode_columns(
    columns: Features, *, sort_keys: bool = True, bytes_as: Literal["column"]
) -> BytesColumn: ...


def encode_columns(
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
        >>> [len(record) for record in encode_columns({"i": [1, 2], "s": [["a"], ["b", "c"]]})]
        [26, 29]
    """
    choice("bytes_as", bytes_as, ("object", "column"))
    sort_keys = boolean("sort_keys", sort_keys)
    found, num_records = columns_of_mapping(columns, sort_keys)
    if bytes_as == "column":
        return BytesColumn(*encode_whole(found, num_records))
    return _strings(encode_blocks(found, None, num_records, STRING_ROOM))


def encode_framed(columns: Features, *, sort_keys: bool = True) -> Iterator[Block]:
    """Encodes columns as the bytes of a TFRecord file, some hundred KiB at a time.

    Every block is valid until the next one is asked for.

    Raises:
        TypeError, ValueError: As encode_columns.
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
        >>> message = encode_sequence_example({"n": 2}, {"words": [[1, 2], [3]]})
        >>> tfw.decode_sequence_example(message)
        ({'n': array([2])}, {'words': [array([1, 2]), array([3])]})
    """
    sort_keys = boolean("sort_keys", sort_keys)
    columns = columns_of_rows([context or {}], sort_keys)
    lists = lists_of_mapping(feature_lists or {}, sort_keys)
    return _strings(encode_blocks(columns, lists, 1, STRING_ROOM))[0]


def _strings(blocks: Iterator[Block]) -> list[bytes]:
    """The records of all blocks as bytes objects."""
    records: list[bytes] = []
    for block in blocks:
        records += block.strings()
    return records
