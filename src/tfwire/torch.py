"""TFRecord files for PyTorch: datasets for torch.utils.data.DataLoader, tensors without copies.

torch has no tensors of strings: they are lists of bytes. A SparseTensor ``s`` and a RaggedTensor
``r`` hold tensors; ``torch.sparse_coo_tensor(s.indices.T, s.values, tuple(s.dense_shape))`` and
``torch.nested.nested_tensor_from_jagged(r.values, r.row_splits)`` are torch's forms of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch.utils import data

from tfwire._base.arguments import integer
from tfwire._data.batches import threaded
from tfwire._data.dataset import Dataset
from tfwire._data.indexed_records import check_rule
from tfwire._data.iterator import DatasetIterator, Epochs, iterate
from tfwire._examples.columns import RaggedTensor, SparseTensor
from tfwire._parsing.functions import Parser
from tfwire._records.random_access import TFRecordFiles

if TYPE_CHECKING:
    from tfwire._base.aliases import AnyFeature, AnyPath, ShardRule, Value

__all__ = ["TFRecordIterableDataset", "TFRecordMapDataset", "as_tensors"]

Key = TypeVar("Key")


def as_tensors(element: object) -> Value:
    """Replaces arrays by tensors that share their memory.

    Args:
        element: An array or numpy scalar, or a dict, tuple or list of them. Arrays of strings
            become lists; values of other types stay as they are.

    Returns:
        The same structure. Only arrays that tensors cannot share are copied: read-only ones, those
        of foreign byte order, and those with negative strides, such as ``image[:, ::-1]``.

    Example:
        >>> as_tensors({"x": np.ones(2, np.float32), "name": np.array([b"a", b"b"], object)})
        {'x': tensor([1., 1.]), 'name': [b'a', b'b']}
    """
    if isinstance(element, np.ndarray):
        return _as_tensor(element)
    if isinstance(element, np.generic) and element.dtype.kind not in "OSUMm":
        return torch.as_tensor(element)
    if isinstance(element, RaggedTensor):
        return RaggedTensor(as_tensors(element.values), as_tensors(element.row_splits))
    if isinstance(element, SparseTensor):
        return SparseTensor(*map(as_tensors, element))
    if isinstance(element, Mapping):
        return {key: as_tensors(value) for key, value in element.items()}
    if isinstance(element, (tuple, list)):
        items = map(as_tensors, element)
        return type(element)(*items) if hasattr(element, "_fields") else type(element)(items)
    return element


def _as_tensor(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.kind in "OSUMm":
        return array.tolist()
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # torch writes to any memory, and has no negative strides.
    if not array.flags.writeable or min(array.strides, default=0) < 0:
        array = array.copy()
    return torch.from_numpy(array)


# ---- Iterable style ---------------------------------------------------------------------------


class TFRecordIterableDataset(data.IterableDataset):
    """A tfwire Dataset for DataLoader: every worker of every rank reads its share of the source.

    Use ``DataLoader(..., batch_size=None)``: the pipeline makes the batches. With ``num_threads``
    above 1 and no workers, threads of this process read and parse while torch computes. A worker
    takes 1 to 2 ms to hand over a batch of any size, and copies strings, so workers pay only if a
    function of ``map`` is slow. ``collate_fn`` may be a function that returns its argument: torch's
    own looks at every string.

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
        num_threads: Above 1, this many threads parse batches ahead, as for
            :meth:`tfwire.Dataset.parse_example`; 1 leaves the dataset as it is. The batches and
            their order do not depend on it, and a saved state can be loaded with another number.
        num_workers: That of the DataLoader, if ``len`` is wanted: each worker makes an incomplete
            last batch of its own, so the number of batches depends on it.

    Raises:
        TypeError: ``dataset`` is not a Dataset; of ``len``: the length is not known.
        ValueError: ``rule`` is unknown, ``num_threads`` below 1, or ``num_workers`` below 0; while
            iterating: the rule needs an index.

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
    ) -> None:
        self._dataset = threaded(dataset, num_threads)
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
        DistributedSampler. Without it, every process counts from 0.

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
        rank, world_size = self._process()
        worker = data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        share = self._share(world_size * workers, rank * workers + number)
        if workers > _MOST_WORKERS:
            raise ValueError(f"at most {_MOST_WORKERS} workers share a dataset, found {workers}")
        slot = _slot(number, 0 if worker is None else workers)
        epochs = _WorkerEpochs(share._stage, self._next_epochs, slot)
        return iterate(share._stage, as_tensors, epochs)

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


class TFRecordMapDataset(data.Dataset):
    """The records of TFRecord files by number, for samplers and for shuffling by DataLoader.

    A DataLoader gets each batch in one read and one parse. Workers and samplers, DistributedSampler
    too, need no configuration.

    Args:
        paths: Paths of regular files, or one path. If an index is saved beside a file (``tfwire
            index``), its headers are not read. Avoid compressed files: reads begin at their start.
        features: A specification as for :func:`tfwire.parse_example`; None: items are bytes.

    Raises:
        DataLossError, OSError: A file cannot be read or indexed.

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
    ) -> None:
        self._records = TFRecordFiles(paths)
        self._parser = None if features is None else Parser(features)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> Value:
        """One record: bytes, or a dict of tensors as of ``parse_single_example``."""
        record = self._records[index]
        return record if self._parser is None else _parse_single(self._parser, record)

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Value]:
        """Many records. ``default_collate`` makes a batch of them in one parse."""
        records = self._records[indices]
        return records if self._parser is None else _Items(self._parser, records)

    def __repr__(self) -> str:
        return f"<TFRecordMapDataset of {len(self)} records in {len(self._records.paths)} files>"


class _Item(dict[str, Any]):
    """An item. For this type ``default_collate`` calls ``_collate``."""


def _parse_single(parser: Parser[Any, Any], record: bytes) -> _Item:
    return _Item(as_tensors(parser.parse_single(record)))


class _Items(Sequence[_Item]):
    """Items that are parsed one by one on access, or all at once by ``_collate``."""

    def __init__(self, parser: Parser[Any, Any], records: list[bytes]) -> None:
        self._parser = parser
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _Items(self._parser, self._records[index])
        return _parse_single(self._parser, self._records[index])

    def columns(self) -> dict[str, Any]:
        return as_tensors(self._parser.parse(self._records))  # type: ignore[no-any-return]


def _collate(items: Sequence[_Item], *, collate_fn_map: Any = None) -> Any:
    if isinstance(items, _Items):
        return items.columns()
    return data.default_collate(list(map(dict, items)))


# The extension point in the documentation of default_collate.
data._utils.collate.default_collate_fn_map[_Item] = _collate
