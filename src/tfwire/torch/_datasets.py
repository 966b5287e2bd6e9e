"""The datasets: of a stream, and of records by number."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch.utils import data

from tfwire import DataLossError, Dataset, DatasetIterator, Parser, RaggedFeature, TFRecordFiles
from tfwire._interface.messages import boolean, integer
from tfwire._interface.pipelines import (
    Epochs,
    NumberedParser,
    PackedRows,
    PackingParser,
    as_key,
    check_rule,
    chosen_numbers,
    generator,
    in_memory,
    iterate,
    packing_batches,
    size_in_memory,
    threaded,
)
from tfwire.torch._tensors import BatchStringList, StringList, Strings, check_form, converted
from tfwire.torch._worker_batches import FormedRows, Item, Items, collate, handed_over

if TYPE_CHECKING:
    from tfwire.typing import (
        AnyFeature,
        AnyPath,
        BytesAs,
        RecordsByKey,
        ShardRule,
        StorageOptions,
        Value,
    )

Key = TypeVar("Key")


# ---- Iterable style ---------------------------------------------------------------------------


class TFRecordIterableDataset(data.IterableDataset):
    """A tfwire Dataset for DataLoader: every worker of every rank reads its share of the source.

    Use ``DataLoader(..., batch_size=None, collate_fn=tfwire.torch.collate)``: the pipeline makes
    the batches, and torch's own function would look at every string. With any other ``batch_size``
    batches are collated again: tensors get one more axis, and strings are a ValueError.

    With ``num_threads`` above 1 and no workers, threads of this process read and parse while torch
    computes. A worker hands a batch over in one block, in 0.1 ms or more, and copies it, so workers
    pay only if a function of ``map`` is slow.

    Every epoch is shuffled differently, in workers too. Epochs are counted; ``set_epoch`` sets the
    number of the next. Seeds and this number alone determine the order. After a shuffle of all
    records with a seed (``indexed=True``), or of the files (``shuffle_files=True``), every rank has
    other records in every epoch. StatefulDataLoader saves and resumes iterators.

    Args:
        dataset: A Dataset, most often a TFRecordDataset, shuffled, batched and parsed.
        rule: How its source is divided, as for :meth:`tfwire.Dataset.shard_source`. If all ranks
            must run the same number of steps, use "drop" or "pad", and ``indexed=True``.
        rank: The number of this process; None asks torch.distributed, if it is initialized.
        world_size: The number of processes; None likewise.
        num_threads: How many threads parse, as for :meth:`tfwire.Dataset.parse_example`, in each
            worker: leave 1 with workers, which share the cores. 1 leaves the dataset as it is.
        num_workers: That of the DataLoader, if ``len`` is wanted: each worker makes an incomplete
            last batch of its own, so the number of batches depends on it.
        strings, nested: The form of strings and RaggedTensors, as for :func:`as_tensors`.

    Raises:
        TypeError: ``dataset`` is not a Dataset; of ``len``: the length is not known.
        ValueError: ``rule`` or ``strings`` is unknown, ``num_threads`` below 1, or ``num_workers``
            below 0; while iterating: the rule needs an index.

    Example:
        >>> features = {"x": tfw.FixedLenFeature([8], tfw.float32)}
        >>> dataset = tfw.TFRecordDataset("rows.tfrecord", indexed=True).shuffle(10_000)
        >>> dataset = dataset.batch(2).parse_example(features)
        >>> dataset = TFRecordIterableDataset(dataset, num_threads=2)
        >>> loader = torch.utils.data.DataLoader(dataset, batch_size=None)
        >>> for batch in loader:
        ...     print(batch["x"].shape)
        torch.Size([2, 8])
        torch.Size([2, 8])
    """

    def __init__(
        self,
        dataset: Dataset[object],
        *,
        rule: ShardRule = "even",
        rank: int | None = None,
        world_size: int | None = None,
        num_threads: int = 1,
        num_workers: int | None = None,
        strings: Strings = "list",
        nested: bool = False,
    ) -> None:
        self._form = check_form(strings, nested)
        self._dataset = threaded(dataset, num_threads)
        self._form["list"] = BatchStringList if self._dataset._stage.batched else StringList
        check_rule(rule)
        if num_workers is not None:
            num_workers = integer("num_workers", num_workers, 0)
        self._num_workers = num_workers
        self._rule = rule
        self._rank = rank
        self._world_size = world_size
        self._shares: dict[tuple[int, int], Dataset[Any]] = {}  # kept: their shuffles have seeds
        # The next epoch of each worker; in memory that persistent workers share.
        self._next_epochs = torch.zeros(_slot(0, _MOST_WORKERS + 1), dtype=torch.int64)
        self._next_epochs.share_memory_()
        self.set_epoch(Epochs(dataset._stage).next())

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next epoch, before a DataLoader iterates; as ``set_epoch`` of
        DistributedSampler. Without it, every process counts from 0. If persistent workers are in
        a pass that was broken off, each must have given a batch of it.

        Args:
            epoch: The number. All ranks must have the same.

        Raises:
            ValueError: ``epoch`` is negative.
        """
        self._next_epochs.fill_(integer("epoch", epoch, 0))

    def __len__(self) -> int:
        if self._num_workers is None:
            raise TypeError("len needs the DataLoader's num_workers: pass it here, too")
        rank, world_size = self._process()
        workers = max(1, self._num_workers)
        numbers = range(rank * workers, (rank + 1) * workers)
        return sum(len(self._share(world_size * workers, number)) for number in numbers)

    def __iter__(self) -> DatasetIterator[Value]:
        return self._iterate(1)

    def _iterate(self, num_threads: int, packs: bool = False) -> DatasetIterator[Value]:
        """A pass that parses in this many threads; 1: as the dataset says.

        Args:
            packs: Batches may be PackedRows.
        """
        rank, world_size = self._process()
        worker = data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        share = self._share(world_size * workers, rank * workers + number)
        if workers > _MOST_WORKERS:
            raise ValueError(f"at most {_MOST_WORKERS} workers share a dataset, found {workers}")
        slot = _slot(number, 0 if worker is None else workers)
        epochs = _WorkerEpochs(share._stage, self._next_epochs, slot)
        stage = threaded(share, num_threads)._stage
        if packs:
            stage = packing_batches(stage, "column" if self._form["strings"] == "tensor" else None)
        return iterate(stage, self._shown, epochs)

    def _shown(self, element: Any) -> Value:
        if isinstance(element, PackedRows):
            return FormedRows(element, self._form)
        return handed_over(converted(element, self._form))

    def _share(self, num_shards: int, index: int) -> Dataset[Any]:
        if num_shards == 1:
            return self._dataset
        if (num_shards, index) not in self._shares:
            share = self._dataset.shard_source(num_shards, index, self._rule)
            self._shares[num_shards, index] = share
        return self._shares[num_shards, index]

    def _process(self) -> tuple[int, int]:
        """The rank of this process and how many there are."""
        distributed = torch.distributed
        running = distributed.is_available() and distributed.is_initialized()
        rank, world_size = self._rank, self._world_size
        if world_size is None:
            world_size = distributed.get_world_size() if running else 1
        if rank is None:
            rank = distributed.get_rank() if running else 0
        return rank, world_size

    def __getstate__(self) -> dict[str, Any]:
        """Includes the rank: spawned workers do not know the process group."""
        state = dict(self.__dict__)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            state["_rank"], state["_world_size"] = self._process()
        return state

    def __repr__(self) -> str:
        return f"TFRecordIterableDataset({self._dataset!r})"


