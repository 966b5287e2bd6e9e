"""TFRecord files as tables of Spark 4, and back: a data source in Python, without a jar."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfwire import ParseError
from tfwire._interface.files import absolute, input_paths
from tfwire._interface.hive_folders import Values, are_integers, find_partitioned, is_empty
from tfwire._interface.messages import choice, quoted, show_path, size_in_bytes
from tfwire._interface.new_files import StagedFiles
from tfwire._interface.partitions import (
    FilePartition,
    fitting_batch_size,
    open_no_files,
    plan_partitions,
    read_partition,
)
from tfwire.arrow import open_reader

try:
    import pyarrow
    from pyarrow import compute
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        InputPartition,
    )
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    from tfwire.spark._columns import (
        as_sampled,
        depth_of,
        features_of_columns,
        is_of_sample,
        spark_struct,
        strings_as,
        written_features,
    )
    from tfwire.spark._writing import SparkWriter
except ImportError as _error:
    raise ImportError(
        "tfwire.spark needs pyspark 4.1 or newer and pyarrow; pip install 'tfwire[spark]'"
    ) from _error

if TYPE_CHECKING:
    from tfwire.typing import Value

__all__ = ["SparkSource"]

_SPARK_BATCH_ROWS = 10_000  # what Spark itself uses; more are not faster
_SPARK_BATCH_BYTES = 16 << 20
_PARTITION_BYTES = "128MB"
# Of Hadoop, which the connectors in Java take.
_CODECS = {
    "": "",
    "none": "",
    "uncompressed": "",
    "gzip": "GZIP",
    "org.apache.hadoop.io.compress.gzipcodec": "GZIP",
    "deflate": "ZLIB",
    "org.apache.hadoop.io.compress.deflatecodec": "ZLIB",
    "org.apache.hadoop.io.compress.defaultcodec": "ZLIB",
}
_OPTIONS = {
    "path",
    "paths",
    "compression_type",
    "on_corrupt",
    "partition_bytes",
    "partition_by",
    "strings",
    "storage_options",
    "recordtype",
}


class SparkSource(DataSource):
    """The data source ``tfrecord``, for ``spark.read.format`` and ``df.write.format``.

    Spark finds it by itself where tfwire is installed (by the package ``pyspark_tfwire``);
    elsewhere, ``spark.dataSource.register(SparkSource)``.

    Reading: the path is a file, a folder, a pattern, a URL or a set of shards, ``name@64``. Without
    ``.schema(...)`` records are looked at, of long files some: a feature of which none has several
    values is a column of its type, others are arrays; strings are string where all are UTF-8, else
    binary; tasks warn of features that these have not. With it, the columns are those of the
    schema, nothing else is parsed, and a folder without files is a table without rows. A feature
    that a record lacks is null.

    Writing: ``mode("append")`` or ``mode("overwrite")`` to a folder that all workers see. Files get
    their names when all tasks have ended; the rows of a task that is tried again are there once.
    Arrays of arrays are feature lists, a list for each step, with the option ``recordType``
    "SequenceExample"; without it they are refused.

    Args:
        options: ``compression_type``, ``on_corrupt``, ``storage_options`` (JSON): as for
            :func:`tfwire.arrow.open_reader`; ``partition_bytes``: of files in one task, like
            "128MB" (the default); ``strings``: "auto" (the default), "string" or "binary", the type
            of strings in an inferred schema; ``partition_by`` (or ``partitionBy``), of what is
            written: columns whose values name folders, separated by commas. Of connectors in Java,
            ``codec`` and ``recordType`` (Example, SequenceExample) are understood.

    Raises:
        ValueError: An option is unknown, or its value is not valid.

    Example:
        >>> spark.dataSource.register(SparkSource)  # doctest: +SKIP
        >>> spark.read.format("tfrecord").load("train/").count()  # doctest: +SKIP
        3000
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._chosen = {name.lower(): value for name, value in options.items()}
        _translate(self._chosen)
        unknown = sorted(self._chosen.keys() - _OPTIONS)
        if unknown:
            known = ", ".join(sorted(_OPTIONS - {"path", "paths", "recordtype"}))
            raise ValueError(f"no option {quoted(unknown[0])}; there are {known}")
        choice("strings", self._chosen.get("strings", "auto"), ("auto", "string", "binary"))

    @classmethod
    def name(cls) -> str:
        """The name for ``format``: "tfrecord"."""
        return "tfrecord"

    def schema(self) -> Value:
        """The columns of the first records. Spark calls this where no schema is given."""
        files = _Files(self._chosen)
        storage_options = files.storage_options
        strings: Any = self._chosen.get("strings", "auto")
        reader = open_reader(
            files.paths, binary_as=strings, storage_options=storage_options, **files.options
        )
        struct = spark_struct(reader.features, pyarrow.schema(reader))
        fields = [field for field in struct if field.name not in files.partition_columns]
        return StructType([*fields, *files.partition_fields()])

    def reader(self, schema: Value) -> DataSourceReader:
        """Reads the columns of a schema. Spark calls this."""
        sampled = any(map(is_of_sample, schema))
        files = _Files(self._chosen, may_be_empty=True)
        return _Reader(files, _arrow_schema(schema), sampled)

    def writer(self, schema: Value, overwrite: bool) -> DataSourceArrowWriter:
        """Writes rows to the files of a folder. Spark calls this."""
        path = self._chosen.get("path")
        if not path:
            raise ValueError("the folder to write is missing: save(path)")
        named = self._chosen.get("partition_by")
        columns = [] if named is None else list(map(str.strip, named.split(",")))
        if "" in columns or len(set(columns)) < len(columns):
            raise ValueError(
                "option partition_by: expected different names of columns, separated by commas, "
                f"found {quoted(named)}"
            )
        table = _arrow_schema(schema)
        for name in columns:
            if name not in table.names:
                raise ValueError(f"option partition_by: there is no column {quoted(name)}")
        rest = pyarrow.schema([field for field in table if field.name not in columns])
        if columns and not rest.names:
            raise ValueError("option partition_by: no column is left for the records")
        features = written_features(rest, self._chosen.get("recordtype"))
        compression_type: Any = self._chosen.get("compression_type")
        files = StagedFiles(_without_scheme(path), compression_type, features)
        return SparkWriter(files, overwrite, columns)


