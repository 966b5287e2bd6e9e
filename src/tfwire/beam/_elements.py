"""What the records of a file become: the elements of a PCollection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from apache_beam import coders

from tfwire import Parser, RecordPosition, read_records
from tfwire._interface.files import SectionSource, make_options
from tfwire._interface.messages import column_name
from tfwire._interface.partitions import ParsingOptions
from tfwire.arrow import ArrowReader, open_reader

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
            self._readers[compression] = open_reader(
                [],
                self._features,
                batch_size=self._batch_size,
                compression_type=compression,
                on_corrupt=self.on_corrupt,
                **self._options,
            )
        return self._readers[compression]

    def read(self, source: SectionSource, compression: Any, start: RecordPosition) -> Any:
        return self._reader(compression)._read(source, start)

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
        names = open_reader([], features, columns=columns).types  # checks the columns
        _check_columns(names)
        keys = {column_name(key): key for key in features}
        self._parser = Parser({keys[name]: features[keys[name]] for name in names})

    def read(self, source: SectionSource, compression: Any, start: RecordPosition) -> Any:
        reading = make_options(compression, on_corrupt=self.on_corrupt, max_record_size=None)
        options = ParsingOptions(self._batch_size, reading)
        return self._parser._parse_from(source, options, start)

    def convert(self, elements: Any) -> Iterator[Any]:
        return iter(elements)
