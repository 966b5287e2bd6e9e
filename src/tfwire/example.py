"""tf.train.Example and SequenceExample messages from Python values, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tfwire._core import check, ffi, lib, new_error
from tfwire._encoder import Block, encode_blocks
from tfwire._spans import strings_of
from tfwire._table import columns_of_mapping, columns_of_rows, lists_of_mapping

__all__ = [
    "encode_example",
    "encode_examples",
    "encode_framed",
    "encode_rows",
    "encode_sequence_example",
]

Features = Mapping[str, Any] | Mapping[bytes, Any]


def encode_example(mapping: Features, *, sort_keys: bool = True) -> bytes:
    """Encodes one record as a serialized ``tf.train.Example``.

    bool and ints become an int64_list, floats (and ints among floats) a float_list, str and bytes
    a bytes_list; arrays and nested lists are flattened row by row; ``[]`` becomes a Feature
    without a kind, an empty array an empty list of its kind. Feature messages, objects with a
    ``numpy()`` method and whatever numpy takes as an array are accepted too.

    Args:
        mapping: Feature names (str, or bytes for names that are no UTF-8) to values.
        sort_keys: Write features in the order of their names, so that equal mappings give equal
            bytes; False keeps the order of the mapping.

    Returns:
        The message, as protobuf's deterministic serialization writes it.

    Raises:
        TypeError: A value of a type that no feature holds (None, complex, datetime, dict, ...).
        ValueError: An integer outside of int64, nested lists that are ragged.

    Example:
        >>> encode_example({"label": 3, "name": "goat"})
        b'\\n\\'\\n\\x0e\\n\\x05label\\x12\\x05\\x1a\\x03\\n\\x01\\x03\\n\\x15...'
    """
    return encode_rows([mapping], sort_keys=sort_keys)[0]


def encode_rows(rows: Sequence[Features], *, sort_keys: bool = True) -> list[bytes]:
    """Encodes many records, each a mapping; they may differ in keys, kinds and lengths.

    Equal to ``[encode_example(row) for row in rows]`` and much faster.

    Raises:
        TypeError, ValueError: As encode_example.
    """
    rows = rows if isinstance(rows, (list, tuple)) else list(rows)
    if not sort_keys and len(rows) > 1:
        return [encode_example(row, sort_keys=False) for row in rows]
    return _strings(encode_blocks(columns_of_rows(rows, sort_keys), None, len(rows)))


def encode_examples(columns: Features, *, sort_keys: bool = True) -> list[bytes]:
    """Encodes columns as one serialized ``tf.train.Example`` per record.

    Args:
        columns: Names to columns whose first axis counts the records: an array of rank 1 (one
            value per record) or higher (flattened per record), a list of scalars, a list of
            lists or arrays of any length, a BytesColumn, a RaggedTensor. A column has one kind:
            ints are written as floats where floats stand in the same column.
        sort_keys: Write features in the order of their names.

    Returns:
        One message per record.

    Raises:
        TypeError, ValueError: As encode_example; also for columns that differ in length.
    """
    found, num_records = columns_of_mapping(columns, sort_keys)
    return _strings(encode_blocks(found, None, num_records))


def encode_framed(columns: Features, *, sort_keys: bool = True) -> Iterator[memoryview]:
    """Encodes columns as the bytes of a TFRecord file, about 1 MiB at a time.

    Every block is valid until the next one is asked for.

    Raises:
        TypeError, ValueError: As encode_examples.
    """
    found, num_records = columns_of_mapping(columns, sort_keys)
    error = new_error()
    for block in encode_blocks(found, None, num_records, lib.TFW_HEADER_SIZE, lib.TFW_FOOTER_SIZE):
        data = ffi.from_buffer("uint8_t[]", block.buffer)
        spans = ffi.from_buffer("tfw_span[]", block.spans)
        check(lib.tfw_frame(data, block.length, spans, len(block.spans), error), error)
        yield block.buffer.data[: block.length]


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
        >>> encode_sequence_example({"length": 2}, {"words": [[1, 2], [3]]})
        b'\\n\\x15...'
    """
    columns = columns_of_rows([context or {}], sort_keys)
    lists = lists_of_mapping(feature_lists or {}, sort_keys)
    return _strings(encode_blocks(columns, lists, 1))[0]


def _strings(blocks: Iterator[Block]) -> list[bytes]:
    """The records of all blocks as bytes objects."""
    records: list[bytes] = []
    for block in blocks:
        records += strings_of(block.buffer, block.spans)
    return records
