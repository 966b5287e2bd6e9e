"""TFRecord files for Grain, JAX's input pipelines: by record number, and as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from tfwire import Dataset, Parser, TFRecordFiles
from tfwire._interface.messages import integer
from tfwire._interface.pipelines import Epochs, NumberedParser, chosen_numbers, iterate, threaded

try:
    import grain
except ImportError as _error:
    raise ImportError(
        "tfwire.grain needs grain 0.2.3 or newer; pip install 'tfwire[grain]'"
    ) from _error

if TYPE_CHECKING:
    from tfwire.typing import AnyFeature, AnyPath, StorageOptions, Value

__all__ = ["TFRecordDataSource", "TFRecordIterDataset"]

Key = TypeVar("Key")


class TFRecordDataSource:
    """A ``grain.RandomAccessDataSource`` of the records of TFRecord files.

    For ``grain.MapDataset.source`` and ``grain.DataLoader``. Threads may share it; worker processes
    get copies. Grain handles about 100,000 elements per second. With batch_size, an element is a
    batch of consecutive records, read and parsed at once, and the pipeline shuffles batches.

    Args:
        paths: Regular files and URLs, as for :func:`tfwire.read_records`. If an index is saved
            beside a file (``tfwire index``), its headers are not read. Compressed
            files should have indexes with seek points, as for :class:`tfwire.TFRecordFile`.
        features: A specification as for :func:`tfwire.parse_example`; None: elements are bytes.
        batch_size: Records per element; the last one may have fewer. None: elements are records.
        storage_options: fsspec's options of the filesystem of URLs.

    Raises:
        DataLossError, OSError: A file cannot be read or indexed.
        ValueError: batch_size is below 1.

    Example:
        >>> features = {"x": tfw.FixedLenFeature([8], tfw.float32)}
        >>> source = TFRecordDataSource("rows.tfrecord", features)
        >>> for batch in grain.MapDataset.source(source).shuffle(seed=1).batch(2):
        ...     print(batch["x"].shape)
        (2, 8)
        (2, 8)
    """

    def __init__(
        self,
        paths: AnyPath | Iterable[AnyPath],
        features: Mapping[Key, AnyFeature] | None = None,
        *,
        batch_size: int | None = None,
        storage_options: StorageOptions = None,
    ) -> None:
        self._batch_size = None if batch_size is None else integer("batch_size", batch_size, 1)
        self._records = TFRecordFiles(paths, storage_options=storage_options)
        self._parser = None if features is None else Parser(features)
        self._numbered = NumberedParser(self._parser, self._records)

    def __len__(self) -> int:
        return -(-len(self._records) // (self._batch_size or 1))

    def __getitem__(self, index: int) -> Value:
        """Element i: bytes, or parsed as by ``parse_single_example``; with batch_size a list of
        bytes, or parsed as by ``parse_example``."""
        if self._batch_size is None:
            record = self._records[index]
            return record if self._parser is None else self._parser.parse_single(record)
        number = range(len(self))[index]
        chosen = slice(number * self._batch_size, (number + 1) * self._batch_size)
        if self._parser is None:
            return self._records[chosen]
        batch: Value = self._numbered.parse(chosen_numbers(self._records, chosen))
        return batch

    def _getitems(self, indices: Sequence[int]) -> list[Value]:
        """Many elements, for Grain, which asks for a batch at once: their records in one read."""
        if self._batch_size is not None:
            return [self[index] for index in indices]
        records = self._records[list(indices)]
        return records if self._parser is None else list(map(self._parser.parse_single, records))

    def __repr__(self) -> str:
        """Equal for equal files and arguments: Grain's checkpoints compare it."""
        batches = "" if self._batch_size is None else f", batch_size={self._batch_size}"
        files = [str(path) for path in self._records.paths]
        return f"TFRecordDataSource({files!r}, {len(self._records)} records{batches})"


class TFRecordIterDataset(grain.IterDataset["Value"]):
    """A tfwire Dataset as a ``grain.IterDataset``: a stream, which needs no index.

    Grain saves and resumes its iterators with its own. Each worker process of ``mp_prefetch``, and
    each thread of ``grain.experimental.multithread_prefetch``, reads its share of the source. Every
    pass is an epoch, in another order. Grain's repetition of a stream gives the same order again:
    repeat the Dataset instead, ``dataset.shuffle(n, seed).repeat()``.

    Args:
        dataset: A Dataset, most often a TFRecordDataset, shuffled, batched and parsed.
        num_threads: How many threads parse, as for :meth:`tfwire.Dataset.parse_example`; 1 leaves
            the dataset as it is.

    Raises:
        TypeError: ``dataset`` is not a Dataset.
        ValueError: ``num_threads`` is below 1.

    Example:
        >>> features = {"x": tfw.FixedLenFeature([8], tfw.float32)}
        >>> stream = tfw.TFRecordDataset("rows.tfrecord").shuffle(10_000).batch(2)
        >>> for batch in TFRecordIterDataset(stream.parse_example(features)):
        ...     print(batch["x"].shape)
        (2, 8)
        (2, 8)
    """

    def __init__(self, dataset: Dataset[object], *, num_threads: int = 1) -> None:
        super().__init__()
        self._dataset = self._share = threaded(dataset, num_threads)

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Selects the share of worker ``sl.start`` of ``sl.step``; Grain calls it."""
        self._share = self._dataset.shard_source(sl.step, sl.start)

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next epoch, on which shuffled orders depend. Worker processes
        count from it.

        Args:
            epoch: The number. All processes must have the same.

        Raises:
            ValueError: ``epoch`` is negative.
        """
        self._dataset.set_epoch(epoch)
        self._share.set_epoch(epoch)

    def __iter__(self) -> _Iterator:
        return _Iterator(self._share)

    def __repr__(self) -> str:
        return f"TFRecordIterDataset({self._dataset!r})"


class _LateEpochs(Epochs):
    """Counts a pass with its first element: Grain makes iterators for their states alone, some in
    threads, and the processes that it starts count from there."""

    _begun: int | None = None

    def begin(self) -> int:
        self._begun = self.next()
        return self._begun

    def count(self) -> None:
        if self._begun is not None:
            self.set_next(self._begun + 1)

    def set_next(self, epoch: int) -> None:
        self._begun = None
        super().set_next(epoch)


class _Iterator(grain.DatasetIterator["Value"]):
    def __init__(self, dataset: Dataset[object]) -> None:
        super().__init__()
        self._stage = dataset._stage
        self._epochs = _LateEpochs(self._stage)
        self._elements = iterate(self._stage, epochs=self._epochs)
        self._loaded: dict[str, object] | None = None  # the state, until an element is drawn

    def __next__(self) -> Value:
        self._loaded = None
        self._epochs.count()
        return next(self._elements)

    def get_state(self) -> dict[str, object]:
        return self._elements.state_dict() if self._loaded is None else dict(self._loaded)

    def set_state(self, state: dict[str, object]) -> None:
        epochs = _LateEpochs(self._stage)
        elements = iterate(self._stage, epochs=epochs)  # new: the old ones may be at their end
        elements.load_state_dict(state)
        self._elements.close()
        self._elements, self._epochs = elements, epochs
        self._loaded = dict(state)

    def close(self) -> None:
        self._elements.close()