_MOST_WORKERS = 128  # of one DataLoader


def _slot(worker: int, num_workers: int) -> int:
    """The place of a worker's count of epochs. Loaders with other numbers of workers have places of
    their own: each of their workers must find the same number. No workers: this process."""
    return num_workers * (num_workers - 1) // 2 + worker + bool(num_workers)


class _WorkerEpochs(Epochs):
    """Counts epochs in shared memory: most workers live for one epoch."""

    def __init__(self, stage: Any, next_epochs: torch.Tensor, slot: int) -> None:
        super().__init__(stage)
        self._next_epochs = next_epochs
        self._slot = slot

    def next(self) -> int:
        return int(self._next_epochs[self._slot])

    def set_next(self, epoch: int) -> None:
        self._next_epochs[self._slot] = epoch


# ---- Map style --------------------------------------------------------------------------------

_IN_MEMORY_BYTES = 1 << 28  # of files that are read whole


class TFRecordMapDataset(data.Dataset):
    """The records of TFRecord files by number, for samplers and for shuffling by DataLoader.

    A DataLoader gets each batch in one read and one parse. Workers and samplers, DistributedSampler
    too, need no configuration. ``dataset[i]`` is an item; ``dataset[[2, 0]]``, with a slice or an
    array of numbers, too, is a batch. With ``transform``, records are parsed one by one.

    Args:
        paths: Regular files and URLs, as for :func:`tfwire.read_records`. If an index is saved
            beside a file (``tfwire index``), its headers are not read.
        features: A specification as for :func:`tfwire.parse_example`; None: items are bytes.
        in_memory: Read the files once, now, and parse from memory, which forked workers share:
            several times as fast. None: if they take up to 256 MiB. False: each batch is read from
            the files; compressed ones should have indexes with seek points then, as for
            :class:`tfwire.TFRecordFile`, and small records better be in plain files.
        transform: A function of every item: bytes, or a dict of tensors. Batches are collated of
            what it returns. Rows of RaggedFeatures stay rows where it returns the item, changed or
            not, or a dict with the same tensors.
        seed: ``transform`` gets a ``numpy.random.Generator`` as a second argument, for random
            augmentation. Its numbers depend on the seed, the epoch of :meth:`set_epoch` and the
            number of the record alone, not on samplers, workers and threads.
        strings, nested: The form of strings and RaggedTensors, as for :func:`as_tensors`.
        storage_options: fsspec's options of the filesystem of URLs.

    Raises:
        DataLossError, OSError: A file cannot be read or indexed.
        TypeError: ``transform`` is not callable, or ``seed`` not an integer.
        ValueError: ``strings`` is another word, or there is a seed without a transform.

    Example:
        >>> features = {"x": tfw.FixedLenFeature([8], tfw.float32)}
        >>> dataset = TFRecordMapDataset("rows.tfrecord", features)
        >>> for batch in torch.utils.data.DataLoader(dataset, batch_size=2, shuffle=True):
        ...     print(batch["x"].shape)
        torch.Size([2, 8])
        torch.Size([2, 8])
    """

    def __init__(
        self,
        paths: AnyPath | Iterable[AnyPath],
        features: Mapping[Key, AnyFeature] | None = None,
        *,
        in_memory: bool | None = None,
        transform: Callable[..., object] | None = None,
        seed: int | None = None,
        strings: Strings = "list",
        nested: bool = False,
        storage_options: StorageOptions = None,
    ) -> None:
        self._form = check_form(strings, nested)
        self._transform = _Transform(transform, seed) if transform is not None else None
        if seed is not None and transform is None:
            raise ValueError("seed is for transform, and there is none")
        bytes_as: BytesAs = "column" if strings == "tensor" else "object"
        self._parser: Any = None
        if features is not None:
            self._parser = Parser(features, bytes_as=bytes_as)
        self._ragged = frozenset(
            key
            for key, feature in (features or {}).items()
            if type(feature).__name__ == RaggedFeature.__name__
        )
        self._in_memory = None if in_memory is None else boolean("in_memory", in_memory)
        self._records = TFRecordFiles(paths, storage_options=storage_options)
        self._numbered = NumberedParser(self._parser, self._records)
        self._packing: NumberedParser | None = None  # made when it is asked for
        self._memory = self._read()

    def _read(self) -> Any:
        """All records, if they are to be in memory and parsed."""
        if self._parser is None or self._in_memory is False:
            return None
        if self._in_memory:
            return in_memory(self._records)
        if size_in_memory(self._records) <= _IN_MEMORY_BYTES:
            with contextlib.suppress(DataLossError, OSError):  # comes at the record
                return in_memory(self._records)
        return None

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch on which the random numbers of ``transform`` depend, in worker processes,
        too. Call it before each epoch, beside that of a sampler; else all are as epoch 0.

        Args:
            epoch: The number. All ranks should have the same.

        Raises:
            ValueError: ``epoch`` is negative.
        """
        epoch = integer("epoch", epoch, 0)
        if self._transform is not None:
            self._transform.epoch.fill_(epoch)

    def _epoch(self) -> int | None:
        """The epoch on which items depend, if they do."""
        transform = self._transform
        return int(transform.epoch) if transform is not None and transform.seeded else None

    def __len__(self) -> int:
        return len(self._records)

    @property
    def by_key(self) -> RecordsByKey:
        """The records by key, as :attr:`tfwire.TFRecordFiles.by_key`. ``by_key.find(keys)`` gives
        their numbers, for ``dataset[numbers]``, ``torch.utils.data.Subset`` or a sampler."""
        return self._records.by_key

    def __getitem__(self, index: int | slice | Sequence[int]) -> Value:
        """One record: bytes, or a dict of tensors as of ``parse_single_example``. Several: a list
        of bytes, or a batch. With ``transform``: what it returns, or a batch of that."""
        key: Any = index
        if not isinstance(key, slice) and np.ndim(key) == 0:
            record: Any = self._records[key]
            item = record if self._parser is None else self._single(record)
            if self._transform is None:
                return item
            return self._transform(item, range(len(self))[operator.index(key)])
        if self._transform is not None:
            return collate(self._transformed(chosen_numbers(self._records, key)))
        if self._parser is None:
            return self._records[key]
        form = {**self._form, "list": BatchStringList}  # a loader may collate what a sampler chose
        return handed_over(self._batch(chosen_numbers(self._records, key), form))

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Value]:
        """Many records. ``collate`` and ``default_collate`` make a batch of them in one parse."""
        try:
            numbers = chosen_numbers(self._records, indices)
        except (TypeError, ValueError):
            if not any(map(np.ndim, indices)):
                raise
            message = "a sampler that gives batches of numbers needs batch_size=None in DataLoader"
            raise TypeError(message) from None
        if self._transform is not None:
            return self._transformed(numbers)
        return self._records[numbers] if self._parser is None else _Chosen(self, numbers)

    def _transformed(self, numbers: Any) -> list[Any]:
        assert self._transform is not None
        records: Any = self._records[numbers]
        items = records if self._parser is None else map(self._single, records)
        return list(map(self._transform, items, numbers.tolist()))

    def _batch(self, numbers: Any, form: dict[str, Any]) -> Value:
        if self._memory is None:
            return converted(self._numbered.parse(numbers), form)
        return converted(self._parser.parse(self._memory[numbers]), form)

    def _rows(self, numbers: Any) -> Value:
        """As ``_batch``, but FormedRows where C parses them."""
        if self._packing is None:
            self._packing = NumberedParser(PackingParser.over(self._parser), self._records)
        found = self._packing.parse(numbers if self._memory is None else self._memory[numbers])
        packed = isinstance(found, PackedRows)
        return FormedRows(found, self._form) if packed else converted(found, self._form)

    def _single(self, record: bytes) -> Item:
        item = Item(converted(self._parser.parse_single(record), self._form))
        item.ragged, item.nested = self._ragged, self._form["nested"]
        return item

    def __getstate__(self) -> dict[str, Any]:
        """Without the records: another process reads them again."""
        return {**self.__dict__, "_memory": None, "_packing": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._memory = self._read()

    def __repr__(self) -> str:
        return f"<TFRecordMapDataset of {len(self)} records in {len(self._records.paths)} files>"


class _Transform:
    """A function of items, with the random numbers of a record if there is a seed.

    Attributes:
        epoch: In memory that workers share.
        seeded: Whether the function gets random numbers.
    """

    def __init__(self, function: Any, seed: int | None) -> None:
        if not callable(function):
            raise TypeError(f"transform must be callable, found {type(function).__name__}")
        self._function = function
        self._seed = None if seed is None else integer("seed", seed)
        self.seeded = seed is not None
        self.epoch = torch.zeros(1, dtype=torch.int64).share_memory_()

    def __call__(self, item: Any, number: int) -> Any:
        words: tuple[Any, ...] = ()
        if self._seed is not None:
            words = (generator(as_key(self._seed, int(self.epoch), number)),)
        found = self._function(item, *words)
        if type(found) is not dict or not isinstance(item, Item):
            return found
        # A dict like {**item, "y": y}: rows that are the item's stay rows of a RaggedTensor.
        new = Item(found)
        new.ragged = frozenset(key for key in item.ragged & found.keys() if found[key] is item[key])
        new.nested = item.nested
        return new


class _Chosen(Items):
    """Items that are parsed one by one on access, or all at once as a batch."""

    def __init__(self, dataset: TFRecordMapDataset, numbers: Any) -> None:
        self._dataset = dataset
        self._numbers = numbers
        self._records: list[bytes] | None = None  # all of them, if several items are asked for
        self._asked = False

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _Chosen(self._dataset, self._numbers[index])
        if not self._asked:  # default_collate looks at the first item, and no other
            self._asked = True
            return self._dataset[self._numbers[index]]
        if self._records is None:
            self._records = self._dataset._records[self._numbers]
        return self._dataset._single(self._records[index])

    def columns(self) -> Value:
        return self._dataset._batch(self._numbers, self._dataset._form)

    def rows(self) -> Value:
        return self._dataset._rows(self._numbers)
