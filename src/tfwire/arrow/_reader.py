"""open_reader and read_table: record files as tables, for every library that speaks Arrow."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from tfwire._base.aliases import (
    BinaryAs,
    DetectedCompressionType,
    OnCorrupt,
    RemotePath,
    StorageOptions,
    TableFeatures,
    Value,
)
from tfwire._base.arguments import boolean, column_names, integer, wrong_type
from tfwire._base.errors import Error, ParseError
from tfwire._base.native import ffi, lib, new_struct
from tfwire._base.text import column_name, printable, quoted
from tfwire._parsing.failure import ADVICE
from tfwire._parsing.parse_file import FileBatches, ParsingOptions, parse_from
from tfwire._parsing.spec import Plan, compile_features
from tfwire._records.files.compression import either_word
from tfwire._records.files.find_files import input_paths
from tfwire._records.files.paths import absolute, is_path
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.options import make_options
from tfwire._records.reading.pipeline import MOST_THREADS
from tfwire.arrow._layout import TableLayout
from tfwire.arrow._parsed_batches import BatchParser, RecordBatch, schema_capsule, stream_capsule
from tfwire.arrow._table_types import (
    infer_table,
    is_plain_file,
    is_sample,
    notes_unknown,
    table_plans,
    table_types,
)

_BATCH_SIZE = 65536


class ArrowReader:
    """Record files as a table, read by whatever takes an Arrow stream. Made by ``open_reader``.

    ``polars.DataFrame(reader)``, ``pyarrow.table(reader)``, ``nanoarrow.ArrayStream(reader)``,
    ``pandas.DataFrame.from_arrow(reader)``, and in DuckDB's SQL the name of the variable. Each
    reads the files from their beginning, as often as it likes. Iterating gives RecordBatches.

    A consumer reads plain files batch by batch without calling Python: from any thread, without
    the GIL, with ``num_threads`` threads. Where Python must take part (compressed files, URLs and
    pipes, ``on_corrupt`` other than "raise"), the stream holds all batches from the beginning:
    they are read when it is opened. Iterating needs the memory of a few batches in every case.

    At damage, and at a record that does not fit, the records before are delivered; then the
    consumer raises an error of its own with tfwire's message: the file, the record, the feature,
    what was expected and what was found. Iterating raises a DataLossError or ParseError.

    Attributes:
        paths: The files.
        features: The specification of all features, also where ``columns`` chose some.
        types: The Arrow types of the columns, by name.
    """

    def __init__(
        self,
        paths: list[str | os.PathLike[str]],
        features: TableFeatures,
        layout: TableLayout,
        options: ParsingOptions,
    ) -> None:
        self.paths: list[str | os.PathLike[str]] = paths
        self.features: TableFeatures = features
        self._parser = BatchParser(layout)
        self._layout = layout
        self._options = options

    @property
    def types(self) -> dict[str, str]:
        """The Arrow types of the columns, by name."""
        return self._layout.types()

    def __iter__(self) -> FileBatches[RecordBatch]:
        """Reads the files from their beginning.

        Returns:
            An iterator over RecordBatches and context manager, as ``Parser.parse_file`` gives it.
        """
        return read_inputs(self, self.paths)

    def __arrow_c_schema__(self) -> object:
        """The type of the table, as Arrow's PyCapsule interface has it."""
        return schema_capsule(self._layout.handle)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A stream of the whole table, as Arrow's PyCapsule interface has it. The type is that of
        the reader, whatever is requested.

        Raises:
            OSError: A file cannot be opened.
        """
        options, pinned = _Options(self._options.batch_size), None
        if self._is_plain():
            options.set_paths(self.paths, self._options)
            if self._options.notes_unknown:
                options.native.report = ffi.addressof(lib, "tfw_report_unknown")
        else:
            pinned = self._read_ahead(options)
        capsule = stream_capsule(self._layout.handle, options.native)
        del pinned  # the stream has its share
        return capsule

    def _is_plain(self) -> bool:
        """Whether C can read the files by itself."""
        reading = self._options.reading
        compression = reading.compression
        if reading.on_corrupt != "raise" or compression not in ("auto", ""):
            return False
        return all(is_plain_file(path, compression) for path in self.paths)

    def _read_ahead(self, options: _Options) -> list[RecordBatch]:
        """Reads all batches, up to an error if there is one."""
        batches: list[RecordBatch] = []
        try:
            batches.extend(self)  # keeps those before an error
        except (Error, OSError, ValueError) as error:
            options.set_error(error)
        options.set_batches(batches)
        return batches

    def __repr__(self) -> str:
        files = self.paths[0] if len(self.paths) == 1 else f"{len(self.paths)} files"
        lines = [f"ArrowReader({os.fsdecode(files)})"]
        lines += [f"  {name}: {kind}" for name, kind in self.types.items()]
        return "\n".join(map(printable, lines))

    def __reduce__(self) -> Any:
        raise TypeError("readers cannot be pickled; open the files again in the other process")


def read_inputs(
    reader: ArrowReader, inputs: list[Any], start: RecordPosition | None = None
) -> FileBatches[RecordBatch]:
    """Other files or file objects, read as a reader reads its own; the first from a position on."""
    return parse_from(reader._parser, inputs, reader._options, start)


class _Options:
    """The ``tfw_arrow_stream_options *`` of a stream."""

    def __init__(self, batch_size: int) -> None:
        self.native = new_struct("tfw_arrow_stream_options")
        self.native.batch_size = batch_size
        self._pinned: list[Any] = []

    def set_paths(self, paths: Iterable[Any], options: ParsingOptions) -> None:
        files = [os.fsencode(absolute(path)) for path in paths]
        names = [os.fsdecode(path).encode("utf-8", "backslashreplace") for path in paths]
        self.native.path_count = len(files)
        self.native.paths, self.native.names = self._strings(files), self._strings(names)
        self.native.max_record_size = options.reading.max_record_size
        self.native.num_threads = min(options.num_threads, MOST_THREADS)

    def _strings(self, strings: list[bytes]) -> Any:
        held = [ffi.new("char[]", each) for each in strings]
        self._pinned += [*held, ffi.new("char *[]", held)]
        return self._pinned[-1]

    def set_batches(self, batches: Sequence[RecordBatch]) -> None:
        arrays = [batch._shared() for batch in batches]
        self._pinned += [arrays, ffi.new("struct ArrowArray *[]", arrays)]
        self.native.arrays, self.native.array_count = self._pinned[-1], len(arrays)

    def set_error(self, error: Exception) -> None:
        """What ends the stream: with a number by which consumers choose the class of theirs."""
        number = errno.EINVAL if isinstance(error, ParseError) else errno.EIO
        if isinstance(error, OSError) and error.errno:
            number = error.errno
        message = str(error).encode("utf-8", "backslashreplace").replace(b"\0", b"?")
        self._pinned.append(ffi.new("char[]", message))
        self.native.message, self.native.os_errno = self._pinned[-1], number


def open_reader(
    paths: RemotePath | Iterable[RemotePath],
    features: TableFeatures | None = None,
    *,
    columns: Iterable[str] | None = None,
    batch_size: int = _BATCH_SIZE,
    num_threads: int = 1,
    tensors: bool = False,
    binary_as: BinaryAs = "auto",
    compression_type: DetectedCompressionType = "auto",
    on_corrupt: OnCorrupt = "raise",
    with_positions: bool = False,
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> ArrowReader:
    """Opens record files as a table for polars, DuckDB, pandas, pyarrow, nanoarrow and others.

    No Arrow library is needed here, and nothing is copied on the way to one. The types:

    - FixedLenFeature: int64 or float (of 32 bits) or ``binary_as``, in fixed size lists for each
      dimension of its shape.
    - VarLenFeature, RaggedFeature: a large list, for a RaggedFeature nested by its partitions.
      FixedLenSequenceFeature: a large list of elements of its shape.
    - SparseFeature: a struct of ``indices`` and ``values``, both large lists, in the file's order.
    - A feature list: a large list of steps.
    - Of an InferredSchema, a VarLenFeature of which no record has several values: one value, null
      where there is none. If it is that of some records, all features are null where there is none.

    A feature that a record does not have, or has without a kind, is null, and so is such a step of
    a feature list; one that has a kind and no values is an empty list. The metadata of every
    column, ``tfwire:feature``, is its specification as JSON.

    Args:
        paths: As for ``read_records``: paths, URLs, folders, patterns. They are read again for
            every stream: no file objects.
        features: A specification as for Parser; of SequenceExamples an InferredSchema, or a pair
            of those of context and feature lists. None: they are inferred of all records of files
            that are not long, else of some, as ``infer_schema`` does it.
        columns: The names of the features to read, in this order; others are not parsed. None:
            all.
        batch_size: Records of a batch; the last may have fewer.
        num_threads: How many threads read and parse, the caller's included. Only the speed depends
            on it.
        tensors: FixedLenFeatures of numbers that have a shape become ``arrow.fixed_shape_tensor``.
            polars cannot compute with it.
        binary_as: The type of strings, of all columns or by column in a dict. "auto":
            "large_string" where the strings that the specification was inferred from are UTF-8,
            else "large_binary". "binary" and "string" hold less than 2 GiB in a batch, and
            "string" and "large_string" UTF-8 alone.
        compression_type, options: As for ``read_records``.
        on_corrupt: What to do at damage, as for ``read_records``.
        with_positions: Add the columns ``path``, ``record_index`` and ``offset``: where the record
            comes from.
        storage_options: fsspec's options of the filesystem of URLs.

    Returns:
        An ArrowReader. The specification was compiled, and no file is open.

    Raises:
        ValueError, TypeError: An argument or the specification is not valid; a name in ``columns``
            or ``binary_as`` is not in it; two columns would have the same name.

    Warns:
        TfwireWarning: When reading ends: all columns are read of what was inferred of some records,
            and others have a feature that these have not. It names the first of them.

    Example:
        >>> _ = tfw.write_records("pets.tfrecord", [{"label": 1, "name": "cat"}, {"label": 2}])
        >>> reader = open_reader("pets.tfrecord")
        >>> reader
        ArrowReader(pets.tfrecord)
          label: int64
          name: large_string
        >>> [batch.num_rows for batch in reader]
        [2]
    """
    compression_type = either_word(compression_type, options, "auto")
    batch_size = integer("batch_size", batch_size, 1)
    num_threads = integer("num_threads", num_threads, 1)
    tensors = boolean("tensors", tensors)
    with_positions = boolean("with_positions", with_positions)
    reading = make_options(compression_type, on_corrupt=on_corrupt)
    files = list(input_paths(paths, storage_options))
    for path in files:
        if not is_path(path):
            raise wrong_type("paths", path, "paths or URLs, which can be read again")
    files = [os.fsdecode(path) if isinstance(path, bytes) else path for path in files]
    wanted = column_names(columns)
    if features is None:
        features = infer_table(files, compression_type, on_corrupt)
    plans, sampled = table_plans(features), is_sample(features)
    types = table_types(features, plans, binary_as)
    chosen = plans if wanted is None else _chosen(plans, wanted, ADVICE if sampled else "")
    layout = TableLayout(chosen, types, tensors, with_positions, sampled)
    parsing = ParsingOptions(
        batch_size,
        reading,
        num_threads,
        sampled=sampled,
        notes_unknown=wanted is None and notes_unknown(features),
    )
    return ArrowReader(files, features, layout, parsing)


def read_table(
    paths: RemotePath | Iterable[RemotePath],
    features: TableFeatures | None = None,
    *,
    columns: Iterable[str] | None = None,
    batch_size: int = _BATCH_SIZE,
    num_threads: int = 1,
    tensors: bool = False,
    binary_as: BinaryAs = "auto",
    compression_type: DetectedCompressionType = "auto",
    on_corrupt: OnCorrupt = "raise",
    with_positions: bool = False,
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> Value:
    """Reads record files into a ``pyarrow.Table``. The arguments are those of ``open_reader``.

    Raises:
        ImportError: pyarrow is not installed.
        pyarrow.ArrowInvalid: A record does not fit.
        OSError: A file is damaged, or cannot be read.
    """
    reader = open_reader(**locals())  # all arguments, and nothing else yet
    try:
        pyarrow: Any = import_module("pyarrow")
    except ImportError:
        raise ImportError("read_table needs pyarrow; pip install 'tfwire[arrow]'") from None
    return pyarrow.table(reader)


def _chosen(plans: list[Plan | None], wanted: Iterable[str], advice: str) -> list[Plan | None]:
    """The plans of some of the columns, in their order."""
    known = {column_name(key) for plan in plans if plan is not None for key in plan.features}
    for name in wanted:
        if name not in known:
            text = f"columns: {quoted(name)} is not a feature of the specification{advice}"
            raise ValueError(text)
    order = {name: i for i, name in enumerate(wanted)}
    chosen: list[Plan | None] = []
    for plan, part in zip(plans, _parts(plans), strict=True):
        if plan is None:
            chosen.append(None)
            continue
        keys = [key for key in plan.features if column_name(key) in order]
        keys.sort(key=lambda key: order[column_name(key)])
        chosen.append(compile_features({key: plan.features[key] for key in keys}, part))
    return chosen


def _parts(plans: Sequence[Any]) -> Iterator[str]:
    return iter(("example",) if len(plans) == 1 else ("context", "lists"))
