"""Sources of Beam: which parts of which files are read, and the elements that records become."""

from __future__ import annotations

import contextlib
import glob
import logging
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from apache_beam import coders
from apache_beam.io import iobase
from apache_beam.io.concat_source import ConcatSource
from apache_beam.io.filebasedsource import FileBasedSource
from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.range_trackers import OffsetRangeTracker, UnsplittableRangeTracker
from apache_beam.io.restriction_trackers import OffsetRange
from apache_beam.metrics import Metrics
from apache_beam.options.value_provider import ValueProvider
from apache_beam.transforms.core import DoFn

from tfwire import Parser, RecordIndex, RecordPosition, read_records
from tfwire._interface.files import (
    SectionSource,
    as_pattern,
    files_that_match,
    index_beside,
    make_options,
    meanings,
)
from tfwire._interface.messages import column_name, show_path
from tfwire._interface.partitions import (
    ParsingOptions,
    infer_table,
    is_sample,
    notes_unknown,
    offsets_of_index,
    open_no_files,
    parse_from,
    read_inputs,
)
from tfwire.arrow import ArrowReader

# ---- What the records of a file become ----------------------------------------------------------
if TYPE_CHECKING:
    from tfwire.typing import OnCorrupt

# A file is split at the first record in each stretch of this many bytes: a reader for each takes a
# few per cent of the time that Beam takes for its elements.
_SPLIT_BYTES = 1 << 16


