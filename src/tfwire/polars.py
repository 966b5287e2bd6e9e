"""TFRecord files as LazyFrames of polars, which reads the columns and rows that a query needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from tfwire._interface.files import either_word
from tfwire._interface.messages import boolean
from tfwire._interface.partitions import open_no_files
from tfwire.arrow import open_reader

try:
    import polars
    from polars.io.plugins import register_io_source
except ImportError as _error:
    raise ImportError(
        "tfwire.polars needs polars 1.40 or newer; pip install 'tfwire[polars]'"
    ) from _error

if TYPE_CHECKING:
    from tfwire.typing import (
        BinaryAs,
        DetectedCompressionType,
        OnCorrupt,
        RemotePath,
        StorageOptions,
        TableFeatures,
    )

__all__ = ["scan_tfrecord"]

_POSITIONS = ("path", "record_index", "offset")

# Bytes of dense numbers in a batch: memory that the allocator has just got back is used again.
# Fresh memory costs a page fault per page, which is more than parsing.
_BATCH_BYTES = 1 << 23


def scan_tfrecord(
    paths: RemotePath | Iterable[RemotePath],
    features: TableFeatures | None = None,
    *,
    batch_size: int = 65536,
    num_threads: int = 1,
    binary_as: BinaryAs = "auto",
    compression_type: DetectedCompressionType = "auto",
    on_corrupt: OnCorrupt = "raise",
    with_positions: bool = False,
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> polars.LazyFrame:
    """Record files as a LazyFrame.

    The files are read when a query is collected, each time from their beginning, and only in part:
    features that the query does not use are not parsed, rows are filtered batch by batch, and
    ``head`` ends the reading. To count the rows, polars asks for the first column alone, or none:
    ``tfwire count`` reads no values.

    Args:
        paths, features, num_threads, binary_as, compression_type, options, on_corrupt, \
with_positions, storage_options: As for :func:`tfwire.arrow.open_reader`. Without features, the
            files are looked at now.
        batch_size: Records parsed at a time, at most: fewer where their shapes are large, or where
            polars asks for fewer.

    Returns:
        A ``polars.LazyFrame``.

    Raises:
        ValueError, TypeError: As ``open_reader``.
        DataLossError, ParseError: From ``collect``: a file is damaged, or a record does not fit.

    Example:
        >>> rows = [{"label": i % 2, "weight": i / 2} for i in range(6)]
        >>> _ = tfw.write_records("pets.tfrecord", rows)
        >>> frame = scan_tfrecord("pets.tfrecord")
        >>> frame.group_by("label").agg(polars.sum("weight")).sort("label").collect().rows()
        [(0, 3.0), (1, 4.5)]
    """
    compression_type = either_word(compression_type, options, "auto")
    passed: dict[str, Any] = {
        "num_threads": num_threads,
        "binary_as": binary_as,
        "compression_type": compression_type,
        "on_corrupt": on_corrupt,
        "storage_options": storage_options,
    }
    with_positions = boolean("with_positions", with_positions)
    reader = open_reader(
        paths, features, batch_size=batch_size, with_positions=with_positions, **passed
    )
    features = reader.features
    empty = open_no_files(features, with_positions=with_positions, binary_as=binary_as)
    schema = polars.DataFrame(empty).schema
    positions = _POSITIONS if with_positions else ()
    read = partial(_read, reader.paths, features, schema, positions, batch_size, passed)
    return register_io_source(read, schema=schema, is_pure=True)


def _read(
    paths: list[Any],
    features: TableFeatures,
    schema: polars.Schema,
    positions: tuple[str, ...],
    most: int,
    options: dict[str, Any],
    with_columns: list[str] | None,
    predicate: polars.Expr | None,
    n_rows: int | None,
    batch_size: int | None,
) -> Iterator[polars.DataFrame]:
    """Frames for polars, which calls this with the last four arguments.

    Args:
        with_columns: Columns that it needs, in this order; None: all. None of them where the rows
            alone matter, as for their numbers, or a cross join.
        predicate: Which rows; None: all.
        n_rows: Rows from the beginning, before the predicate; None: all.
        batch_size: Rows of a frame that it would like.
    """
    wants_positions = with_columns is None or not set(positions).isdisjoint(with_columns)
    columns = None
    if with_columns is not None:
        columns = [name for name in with_columns if name not in positions]
    size = min(most, batch_size or most, n_rows or most, _fitting(schema, with_columns))
    reader = open_reader(
        paths or iter(()),  # scan_tfrecord has warned of an empty list
        features,
        columns=columns,
        batch_size=size,
        with_positions=bool(positions) and wants_positions,
        **options,
    )
    left = n_rows
    with iter(reader) as batches:
        while left != 0 and (batch := next(batches, None)) is not None:
            frame = polars.DataFrame(batch)
            frame = frame if left is None else frame.head(left)
            left = None if left is None else left - len(frame)
            frame = frame.select(with_columns) if with_columns else frame  # no columns, yet rows
            yield frame if predicate is None else frame.filter(predicate)


def _fitting(schema: polars.Schema, names: list[str] | None) -> int:
    """How many rows of these columns fit into a batch."""
    kinds = [schema[name] for name in (schema if names is None else names)]
    values = sum(prod(kind.shape) if isinstance(kind, polars.Array) else 1 for kind in kinds)
    return max(1, _BATCH_BYTES // (8 * max(1, values)))