def _translate(chosen: dict[str, str]) -> None:
    """Takes the options of the connectors in Java: those that mean something here become ours.

    Raises:
        ValueError: One asks for what is not done here.
    """
    if "partitionby" in chosen:
        chosen.setdefault("partition_by", chosen.pop("partitionby"))
    codec = chosen.pop("codec", None)
    if codec is not None:
        if codec.lower() not in _CODECS:
            raise ValueError(
                f"option codec: {quoted(codec)} is not written here; "
                'the option compression_type is "GZIP", "ZLIB" or ""'
            )
        if chosen.setdefault("compression_type", _CODECS[codec.lower()]) != _CODECS[codec.lower()]:
            raise ValueError("options codec and compression_type say different things; give one")
    kind = chosen.get("recordtype", "Example")
    if kind not in ("Example", "SequenceExample"):
        raise ValueError(
            f"option recordType: {quoted(kind)} is not read or written here, Example and "
            "SequenceExample are, as the columns say; tfwire.read_records reads records as bytes"
        )


class _Files:
    """The files that the options name, and how to read them.

    Args:
        options: Of the source.
        may_be_empty: A folder without files is a table without rows, as Spark writes it.
    """

    def __init__(self, options: Mapping[str, str], may_be_empty: bool = False) -> None:
        self._may_be_empty = may_be_empty
        self.options: dict[str, Any] = {
            "compression_type": options.get("compression_type", "auto"),
            "on_corrupt": options.get("on_corrupt", "raise"),
        }
        self.storage_options = json.loads(options.get("storage_options", "null"))
        self.partition_bytes = size_in_bytes(
            "partition_bytes", options.get("partition_bytes", _PARTITION_BYTES)
        )
        named = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
        if named == [""]:
            raise ValueError("the path to read is missing: load(path)")
        self.values: dict[str, Values] = {}
        places = [file for path in map(_without_scheme, named) for file in self._places(path)]
        found = input_paths(places, self.storage_options) if places else []
        self.paths = list(map(absolute, found))
        if len({tuple(self.values.get(path, ())) for path in self.paths}) > 1:
            raise ValueError("the paths are tables that are partitioned in different ways")

    def _places(self, path: str) -> list[str]:
        """The files of a partitioned table, whose values are noted; else the path."""
        if self._may_be_empty and is_empty(path):
            return []
        found = find_partitioned(path) if os.path.isdir(path) else {}
        self.values |= {absolute(file): values for file, values in found.items()}
        return list(found) or [path]

    @property
    def partition_columns(self) -> list[str]:
        """The columns whose values are in the paths."""
        return list(next(iter(self.values.values()), ()))

    def partition_fields(self) -> list[StructField]:
        """These columns, of integers or strings."""
        fields = []
        for name in self.partition_columns:
            texts = [values[name] for values in self.values.values()]
            kind = LongType() if are_integers(texts) else StringType()
            fields.append(StructField(name, kind))
        return fields


def _without_scheme(path: str) -> str:
    """The path of a URL of a local file, as Spark has them."""
    return path.removeprefix("file://") if path.startswith("file:///") else path


# ---- Types --------------------------------------------------------------------------------------


def _arrow_schema(schema: Value) -> pyarrow.Schema:
    """Spark's schema as Arrow's; Sail gives this at once."""
    if isinstance(schema, pyarrow.Schema):
        return schema
    try:
        return to_arrow_schema(schema, timezone="UTC")  # it refuses timestamps without one
    except TypeError:  # before 4.2 it has no such argument, and none is needed
        return to_arrow_schema(schema)