class Elements(Protocol):
    """What the records of a file become. It is pickled, and holds no handles of C."""

    on_corrupt: OnCorrupt

    def split_points(self, offsets: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The numbers of the records at which the elements can be divided.

        Args:
            offsets: Of the records, and of the end of the last.
        """

    def read(self, source: SectionSource, compression: Any, start: RecordPosition) -> Any:
        """An iterator of elements with ``skipped``; it is a context manager."""

    def convert(self, elements: Any) -> Iterator[Any]:
        """What the pipeline gets for them."""


class RecordElements:
    """Elements are records, decoded by a coder."""

    def __init__(self, coder: coders.Coder, on_corrupt: OnCorrupt) -> None:
        self.on_corrupt = on_corrupt
        self._coder = coder

    def split_points(self, offsets: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.flatnonzero(np.diff(offsets[:-1] // _SPLIT_BYTES, prepend=-1))

    def read(self, source: SectionSource, compression: Any, start: RecordPosition) -> Any:
        return read_records(
            source, compression, on_corrupt=self.on_corrupt, max_record_size=None, start=start
        )

    def convert(self, elements: Any) -> Iterator[Any]:
        if type(self._coder) is coders.BytesCoder:  # which changes nothing
            return iter(elements)
        return map(self._coder.decode, elements)


class _Batches:
    """Elements are batches of parsed records; a file can be split between any two."""

    def __init__(self, batch_size: int, on_corrupt: OnCorrupt) -> None:
        self.on_corrupt = on_corrupt
        self._batch_size = batch_size

    def split_points(self, offsets: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.arange(0, len(offsets) - 1, self._batch_size, dtype=np.int64)


def _check_columns(names: Any) -> None:
    """Without columns, a dict has no rows, and a RecordBatch loses its rows where it is pickled."""
    if not names:
        raise ValueError("there are no columns to read; ReadFromTFRecord counts records")


class ArrowBatches(_Batches):
    """Elements are pyarrow.RecordBatches.

    Args:
        features: A specification.
        options: Further arguments of ``open_reader``.
    """

    def __init__(
        self, features: Any, batch_size: int, on_corrupt: OnCorrupt, options: Mapping[str, Any]
    ) -> None:
        super().__init__(batch_size, on_corrupt)
        self._features = features
        self._options = options
        self._readers: dict[str, ArrowReader] = {}
        _check_columns(self._reader("").types)  # and the arguments

    def _reader(self, compression: Any) -> ArrowReader:
        """The reader of files of a compression."""
        if compression not in self._readers:
            self._readers[compression] = open_no_files(
                self._features,
                batch_size=self._batch_size,
                compression_type=compression,
                on_corrupt=self.on_corrupt,
                **self._options,
            )
        return self._readers[compression]

    def read(self, source: SectionSource, compression: Any, start: RecordPosition) -> Any:
        return read_inputs(self._reader(compression), [source], start)

    def convert(self, elements: Any) -> Iterator[Any]:
        return map(import_module("pyarrow").record_batch, elements)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_readers": {}}  # another process makes its own


class NumpyBatches(_Batches):
    """Elements are dicts of numpy columns.

    Args:
        features: A specification of Examples.
        columns: The names of the features to read; None: all.
    """

    def __init__(self, features: Any, columns: Any, batch_size: int, on_corrupt: OnCorrupt) -> None:
        super().__init__(batch_size, on_corrupt)
        if isinstance(features, tuple) or getattr(features, "sequence_features", None):
            raise ValueError('SequenceExamples need batches_as="arrow"')
        names = open_no_files(features, columns=columns).types  # checks the columns
        _check_columns(names)
        self._options = {
            "sampled": is_sample(features),
            "notes_unknown": columns is None and notes_unknown(features),
        }
        keys = {column_name(key): key for key in features}
        self._parser = Parser({keys[name]: features[keys[name]] for name in names})

    def read(self, source: SectionSource, compression: Any, start: RecordPosition) -> Any:
        reading = make_options(compression, on_corrupt=self.on_corrupt, max_record_size=None)
        options = ParsingOptions(self._batch_size, reading, **self._options)
        return parse_from(self._parser, [source], options, start)

    def convert(self, elements: Any) -> Iterator[Any]:
        return iter(elements)


# ---- Which parts of which files -----------------------------------------------------------------
_LOGGER = logging.getLogger(__name__)
_MIME_TYPE = "application/octet-stream"
_INFINITY = OffsetRangeTracker.OFFSET_INFINITY
_INDEX_SUFFIX = index_beside("")

# Bytes of a range that is read at a time by ReadAll; runners choose them for Read.
_BUNDLE_BYTES = 64 << 20
# Files that a specification is inferred from.
_INFERRED_FILES = 8

# Compressions that the record reader inflates itself: faster than Beam, and a stream that was cut
# is an error.
_INFLATED_HERE = {
    CompressionTypes.AUTO: "auto",
    CompressionTypes.GZIP: "GZIP",
    CompressionTypes.DEFLATE: "ZLIB",
}


def inferred_features(pattern: Any, compression_type: str, on_corrupt: Any) -> Any:
    """The specification of the first files that match a pattern.

    Raises:
        TypeError, OSError: As Beam's sources of files.
        ValueError: The pattern is not known yet, or the files are empty.
    """
    if isinstance(pattern, ValueProvider):
        raise ValueError("features must be given where the pipeline's options give the pattern")
    FileBasedSource(pattern, compression_type=compression_type)  # checks the arguments
    paths = [file.path for file in _matched(pattern, False) if file.size]
    if not paths:
        raise ValueError(f"{show_path(pattern)}: the files are empty; give features")
    compression: Any = _INFLATED_HERE.get(compression_type, "")
    with contextlib.ExitStack() as files:
        sources = [
            SectionSource(files.enter_context(_open(path, compression_type)), path)
            for path in paths[:_INFERRED_FILES]
        ]
        features = infer_table(sources, compression, on_corrupt)
    features.complete &= len(paths) <= _INFERRED_FILES
    return features


def _open(path: str, compression_type: str) -> Any:
    """Opens a file of Beam, inflated only if the record reader cannot do that."""
    if compression_type == CompressionTypes.AUTO:
        compression_type = CompressionTypes.detect_compression_type(path)
    if compression_type in _INFLATED_HERE:
        compression_type = CompressionTypes.UNCOMPRESSED
    return FileSystems.open(path, _MIME_TYPE, compression_type)


class _MatchedFile(NamedTuple):
    """A file, and whether it has an index beside it that can be used."""

    path: str
    size: int
    indexed: bool


def _matched(pattern: str | FileMetadata, with_indexes: bool) -> list[_MatchedFile]:
    """The files of records that a name stands for, by the rules of ``read_records``; or one that
    was matched, unless it is an index. None is no error here."""
    if isinstance(pattern, FileMetadata):
        files = {} if pattern.path.endswith(_INDEX_SUFFIX) else {pattern.path: pattern}
        listed = pattern.path
    else:
        listed, files = _listed(pattern)
    indexes = files
    if with_indexes and files:
        try:
            indexes = files | _metadata(listed + _INDEX_SUFFIX)
        except BeamIOError as error:  # of a filesystem that does not list
            _LOGGER.info("no indexes beside %s: %s", listed, error)
    return [
        _MatchedFile(path, file.size_in_bytes, with_indexes and _has_index(file, indexes))
        for path, file in files.items()
    ]


def _listed(name: str) -> tuple[str, dict[str, FileMetadata]]:
    """The pattern of a path, a pattern, a folder or a set of shards, and the files of records that
    match it. A folder is a local one, or a URL that ends with a slash."""
    is_local = FileSystems.get_scheme(name) is None
    pattern, num_shards = as_pattern(name)
    asked = meanings(pattern, num_shards, os.path.isdir if is_local else lambda folder: False)
    if os.path.isdir(name) if is_local else name.endswith("/"):
        asked, num_shards = (
            iter([FileSystems.join(glob.escape(name) if is_local else name, "*")]),
            0,
        )
    elif glob.has_magic(pattern) and FileSystems.exists(name):
        return name, {name: FileSystems.get_filesystem(name).metadata(name)}
    found: dict[str, FileMetadata] = {}
    for pattern in asked:
        if found := _metadata(pattern):
            break
    else:
        return pattern, found
    chosen = files_that_match(name, pattern, num_shards, dict.fromkeys(found, False))
    return pattern, {path: found[path] for path in chosen}


def _metadata(pattern: str) -> dict[str, FileMetadata]:
    return {found.path: found for found in FileSystems.match([pattern])[0].metadata_list}


def _has_index(file: FileMetadata, indexes: Mapping[str, FileMetadata]) -> bool:
    index = indexes.get(index_beside(file.path))
    if index is None:
        return False
    if index.last_updated_in_seconds < file.last_updated_in_seconds:
        _LOGGER.warning("%s is older than its file, which is not split", index.path)
        return False
    return True


def _load_index(path: str, size: int) -> tuple[np.ndarray[Any, Any], str]:
    """The offsets of an index, and the compression of its file.

    Raises:
        DataLossError: It is stale or damaged.
        OSError: It cannot be read.
    """
    if FileSystems.get_scheme(path) is None:
        index = RecordIndex.load(path, ignore_mtime=True)
        return index.offsets, index.compression
    with FileSystems.open(index_beside(path), _MIME_TYPE, CompressionTypes.UNCOMPRESSED) as file:
        data = file.read()
    return offsets_of_index(data, path, size)


class BeamReading(NamedTuple):
    """How files are read.

    Attributes:
        elements: What their records become.
        compression_type: Of Beam.
        with_filename: Give pairs of the path and an element.
    """

    elements: Elements
    compression_type: str
    with_filename: bool

    @property
    def splits(self) -> bool:
        """Whether files may be split: not if damage in one part of a file ends the others."""
        return self.elements.on_corrupt in ("raise", "skip")


class BeamFileSource(iobase.BoundedSource):
    """One file. Positions are offsets of bytes; a record belongs to the range it begins in.

    Args:
        path, size: The file.
        indexed: Whether it has an index beside it, so that it can be split.
        reading: How it is read.
    """

    def __init__(self, path: str, size: int, indexed: bool, reading: BeamReading) -> None:
        self._path = path
        self._size = size
        self._indexed = indexed
        self._reading = reading

    def estimate_size(self) -> int:
        return self._size

    def split(
        self, desired_bundle_size: Any, start_position: Any = None, stop_position: Any = None
    ) -> Iterator[iobase.SourceBundle]:
        if not self._indexed:
            yield iobase.SourceBundle(self._size, self, 0, _INFINITY)
            return
        whole = OffsetRange(start_position or 0, stop_position or self._size)
        for part in whole.split(desired_bundle_size or _INFINITY):
            yield iobase.SourceBundle(part.size(), self, part.start, part.stop)

    def get_range_tracker(self, start_position: Any, stop_position: Any) -> iobase.RangeTracker:
        if not self._indexed:
            return UnsplittableRangeTracker(OffsetRangeTracker(0, _INFINITY))
        return OffsetRangeTracker(
            0 if start_position is None else start_position,
            self._size if stop_position is None else stop_position,
        )

    def read(self, range_tracker: iobase.RangeTracker) -> Iterator[Any]:
        """The elements of a range. What lies between two points at which the file can be split is
        claimed before it is read, and then belongs to this range as a whole."""
        sections = self._sections(range_tracker)
        if not sections:
            return
        with _open(self._path, self._reading.compression_type) as file:
            for start, stop in sections:
                if not range_tracker.try_claim(start.offset):
                    return
                elements = self._read_section(file, start, stop)
                if self._reading.with_filename:
                    elements = ((self._path, element) for element in elements)
                yield from elements

    def _sections(
        self, range_tracker: iobase.RangeTracker
    ) -> list[tuple[RecordPosition, int | None]]:
        """The first record of every section that begins in a range, and where the section ends."""
        numbers, offsets, end = np.zeros(1, np.int64), np.zeros(1, np.int64), None
        if self._indexed:
            found, compression = _load_index(self._path, self._size)
            if not compression:
                numbers = self._reading.elements.split_points(found)
                offsets, end = found[numbers], int(found[-1])
        first, last = np.searchsorted(
            offsets, [range_tracker.start_position(), range_tracker.stop_position()]
        )
        starts = map(RecordPosition, numbers.tolist(), offsets.tolist())
        return list(zip(starts, [*offsets[1:].tolist(), end], strict=True))[first:last]

    def _read_section(self, file: Any, start: RecordPosition, stop: int | None) -> Iterator[Any]:
        elements, compression = self._reading.elements, ""
        if stop is None:
            compression = _INFLATED_HERE.get(self._reading.compression_type, "")
        with elements.read(SectionSource(file, self._path, stop), compression, start) as found:
            yield from elements.convert(found)
            skipped = found.skipped
        if skipped:
            Metrics.counter("tfwire.beam", "skipped_regions").inc(skipped.num_regions)
            Metrics.counter("tfwire.beam", "skipped_bytes").inc(skipped.num_bytes)

    def __repr__(self) -> str:
        return f"BeamFileSource({self._path!r})"


class TFRecordSource(FileBasedSource):
    """The files that match a pattern. The other arguments are checked as those of Beam's own."""

    def __init__(self, file_pattern: Any, reading: BeamReading, validate: bool) -> None:
        super().__init__(file_pattern, compression_type=reading.compression_type, validate=validate)
        self._reading = reading
        self._concat_source: ConcatSource | None = None

    def _validate(self) -> None:
        """Beam's constructor calls this where the pattern is known."""
        pattern = self._pattern.get()
        if not _matched(pattern, False):
            raise OSError(f"No files found based on the file pattern {pattern}")

    def _get_concat_source(self) -> ConcatSource:
        """Beam's methods call this; its own gives sources that are split at any byte."""
        if self._concat_source is None:
            pattern = self._pattern.get()
            files = [file for file in _matched(pattern, self._reading.splits) if file.size]
            FileSystems.report_source_lineage(pattern)
            self._concat_source = ConcatSource(
                [BeamFileSource(*file, self._reading) for file in files]
            )
        return self._concat_source


class FindRanges(DoFn):
    """From a pattern or a FileMetadata to the ranges of its files."""

    def __init__(self, reading: BeamReading) -> None:
        self._reading = reading

    def process(self, element: str | FileMetadata) -> Iterator[tuple[Any, ...]]:
        if not isinstance(element, (str, FileMetadata)):
            raise TypeError(f"expected a path or a FileMetadata, found {type(element).__name__}")
        for file in _matched(element, self._reading.splits):
            FileSystems.report_source_lineage(file.path)
            if file.size:
                for part in BeamFileSource(*file, self._reading).split(_BUNDLE_BYTES):
                    yield (*file, part.start_position, part.stop_position)


class ReadRanges(DoFn):
    """From ranges of files to elements."""

    def __init__(self, reading: BeamReading) -> None:
        self._reading = reading

    def process(self, element: tuple[Any, ...]) -> Iterator[Any]:
        path, size, indexed, start, stop = element
        source = BeamFileSource(path, size, indexed, self._reading)
        return source.read(source.get_range_tracker(start, stop))
