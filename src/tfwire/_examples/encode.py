"""Rows, columns and single values to serialized Examples, records of files, and Features."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from tfwire._base.aliases import (
    BytesAs,
    BytesLike,
    FeatureKinds,
    Integer,
    Number,
    Row,
    SupportsArrow,
    SupportsNumpy,
    TableFeatures,
)
from tfwire._base.arguments import boolean, check_type, choice, integer
from tfwire._examples.column_batches import Batches, batches_of_columns
from tfwire._examples.column_types import BytesColumn
from tfwire._examples.dealing_encoder import DealingEncoder, ForEach, dealt_block
from tfwire._examples.encode_rows import RowEncoder, WriterRows as WriterRows, encode_row
from tfwire._examples.encoder_inputs import inputs_from_lists, inputs_from_rows
from tfwire._examples.kinds import Agree, KindMemory
from tfwire._examples.native_encoder import (
    FRAME_ROOM,
    NO_ROOM,
    EncodedBlock,
    encode_blocks,
    encode_whole,
    framed_blocks,
    native_inputs,
    strings_of_blocks,
)
from tfwire._examples.parallel_encoder import ParallelEncoder, are_few
from tfwire._examples.values import (
    FLOAT,
    INT64,
    NONE,
    Array,
    Flat,
    as_float32,
    as_int64,
    flatten_value,
)

if TYPE_CHECKING:
    from tfwire import train


def encode_example(row: Row, *, sort_keys: bool = True) -> bytes:
    """Encodes one record as a serialized ``tf.train.Example``.

    bool and ints become an int64_list, floats (and ints among floats) a float_list, str and bytes
    a bytes_list. Arrays are flattened row by row. ``[]`` becomes a Feature without a kind, an empty
    array an empty list of its kind. A value that is missing (None, pandas' NA and NaT, a null of
    Arrow) is a feature that the record does not have. Feature messages, objects with a ``numpy()``
    method, scalars and arrays of Arrow, and anything else that numpy takes as an array are accepted
    too.

    Args:
        row: A mapping of feature names (str, or bytes for names that are not UTF-8) to values.
        sort_keys: Write features in the order of their names' bytes, so that equal mappings give
            equal messages. False keeps the order of the mapping.

    Returns:
        The serialized message, numbers packed.

    Raises:
        TypeError: A value of a type that no feature holds (complex, datetime, dict, ...), or a
            value that is missing inside a list.
        ValueError: An integer outside of int64, or lists in lists, whose lengths would be lost:
            see ``features`` of ``encode_columns``, and ``encode_sequence_example``.

    Example:
        >>> encode_example({"label": 3})
        b'\\n\\x10\\n\\x0e\\n\\x05label\\x12\\x05\\x1a\\x03\\n\\x01\\x03'
    """
    return encode_row(row, sort_keys is True or boolean("sort_keys", sort_keys))


def encode_examples(
    rows: Iterable[Row], *, sort_keys: bool = True, kinds: FeatureKinds | None = None
) -> list[bytes]:
    """Encodes many records. They may differ in keys and lengths.

    As ``[encode_example(row) for row in rows]``, and much faster. Readers take one kind of a
    feature (int64, float32 or string), so the values of a feature must have the same kind in all
    rows. Its first value decides, unless ``kinds`` does. ``[]`` has no kind; a NaN among strings is
    a value that is missing.

    Args:
        rows: An iterable of mappings, as encode_example takes them.
        sort_keys: As for encode_example.
        kinds: Kinds by the names of features: of "float32", ints are written as floats; "any"
            takes values of several kinds as they are. ``kinds="any"`` says that of all features.

    Returns:
        A serialized ``tf.train.Example`` per row.

    Raises:
        TypeError, ValueError: As encode_example. TypeError: A value of another kind than those
            before; the message names both records. Beyond 4,096 names, kinds may be forgotten.

    Example:
        >>> [len(message) for message in encode_examples([{"a": 1}, {"a": [1, 2], "b": "x"}])]
        [14, 27]
    """
    if isinstance(rows, Mapping):
        raise TypeError(
            "rows must be an iterable of mappings, found one mapping; encode_columns takes "
            "columns, encode_example one row"
        )
    check_type("rows", rows, Iterable, "an iterable of mappings")
    sort_keys = boolean("sort_keys", sort_keys)
    memory = KindMemory(kinds)
    try:
        return strings_of_blocks(RowEncoder(NO_ROOM, sort_keys, memory).encode_all(rows))
    finally:
        memory.close()


@overload
def encode_columns(
    columns: Row | SupportsArrow,
    *,
    features: TableFeatures | None = None,
    sort_keys: bool = True,
    bytes_as: Literal["object"] = "object",
    num_threads: int = 1,
) -> list[bytes]: ...


@overload
def encode_columns(
    columns: Row | SupportsArrow,
    *,
    features: TableFeatures | None = None,
    sort_keys: bool = True,
    bytes_as: Literal["column"],
    num_threads: int = 1,
) -> BytesColumn: ...


def encode_columns(
    columns: Row | SupportsArrow,
    *,
    features: TableFeatures | None = None,
    sort_keys: bool = True,
    bytes_as: BytesAs = "object",
    num_threads: int = 1,
) -> list[bytes] | BytesColumn:
    """Encodes columns, or an Arrow table, as one serialized ``tf.train.Example`` per record.

    Args:
        columns: Names to columns whose first axis counts the records: an array of rank 1 (one
            value per record) or higher (flattened per record), a list of scalars, a list of
            lists or arrays of any length, a column of pandas, polars or pyarrow, a BytesColumn, or
            a RaggedTensor. A column has one kind: ints among floats are written as floats. Or a
            table: a DataFrame of pandas, or Arrow data (an object with ``__arrow_c_stream__`` or
            ``__arrow_c_array__``: polars, pyarrow, DuckDB) of numbers, bools, strings,
            dictionaries, and lists of these. What is missing (None, null, NA, NaT, masked) is an
            absent feature; NaN is a value among numbers.
        features: The specification that reads the records. Columns that it names may have lists in
            lists: those of a RaggedFeature are written with its partitions, and with feature lists
            (an InferredSchema, or a pair of specifications, of the context and of the lists)
            records are SequenceExamples. Other columns are written as without it. None: what the
            metadata of a table says, which ``tfwire.arrow`` writes.
        sort_keys: Write features in the order of their names' bytes.
        bytes_as: "object" for a list of bytes; "column" for a BytesColumn, which needs no Python
            object per record.
        num_threads: How many threads encode side by side, the caller's included. Only the speed
            depends on it. They start where there are 2 MiB to encode. Python makes objects one by
            one, and reads lists of them so, whatever the number of threads. SequenceExamples are
            encoded by one.

    Returns:
        One message per record.

    Raises:
        TypeError: As encode_example; of a table, also a column of timestamps, decimals or others
            that no feature holds, lists in lists without ``features``, and null in a list.
        ValueError: As encode_example, or the columns differ in length, or two have one name, or
            they are not as ``features`` says; the message names column and record.
        OSError, MemoryError: The stream of a table failed.

    Example:
        >>> [len(record) for record in encode_columns({"i": [1, 2], "s": [["a"], ["b", "c"]]})]
        [26, 29]
    """
    choice("bytes_as", bytes_as, ("object", "column"))
    sort_keys = boolean("sort_keys", sort_keys)
    num_threads = integer("num_threads", num_threads, 1)
    if bytes_as == "column":
        with closing(batches_of_columns(columns, features, sort_keys, _NO_LIMIT)) as batches:
            return _whole(batches, num_threads)
    with closing(_blocks(columns, features, sort_keys, NO_ROOM, num_threads)) as blocks:
        return strings_of_blocks(blocks)


# Bytes of memory that a table's conversions take at a time. What one thread converts should be in
# the cache when it is encoded; of what several threads encode, each needs some blocks.
_TABLE_ROOM = 1 << 20
_PARALLEL_TABLE_ROOM = 1 << 26
_NO_LIMIT = 1 << 62


def _blocks(
    columns: Any,
    features: Any,
    sort_keys: bool,
    room: tuple[int, int],
    num_threads: int,
    agree: Agree | None = None,
) -> Generator[EncodedBlock, None, None]:
    """Encodes columns. A block is valid until the next one is asked for; it is framed if it has a
    tally. Closing this generator ends its threads."""
    table_room = _TABLE_ROOM if num_threads == 1 else _PARALLEL_TABLE_ROOM
    batches = batches_of_columns(columns, features, sort_keys, table_room, agree)
    return _blocks_of(batches, room, ParallelEncoder(num_threads, room), num_threads == 1)


def _blocks_of(
    batches: Batches, room: tuple[int, int], encoder: ParallelEncoder, is_alone: bool
) -> Generator[EncodedBlock, None, None]:
    with closing(encoder), closing(batches):
        for features, num_records in batches:
            if is_alone or are_few(features, num_records):
                yield from encode_blocks(features, num_records, room)
            else:
                with closing(encoder.blocks(features, num_records)) as blocks:
                    yield from blocks


def _whole(batches: Batches, num_threads: int) -> BytesColumn:
    """Encodes batches into one buffer."""
    data: list[Array] = []
    offsets = [np.zeros(1, np.int64)]
    with closing(ParallelEncoder(num_threads, NO_ROOM)) as encoder:
        for features, num_records in batches:
            is_alone = num_threads == 1 or are_few(features, num_records)
            part = (encode_whole if is_alone else encoder.whole)(features, num_records)
            data.append(part[0])
            offsets.append(part[1][1:] + offsets[-1][-1])
    if len(data) == 1:
        return BytesColumn(data[0], part[1])
    return BytesColumn(np.concatenate([np.empty(0, np.uint8), *data]), np.concatenate(offsets))


def encode_sequence_example(
    context: Row | None,
    feature_lists: Row | None,
    *,
    sort_keys: bool = True,
) -> bytes:
    """Encodes one record as a serialized ``tf.train.SequenceExample``.

    Args:
        context: Names to values, as for encode_example; None is an empty context.
        feature_lists: Names to steps: a list with one entry per step (scalars, lists, arrays,
            Feature messages), an array whose first axis counts the steps, or a RaggedTensor.
        sort_keys: Write features in the order of their names' bytes.

    Returns:
        The serialized message, numbers packed.

    Raises:
        TypeError, ValueError: As encode_example.

    Example:
        >>> message = encode_sequence_example({"n": 2}, {"words": [[1, 2], [3]]})
        >>> tfw.decode_sequence_example(message)
        ({'n': array([2])}, {'words': [array([1, 2]), array([3])]})
    """
    sort_keys = boolean("sort_keys", sort_keys)
    features = native_inputs(inputs_from_rows([context or {}], sort_keys))
    lists = native_inputs(inputs_from_lists(feature_lists or {}, sort_keys))
    return strings_of_blocks(encode_blocks(features._replace(lists=lists), 1, NO_ROOM))[0]


# ---- Records of files: what writers need --------------------------------------------------------


def encode_framed(
    columns: Row | SupportsArrow,
    features: TableFeatures | None = None,
    num_threads: int = 1,
    agree: Agree | None = None,
) -> Generator[EncodedBlock, None, None]:
    """Encodes columns as the bytes of a TFRecord file, in blocks of some hundred KiB to a mebibyte.

    A block is valid until the next one is asked for. Closing the generator ends its threads.

    Raises:
        TypeError, ValueError: As encode_columns.
    """
    return framed_blocks(_blocks(columns, features, True, FRAME_ROOM, num_threads, agree))


def encode_framed_apart(
    columns: Row | SupportsArrow,
    features: TableFeatures | None,
    num_threads: int,
    agree: Agree,
    range_bytes: int = 0,
) -> Generator[EncodedBlock, None, None]:
    """As encode_framed, in blocks that stay valid.

    Args:
        columns, features: As for encode_columns.
        agree: As WriterRows.agree gives it.
        num_threads, range_bytes: As for ParallelEncoder.
    """
    batches = batches_of_columns(columns, features, True, _PARALLEL_TABLE_ROOM, agree)
    return _apart(batches, ParallelEncoder(num_threads, FRAME_ROOM, range_bytes))


def _apart(batches: Batches, encoder: ParallelEncoder) -> Generator[EncodedBlock, None, None]:
    with closing(encoder), closing(batches):
        for features, num_records in batches:
            if features.lists is not None:
                for block in framed_blocks(encode_blocks(features, num_records, FRAME_ROOM)):
                    memory = block.memory[: block.length].copy()
                    yield block._replace(memory=memory, spans=block.spans.copy())
                continue
            with closing(encoder.blocks(features, num_records)) as blocks:
                yield from blocks


def encode_dealt(
    columns: Row | SupportsArrow,
    features: TableFeatures | None,
    num_files: int,
    num_threads: int,
    for_each: ForEach,
    agree: Agree,
) -> Generator[list[EncodedBlock | None], None, None]:
    """Encodes columns as the records of several files, which get one each in turn.

    Args:
        columns, features: As for encode_columns.
        num_files, num_threads, for_each: As for DealingEncoder.
        agree: As WriterRows.agree gives it.

    Returns:
        A generator of parts of all files, in blocks that stay valid.
    """
    encoder = DealingEncoder(num_files, num_threads, for_each)
    room = _TABLE_ROOM if num_threads == 1 else _PARALLEL_TABLE_ROOM
    return _dealt(batches_of_columns(columns, features, True, room, agree), encoder, num_files)


def _dealt(
    batches: Batches, encoder: DealingEncoder, num_files: int
) -> Generator[list[EncodedBlock | None], None, None]:
    with closing(batches):
        for features, num_records in batches:
            if features.lists is None:  # nor do others of the table have some
                yield from encoder.deal(chain([(features, num_records)], batches))
                return
            for block in framed_blocks(encode_blocks(features, num_records, FRAME_ROOM)):
                yield dealt_block(block, num_files)


# ---- Features: the helpers of the tutorials -----------------------------------------------------


def bytes_feature(
    value: BytesLike | str | Iterable[BytesLike | str],
) -> train.Feature:
    r"""A ``tf.train.Feature`` holding a bytes_list.

    Args:
        value: bytes, bytearray, memoryview, str (as UTF-8), an object whose ``numpy()`` is one of
            these, or a list or object array of these. An array of numbers becomes one string, its
            bytes in row-major order (``tobytes()``): the tutorials store images so.

    Returns:
        A Feature with one string, or with one per entry of a list.

    Raises:
        TypeError: A value that is not a string.

    Example:
        >>> bytes_feature("cat").SerializeToString()
        b'\n\x05\n\x03cat'
    """
    from tfwire.train import BytesList, Feature

    strings: Any = value
    if hasattr(strings, "numpy"):
        strings = strings.numpy()
    if isinstance(strings, np.ndarray) and strings.dtype.kind not in "OSU":
        strings = strings.tobytes()
    flat = flatten_value(strings, None)
    if flat.kind in (INT64, FLOAT):
        raise _wrong_helper("bytes_feature takes strings", flat)
    return Feature(bytes_list=BytesList(value=flat.values))


def float_feature(
    value: Number | Iterable[Number] | SupportsNumpy,
) -> train.Feature:
    r"""A ``tf.train.Feature`` holding a float_list.

    Args:
        value: A float or int of Python or numpy, a list of them, or an array (flattened row by
            row). Rounded to float32; infinity beyond its range.

    Returns:
        A Feature with one number, or with all of a list or array.

    Raises:
        TypeError: A value that is not a number.

    Example:
        >>> float_feature(2.0).SerializeToString()
        b'\x12\x06\n\x04\x00\x00\x00@'
    """
    from tfwire.train import Feature, FloatList

    flat = flatten_value(value, None)
    if flat.kind not in (INT64, FLOAT, NONE):
        raise _wrong_helper("float_feature takes numbers", flat)
    return Feature(float_list=FloatList(value=as_float32(flat.values, None).tolist()))


def int64_feature(
    value: Integer | Iterable[Integer] | SupportsNumpy,
) -> train.Feature:
    r"""A ``tf.train.Feature`` holding an int64_list.

    Args:
        value: A bool or int of Python or numpy (an IntEnum too), a list of them, or an array
            (flattened row by row).

    Returns:
        A Feature with one integer, or with all of a list or array.

    Raises:
        TypeError: A value that is not an integer, such as 1.0.
        ValueError: An integer outside of int64.

    Example:
        >>> int64_feature(True).SerializeToString()
        b'\x1a\x03\n\x01\x01'
    """
    from tfwire.train import Feature, Int64List

    flat = flatten_value(value, None)
    if flat.kind not in (INT64, NONE):
        raise _wrong_helper("int64_feature takes integers", flat)
    return Feature(int64_list=Int64List(value=as_int64(flat.values, None).tolist()))


def _wrong_helper(expected: str, flat: Flat) -> TypeError:
    values = flat.values
    found = type(values[0]).__name__ if len(values) else f"an array of {values.dtype}"
    helper = {INT64: "int64_feature", FLOAT: "float_feature"}.get(flat.kind, "bytes_feature")
    return TypeError(f"{expected}, found {found}; use {helper}")
