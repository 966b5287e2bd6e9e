"""Tables of Arrow data, of whatever library: the encoder's inputs, batch by batch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any

from tfwire._base.native import ffi
from tfwire._base.text import quoted
from tfwire._examples.arrow_import import ArrowImport
from tfwire._examples.native_encoder import NativeInputs


def batches_of_table(
    table: Any, sort_keys: bool, room: int
) -> Generator[tuple[NativeInputs, int], None, None]:
    """The columns of a table, some records at a time.

    Args:
        table: An object with ``__arrow_c_stream__`` or ``__arrow_c_array__``.
        sort_keys: Order features by their names' bytes.
        room: Bytes of memory that conversions may take at a time, unless one record needs more.

    Returns:
        A generator of inputs, valid until the next ones, and the number of their records. Closing
        it releases the table.

    Raises:
        TypeError: Not a table, a column of a type that no feature holds, or null in a list.
        ValueError: A value outside of int64, two columns of one name, or data that is not as Arrow
            says.
        OSError, MemoryError: As the table's stream says.
    """
    source = ArrowImport(table)
    with source.released_on_error():
        source.read_schema()
        names = source.names
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"two columns are named {quoted(twice.decode(errors='surrogateescape'))}"
            )
    return _batches(source, sort_keys, room)


def _batches(
    source: ArrowImport, sort_keys: bool, room: int
) -> Generator[tuple[NativeInputs, int], None, None]:
    numbers = range(len(source.names))
    order = sorted(numbers, key=source.names.__getitem__) if sort_keys else list(numbers)
    keys = [source.names[column] for column in order]
    inputs = ffi.new("tfw_input[]", len(order))
    with closing(source.batches(room)) as batches:
        for found, num_records, keep in batches:
            for i, column in enumerate(order):
                inputs[i] = found[column]
            yield NativeInputs(keys, inputs, keep), num_records
