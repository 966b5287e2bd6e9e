"""TFRecord files in pipelines of Apache Beam: its own transforms, faster, and batches of columns.

import apache_beam as beam
from tfwire.beam import ReadFromTFRecord, WriteToTFRecord

with beam.Pipeline() as pipeline:
    records = pipeline | ReadFromTFRecord("train-*.tfrecord")
    records | beam.Filter(len) | WriteToTFRecord("filtered", file_name_suffix=".tfrecord")
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import apache_beam  # noqa: F401  (whether it is there)
except ImportError as _error:
    raise ImportError("tfwire.beam needs apache-beam; pip install 'tfwire[beam]'") from _error

from apache_beam.coders import BytesCoder, Coder
from apache_beam.io.filebasedsink import (
    DEFAULT_SHARD_NAME_TEMPLATE,
    DEFAULT_WINDOW_SHARD_NAME_TEMPLATE,
    FileBasedSink,
)
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.iobase import Read, Write
from apache_beam.transforms import ParDo, PTransform, Reshuffle

from tfwire._interface.files import FRAME, Packer, as_record
from tfwire._interface.messages import boolean, choice, column_names, integer
from tfwire.beam._reading import (
    ArrowBatches,
    BeamReading,
    FindRanges,
    NumpyBatches,
    ReadRanges,
    RecordElements,
    TFRecordSource,
    inferred_features,
)

if TYPE_CHECKING:
    from typing import Literal

    from apache_beam.options.value_provider import ValueProvider

    from tfwire.typing import BinaryAs, OnCorrupt, TableFeatures

__all__ = [
    "ReadAllFromTFRecord",
    "ReadBatchesFromTFRecord",
    "ReadFromTFRecord",
    "WriteToTFRecord",
]

_POLICIES = ("raise", "skip", "tail", "stop")
_ARROW_DEFAULTS = {"tensors": False, "binary_as": "auto", "with_positions": False}


class ReadFromTFRecord(PTransform):
    """Reads the records of TFRecord files, as Beam's transform of this name does.

    Files are opened by Beam's filesystems. Records are verified, also that a compressed stream was
    not cut. A file with a saved index beside it (``tfwire index``) is split, before and while it is
    read; others are read by one bundle each. Empty files are left out.

    Args:
        file_pattern: A path, a folder or a pattern of Beam's filesystems, a set of shards
            (``name@64``), or a ValueProvider. Of folders and patterns, hidden files and those that
            lie beside records are left out, as by :func:`tfwire.read_records`.
        coder: Decodes each record.
        compression_type: A compression of Beam. AUTO: bzip2, zstandard and LZMA by the suffix of
            the path; GZIP and zlib are detected.
        validate: Whether to raise at once if no file matches.
        with_filename: Give pairs of a path and an element.
        on_corrupt: What to do at damage, as for ``read_records``. What is left out is in Beam's
            counters ``skipped_regions`` and ``skipped_bytes`` of "tfwire.beam". With "tail" and
            "stop", files are not split.

    Raises:
        TypeError, ValueError: An argument is not valid.
        OSError: No file matches.
        DataLossError: While the pipeline runs: a file is damaged, or its index is stale.

    Example:
        >>> _ = tfw.write_records("words.tfrecord", [b"to", b"be"])
        >>> with apache_beam.Pipeline("FnApiRunner") as pipeline:
        ...     _ = pipeline | ReadFromTFRecord("words.tfrecord") | apache_beam.Map(print)
        b'to'
        b'be'
    """

    def __init__(
        self,
        file_pattern: str | os.PathLike[str] | ValueProvider,
        coder: Coder = BytesCoder(),  # noqa: B008  (as Beam's)
        compression_type: str = CompressionTypes.AUTO,
        validate: bool = True,
        *,
        with_filename: bool = False,
        on_corrupt: OnCorrupt = "raise",
    ) -> None:
        super().__init__()
        reading = _records(coder, compression_type, with_filename, on_corrupt)
        self._source = TFRecordSource(_text(file_pattern), reading, boolean("validate", validate))
        self.with_output_types(_with_filename(_type_of(coder), with_filename))

    def expand(self, pvalue: Any) -> Any:
        """Beam calls this."""
        return pvalue.pipeline | Read(self._source)

    def display_data(self) -> dict[str, Any]:
        """What runners show: the pattern and the compression."""
        return dict(self._source.display_data())


class ReadAllFromTFRecord(PTransform):
    """Reads the records of the files that match the elements of a PCollection: paths, patterns or
    Beam's FileMetadata.

    Args:
        coder, compression_type, with_filename, on_corrupt: As for :class:`ReadFromTFRecord`. A
            pattern that matches nothing is not an error.

    Example:
        >>> _ = tfw.write_records("words.tfrecord", [b"to", b"be"])
        >>> with apache_beam.Pipeline("FnApiRunner") as pipeline:
        ...     names = pipeline | apache_beam.Create(["words.tfrecord", "none.tfrecord"])
        ...     _ = names | ReadAllFromTFRecord() | apache_beam.Map(print)
        b'to'
        b'be'
    """

    def __init__(
        self,
        coder: Coder = BytesCoder(),  # noqa: B008  (as Beam's)
        compression_type: str = CompressionTypes.AUTO,
        with_filename: bool = False,
        *,
        on_corrupt: OnCorrupt = "raise",
    ) -> None:
        super().__init__()
        self._reading = _records(coder, compression_type, with_filename, on_corrupt)
        self.with_output_types(_with_filename(_type_of(coder), with_filename))

    def expand(self, pvalue: Any) -> Any:
        """Beam calls this."""
        return (
            pvalue
            | "FindRanges" >> ParDo(FindRanges(self._reading))
            | "Reshuffle" >> Reshuffle()
            | "ReadRanges" >> ParDo(ReadRanges(self._reading))
        )

    def display_data(self) -> dict[str, Any]:
        """What runners show: the compression."""
        return {"compression": str(self._reading.compression_type)}


class ReadBatchesFromTFRecord(PTransform):
    """Reads and parses the Examples of TFRecord files in C; elements are batches of columns.

    A batch is of one file. Batches are an order of magnitude faster than records that Python
    parses, and the fewer elements cost Beam less.

    Args:
        file_pattern, compression_type, validate, with_filename, on_corrupt: As for
            :class:`ReadFromTFRecord`.
        features: A specification, as for :func:`tfwire.arrow.open_reader`. None: it is inferred
            now, from the beginning of the first files that match; workers warn of features that
            come later.
        columns: The names of the features to read, at least one; others are not parsed. None: all.
        batch_size: Records of a batch; the last of a file may have fewer.
        batches_as: "arrow": elements are ``pyarrow.RecordBatch``. "numpy": dicts of numpy columns,
            as ``Parser.parse`` gives them; only for Examples.
        tensors, binary_as, with_positions: For "arrow", as for ``open_reader``.

    Raises:
        TypeError, ValueError: An argument is not valid.
        OSError: No file matches.
        DataLossError, ParseError: While the pipeline runs.

    Example:
        >>> _ = tfw.write_records("pets.tfrecord", [{"label": i} for i in range(5)])
        >>> features = {"label": tfw.FixedLenFeature([], tfw.int64)}
        >>> read = ReadBatchesFromTFRecord("pets.tfrecord", features, batches_as="numpy")
        >>> with apache_beam.Pipeline("FnApiRunner") as pipeline:
        ...     _ = pipeline | read | apache_beam.Map(lambda batch: print(batch["label"]))
        [0 1 2 3 4]
    """

    def __init__(
        self,
        file_pattern: str | os.PathLike[str] | ValueProvider,
        features: TableFeatures | None = None,
        *,
        compression_type: str = CompressionTypes.AUTO,
        validate: bool = True,
        columns: Iterable[str] | None = None,
        batch_size: int = 1024,
        batches_as: Literal["arrow", "numpy"] = "arrow",
        tensors: bool = False,
        binary_as: BinaryAs = "auto",
        with_positions: bool = False,
        with_filename: bool = False,
        on_corrupt: OnCorrupt = "raise",
    ) -> None:
        super().__init__()
        _check_compression(compression_type)
        choice("on_corrupt", on_corrupt, _POLICIES)
        choice("batches_as", batches_as, ("arrow", "numpy"))
        batch_size = integer("batch_size", batch_size, 1)
        with_filename = boolean("with_filename", with_filename)
        names = column_names(columns)
        if features is None:
            pattern = _text(file_pattern)
            features = inferred_features(pattern, compression_type, on_corrupt)
        elements: ArrowBatches | NumpyBatches
        options: dict[str, Any] = {
            "tensors": tensors,
            "binary_as": binary_as,
            "with_positions": with_positions,
        }
        if batches_as == "arrow":
            options |= {"columns": names}
            elements = ArrowBatches(features, batch_size, on_corrupt, options)
        elif options != _ARROW_DEFAULTS:
            raise ValueError(f'{", ".join(options)} need batches_as="arrow"')
        else:
            elements = NumpyBatches(features, names, batch_size, on_corrupt)
        batch = dict if batches_as == "numpy" else import_module("pyarrow").RecordBatch
        reading = BeamReading(elements, compression_type, with_filename)
        self._source = TFRecordSource(_text(file_pattern), reading, boolean("validate", validate))
        self.with_output_types(_with_filename(batch, with_filename))

    def expand(self, pvalue: Any) -> Any:
        """Beam calls this."""
        return pvalue.pipeline | Read(self._source)

    def display_data(self) -> dict[str, Any]:
        """What runners show: the pattern and the compression."""
        return dict(self._source.display_data())


class WriteToTFRecord(PTransform):
    """Writes records to TFRecord files, as Beam's transform of this name does.

    Files are written in a temporary folder, and renamed when all are complete: a pipeline that
    fails leaves none under a final name.

    Args:
        file_path_prefix: What the paths begin with.
        coder: Encodes each element as a record. With BytesCoder, elements are what
            ``TFRecordWriter.write`` takes: bytes, dicts (encoded as Examples) and messages.
            ``beam.FlatMap(tfwire.encode_columns)`` makes records of columns and RecordBatches.
        file_name_suffix: What the paths end with.
        num_shards: Number of files; 0: the runner chooses.
        shard_name_template: With S for the number of a file and N for their count; "" for one file.
            None: "-SSSSS-of-NNNNN".
        compression_type: A compression of Beam. AUTO: by the suffix.
        triggering_frequency: For unbounded input: seconds of a window.
        max_records_per_shard: A file ends with this record; only where the runner chooses their
            number.
        max_bytes_per_shard: A file ends with the record that reaches this size, in bytes before
            compression; only where the runner chooses their number.
        skip_if_empty: Write no file if there is no element.

    Returns:
        From the pipeline: a PCollection of the paths.

    Raises:
        TypeError, ValueError: An argument is not valid.

    Example:
        >>> with apache_beam.Pipeline("FnApiRunner") as pipeline:
        ...     rows = pipeline | apache_beam.Create([{"label": i} for i in range(3)])
        ...     _ = rows | WriteToTFRecord("labels", file_name_suffix=".tfrecord", num_shards=1)
        >>> [row["label"].item() for row in map(tfw.decode_example, tfw.read_records(
        ...     "labels-00000-of-00001.tfrecord"))]
        [0, 1, 2]
    """

    def __init__(
        self,
        file_path_prefix: str | os.PathLike[str] | ValueProvider,
        coder: Coder = BytesCoder(),  # noqa: B008  (as Beam's)
        file_name_suffix: str | ValueProvider = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        compression_type: str = CompressionTypes.AUTO,
        triggering_frequency: int | None = None,
        *,
        max_records_per_shard: int | None = None,
        max_bytes_per_shard: int | None = None,
        skip_if_empty: bool = False,
    ) -> None:
        super().__init__()
        _check_compression(compression_type)
        limits = {
            "max_records_per_shard": max_records_per_shard,
            "max_bytes_per_shard": max_bytes_per_shard,
        }
        for name, limit in limits.items():
            if limit is None:
                continue
            limits[name] = integer(name, limit, 1)
            if num_shards or shard_name_template == "":
                raise ValueError(f"{name} decides the number of files; num_shards must be 0")
        self._sink = _TFRecordSink(
            _text(file_path_prefix),
            _checked(coder),
            file_name_suffix,
            integer("num_shards", num_shards, 0),
            shard_name_template,
            compression_type=compression_type,
            triggering_frequency=triggering_frequency,
            skip_if_empty=boolean("skip_if_empty", skip_if_empty),
            **limits,
        )

    def expand(self, pcoll: Any) -> Any:
        """Beam calls this."""
        sink = self._sink
        if not pcoll.is_bounded and sink.shard_name_template == DEFAULT_SHARD_NAME_TEMPLATE:
            template = sink.shard_name_template = DEFAULT_WINDOW_SHARD_NAME_TEMPLATE
            sink.shard_name_format = sink._template_to_format(template)
            sink.shard_name_glob_format = sink._template_to_glob_format(template)
        return pcoll | Write(sink)

    def display_data(self) -> dict[str, Any]:
        """What runners show: the pattern of the files, their number and the compression."""
        return dict(self._sink.display_data())


def _records(
    coder: Coder, compression_type: str, with_filename: bool, on_corrupt: OnCorrupt
) -> BeamReading:
    """How records are read, from the arguments of a transform."""
    choice("on_corrupt", on_corrupt, _POLICIES)
    _check_compression(compression_type)
    with_filename = boolean("with_filename", with_filename)
    return BeamReading(RecordElements(_checked(coder), on_corrupt), compression_type, with_filename)


def _checked(coder: Any) -> Coder:
    if not isinstance(coder, Coder):
        raise TypeError(f"coder must be a Coder of Beam, found {type(coder).__name__}")
    return coder


def _check_compression(compression_type: Any) -> None:
    if not CompressionTypes.is_valid_compression_type(compression_type):
        raise TypeError(
            "compression_type must be one of apache_beam.io.filesystem.CompressionTypes, found "
            f"{compression_type!r}"
        )


def _text(path: Any) -> Any:
    """A path of pathlib as Beam takes it; Beam checks others."""
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def _type_of(coder: Coder) -> Any:
    """The type of what a coder decodes."""
    try:
        return coder.to_type_hint()
    except NotImplementedError:  # by the base class: this coder does not say it
        return Any


def _with_filename(element: Any, with_filename: bool) -> Any:
    return tuple[str, element] if with_filename else element


# ---- The sink of Beam: files that appear when all of them are written ---------------------------
# Bytes of records that are collected, and then framed by one call of C.
_COLLECTED_BYTES = 1 << 18


class _ShardFile:
    """A temporary file of Beam, and the records written to it. One that is dropped without
    ``close``, because its bundle failed, needs no more.

    Attributes:
        bytes_written: Bytes of the records with their frames, before they are compressed.
    """

    def __init__(self, file: Any) -> None:
        self.bytes_written = 0
        self._file = file
        self._packer = Packer()
        self._collected: list[bytes] = []
        self._room = _COLLECTED_BYTES

    def write(self, value: Any) -> None:
        record = as_record(value)
        self._collected.append(record)
        self.bytes_written += len(record) + FRAME
        self._room -= len(record) + FRAME
        if self._room < 0:
            self._write_collected()

    def _write_collected(self) -> None:
        records, self._collected, self._room = self._collected, [], _COLLECTED_BYTES
        for framed in self._packer.framed(records):
            self._file.write(framed)

    def close(self) -> None:
        try:
            self._write_collected()
        finally:
            self._file.close()


class _TFRecordSink(FileBasedSink):
    """Writes records. The arguments are those of Beam's sinks of files."""

    def open(self, temp_path: str) -> _ShardFile:
        file = FileSystems.create(temp_path, self.mime_type, self.compression_type)
        self.byte_counter = _ShardFile(file)  # Beam compares it with max_bytes_per_shard
        return self.byte_counter

    def write_record(self, file_handle: _ShardFile, value: Any) -> None:
        if type(self.coder) is not BytesCoder:
            value = self.coder.encode(value)
        file_handle.write(value)