# ---- Reading ------------------------------------------------------------------------------------


class _Reader(DataSourceReader):
    """Reads the columns of a schema, in partitions."""

    def __init__(self, files: _Files, schema: pyarrow.Schema, sampled: bool) -> None:
        self._files, self._schema, self._sampled = files, schema, sampled
        apart = files.partition_columns
        self._in_files = pyarrow.schema([field for field in schema if field.name not in apart])
        features_of_columns(self._in_files, complete=True)  # to check it now

    def partitions(self) -> Sequence[InputPartition]:
        """Some small files each, or a part of a long one that has an index."""
        folders: dict[tuple[Any, ...], list[str]] = {}
        for path in self._files.paths:
            values = self._files.values.get(path, {})
            folders.setdefault(tuple(values.items()), []).append(path)
        return [
            InputPartition((partition, dict(values)))
            for values, paths in folders.items()
            for partition in plan_partitions(
                paths,
                partition_bytes=self._files.partition_bytes,
                storage_options=self._files.storage_options,
                **self._files.options,
            )
        ]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The rows of a partition, in batches of exactly Spark's Arrow types."""
        if partition.value is None:  # Spark's own, where there are none
            return
        done = 0
        try:
            for batch in self._batches(*partition.value, complete=True):
                yield batch
                done += batch.num_rows
        except ParseError:
            pass  # a record lacks a value, which is null, or cannot be parsed at all
        else:
            return
        try:
            for batch in self._batches(*partition.value, complete=False):
                skipped = min(done, batch.num_rows)
                done -= skipped
                if skipped < batch.num_rows:
                    yield batch.slice(skipped)
        except ParseError as error:
            if error.reason != "utf-8":
                raise
            remedy = f'{error}; in Spark, declare binary, or give .option("strings", "binary")'
            raise ParseError(
                remedy, path=error.path, record_index=error.record_index, reason=error.reason
            ) from None

    def _batches(
        self, part: FilePartition, values: Values, *, complete: bool
    ) -> Iterator[pyarrow.RecordBatch]:
        compression = self._files.options["compression_type"]
        features = features_of_columns(self._in_files, complete=complete)
        reader = open_no_files(
            as_sampled(features) if self._sampled else features,
            batch_size=min(
                _SPARK_BATCH_ROWS, fitting_batch_size(part, _SPARK_BATCH_BYTES, compression)
            ),
            binary_as=strings_as(self._in_files),
            **self._files.options,
        )
        first = part.start.record_index
        for batch in read_partition(part, reader):
            table = pyarrow.record_batch(batch)
            arrays = [
                _constant(values[f.name], f, table.num_rows)
                if f.name in values
                else _column(table.column(f.name), f, part, first)
                for f in self._schema
            ]
            if arrays:  # without any, from_arrays makes no rows
                yield pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)
            else:
                yield table
            first += table.num_rows


def _constant(value: str | None, field: pyarrow.Field, num_rows: int) -> pyarrow.Array:
    """A value in a path as a column."""
    try:
        scalar = pyarrow.scalar(value, pyarrow.string()).cast(field.type)
    except pyarrow.ArrowInvalid:
        raise ValueError(
            f"column {quoted(field.name)}: a folder is named {quoted(value)}, "
            f"which is not of the type {field.type}: declare string"
        ) from None
    return pyarrow.repeat(scalar, num_rows)


def _column(
    values: pyarrow.Array, field: pyarrow.Field, part: FilePartition, first: int
) -> pyarrow.Array:
    if depth_of(field.type) == 0 and depth_of(values.type) == 1:
        values = _scalars(values, field, part, first)
    return values.cast(field.type)


def _scalars(
    lists: pyarrow.Array, field: pyarrow.Field, part: FilePartition, first: int
) -> pyarrow.Array:
    """The one value of each list; null where the feature is missing or empty."""
    lengths = compute.fill_null(compute.list_value_length(lists), 0)
    least, longest = (compute.min_max(lengths)[key].as_py() for key in ("min", "max"))
    if (least, longest) == (1, 1):
        return lists.flatten()
    if longest is not None and longest > 1:
        row = compute.index(compute.greater(lengths, 1), True).as_py()
        where = show_path(part.paths[0]) if len(part.paths) == 1 else "the files of a task"
        raise ParseError(
            f"{where}: record {first + row}: feature {quoted(field.name)} has "
            f"{lengths[row].as_py()} values where the schema says {field.type}: declare an array",
            record_index=first + row,
            reason="shape",
        )
    places = compute.cumulative_sum(lengths)
    numbers = compute.if_else(compute.equal(lengths, 1), compute.subtract(places, 1), None)
    return lists.flatten().take(numbers)
