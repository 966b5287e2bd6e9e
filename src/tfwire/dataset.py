"""Dataset and TFRecordDataset: small pipelines of numpy elements, with tf.data's method names."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from tfwire._datasets import batches, numbered, sources, stages
from tfwire._datasets.arguments import integer, shard_of
from tfwire._datasets.iterator import DatasetIterator, iterate
from tfwire._datasets.prefetch import Prefetch
from tfwire._datasets.shuffle import Shuffle
from tfwire._datasets.stage import Stage
from tfwire._datasets.structure import map_structure
from tfwire._records.recordfile import make_options
from tfwire._records.sources import split_paths

__all__ = ["Dataset", "DatasetIterator", "TFRecordDataset"]

D = TypeVar("D", bound="Dataset")

_AUTO_PREFETCH = 4  # elements; enough for one that takes longer now and then


class Dataset:
    """A re-iterable sequence of elements: numpy values, bytes, or tuples and dicts of them.

    Made from arrays (``from_tensor_slices``), a generator (``from_generator``) or files
    (``TFRecordDataset``). Every method returns a new dataset and reads nothing; iterating reads.
    It is small on purpose: larger pipelines belong to Grain, torch or Ray.

    Example:
        >>> ds = Dataset.from_tensor_slices({"x": [1, 2, 3]}).map(lambda e: e["x"] * 10)
        >>> next(iter(ds.batch(2)))
        array([10, 20])
    """

    def __init__(self, stage: Stage, name: str = "Dataset") -> None:
        self._stage = stage
        self._name = name

    # What the user's code sees of a leaf, and what becomes of a leaf that it returns. The
    # compat layer shows objects with a numpy() method instead.
    @staticmethod
    def _show(leaf: Any) -> Any:
        return leaf

    @staticmethod
    def _hide(leaf: Any) -> Any:
        return leaf

    def _next(self: D, stage: Stage, name: str) -> D:
        """A dataset of the same kind on a further stage."""
        result = object.__new__(Dataset if type(self) is TFRecordDataset else type(self))
        Dataset.__init__(result, stage, name)
        return result  # type: ignore[return-value]

    def _calling(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        """function, called as tf.data calls it: tuples become arguments."""

        def call(element: Any) -> Any:
            shown = map_structure(self._show, element)
            result = function(*shown) if isinstance(shown, tuple) else function(shown)
            return map_structure(self._hide, tuple(result) if isinstance(result, list) else result)

        return call

    # ---- Sources ----

    @classmethod
    def from_tensor_slices(cls: type[D], tensors: Any, name: str | None = None) -> D:
        """The slices of arrays along their first axis.

        Args:
            tensors: An array-like of rank 1 or more, or tuples and dicts of such arrays that agree
                in their first axis. Strings become bytes (UTF-8).
            name: Accepted for TensorFlow's sake and ignored.

        Raises:
            ValueError: A scalar, or arrays that disagree in their first axis.
        """
        result = object.__new__(cls)
        Dataset.__init__(result, sources.Slices(tensors), "from_tensor_slices")
        return result

    @classmethod
    def from_generator(
        cls: type[D],
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> D:
        """What a function generates, called anew for every iteration.

        Args:
            generator: A function that returns an iterable of elements.
            output_types: Accepted for TensorFlow's sake; numpy values carry their own type. The
                same holds for ``output_shapes``, ``output_signature`` and ``name``.
            args: Arguments for ``generator``.

        Raises:
            TypeError: ``generator`` is not callable.
        """
        _check_callable("generator", generator)
        arguments = args or ()
        hide = cls._hide
        result = object.__new__(cls)
        stage = sources.Generator(
            lambda: (map_structure(hide, element) for element in generator(*arguments))
        )
        Dataset.__init__(result, stage, "from_generator")
        return result

    @classmethod
    def range(cls: type[D], *args: int, name: str | None = None) -> D:
        """The numbers of Python's ``range``, as int64."""
        numbers = range(*args)
        return cls.from_tensor_slices(np.arange(numbers.start, numbers.stop, numbers.step))

    @classmethod
    def zip(cls: type[D], *datasets: Any, name: str | None = None) -> D:
        """Tuples of one element of every dataset, as many as the shortest has.

        Args:
            datasets: Datasets, one or more, or a tuple of them.

        Raises:
            TypeError: Something is no Dataset, or there is none.
        """
        parts = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], tuple) else datasets
        if not parts or not all(isinstance(part, Dataset) for part in parts):
            found = ", ".join(type(part).__name__ for part in parts)
            raise TypeError(f"datasets must be one or more Datasets, found ({found})")
        result = object.__new__(cls)
        Dataset.__init__(result, stages.Zip(tuple(part._stage for part in parts)), "zip")
        return result

    @classmethod
    def list_files(
        cls: type[D],
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> D:
        """The names of the files that match a pattern, as bytes.

        Args:
            file_pattern: A pattern of ``glob``, or several.
            shuffle: In random order, another in every pass: the default, as TensorFlow's; False
                sorts them.
            seed: As for :meth:`shuffle`.

        Raises:
            ValueError: No file matches.
        """
        patterns = map(os.fsdecode, split_paths(file_pattern))
        names = sorted({name for pattern in patterns for name in glob.glob(pattern)})
        if not names:
            raise ValueError(f"no files match {file_pattern!r}")
        files = cls.from_tensor_slices(list(map(os.fsencode, names)))
        return files if shuffle is False else files.shuffle(len(names), seed)

    # ---- Transformations ----

    def take(self: D, count: int, name: str | None = None) -> D:
        """The first ``count`` elements; all of them when ``count`` is -1.

        Example:
            >>> [int(x) for x in Dataset.range(5).take(2)]
            [0, 1]
        """
        return self._next(stages.Take(self._stage, count), "take")

    def skip(self: D, count: int, name: str | None = None) -> D:
        """All but the first ``count`` elements; none when ``count`` is -1.

        Example:
            >>> [int(x) for x in Dataset.range(5).skip(2)]
            [2, 3, 4]
        """
        return self._next(stages.Skip(self._stage, count), "skip")

    def map(
        self: D,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> D:
        """``map_func`` of every element, an ordinary Python function; the order is kept.

        Tuples are handed over as arguments. The other parameters are TensorFlow's and ignored.

        Raises:
            TypeError: ``map_func`` is not callable.

        Example:
            >>> [int(x) for x in Dataset.range(3).map(lambda x: 10 * x)]
            [0, 10, 20]
        """
        _check_callable("map_func", map_func)
        return self._next(stages.Map(self._stage, self._calling(map_func)), "map")

    def filter(self: D, predicate: Callable[..., Any], name: str | None = None) -> D:
        """The elements for which ``predicate`` is true.

        Tuples are handed over as arguments.

        Raises:
            TypeError: ``predicate`` is not callable.

        Example:
            >>> [int(x) for x in Dataset.range(5).filter(lambda x: x % 2 == 1)]
            [1, 3]
        """
        _check_callable("predicate", predicate)
        return self._next(stages.Filter(self._stage, self._calling(predicate)), "filter")

    def batch(
        self: D,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> D:
        """``batch_size`` elements at a time, every leaf stacked along a new first axis.

        Examples that were to be parsed one by one are parsed by the batch, in one call.

        Raises:
            ValueError: ``batch_size`` is below 1; on iteration: shapes that differ.
        """
        stage = self._stage
        if isinstance(stage, batches.Parse) and not stage.batched:
            below = batches.Batch(stage.source, batch_size, drop_remainder)
            return self._next(stage.over(below), "batch")
        return self._next(batches.Batch(stage, batch_size, drop_remainder), "batch")

    def padded_batch(
        self: D,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> D:
        """``batch_size`` elements at a time, every leaf padded at its ends and stacked.

        Args:
            padded_shapes: For every leaf, in the structure of an element, or for all of them: the
                shape to pad to. None or -1 in it, or None in place of it: as long as the longest of
                the batch.
            padding_values: For every leaf, or for all of them; None is 0 or b"".
            drop_remainder: Leave out a last batch of fewer elements.

        Raises:
            ValueError: ``batch_size`` is below 1; on iteration: a leaf does not fit its shape.

        Example:
            >>> ds = Dataset.from_generator(lambda: [np.arange(1), np.arange(3)])
            >>> next(iter(ds.padded_batch(2, padding_values=-1))).tolist()
            [[0, -1, -1], [0, 1, 2]]
        """
        padding = (padded_shapes, padding_values)
        stage = batches.Batch(self._stage, batch_size, drop_remainder, padding)
        return self._next(stage, "padded_batch")

    def parse_example(self: D, features: Mapping[Any, Any]) -> D:
        """Serialized Examples parsed by a specification; before or after ``batch``.

        Args:
            features: As for :func:`tfwire.parse_example`.
        """
        from tfwire.parsing import Parser

        if not isinstance(features, Mapping):
            raise TypeError(f"features must be a mapping, found {type(features).__name__}")
        stage = batches.Parse(self._stage, Parser(dict(features)), features)
        return self._next(stage, "parse_example")

    def shuffle(
        self: D,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> D:
        """Elements in random order, as far as a buffer of ``buffer_size`` elements allows.

        Args:
            buffer_size: Elements held in memory; the number of all elements shuffles perfectly.
                Right behind a TFRecordDataset with ``indexed=True`` that costs no memory at all:
                the records are then read in random order.
            seed: Makes the order repeat from run to run, and from machine to machine.
            reshuffle_each_iteration: A new order for every iteration, the default.

        Raises:
            ValueError: ``buffer_size`` is below 1.
        """
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return self._next(Shuffle(self._stage, buffer_size, seed, again), "shuffle")

    def shuffle_batch(
        self: D,
        batch_size: int,
        capacity: int,
        min_after_dequeue: int,
        seed: int | None = None,
        allow_smaller_final_batch: bool = False,
    ) -> D:
        """Random batches, with the two thresholds of TensorFlow 1's ``tf.train.shuffle_batch``.

        Args:
            batch_size: Elements of a batch.
            capacity: Elements held in memory at most.
            min_after_dequeue: Elements that are left for mixing, until the source ends; batches are
                given as soon as there are so many, while the buffer is still growing.
            seed: As for :meth:`shuffle`.
            allow_smaller_final_batch: Keep a last batch of fewer elements.

        Raises:
            ValueError: ``min_after_dequeue`` is below 1 or above ``capacity``.
        """
        least, most = integer("min_after_dequeue", min_after_dequeue), integer("capacity", capacity)
        if not 1 <= least <= most:
            raise ValueError(
                f"min_after_dequeue must be within [1, capacity], found {least} and capacity {most}"
            )
        shuffled = Shuffle(self._stage, most, seed, True, least)
        return self._next(shuffled, "shuffle_batch").batch(
            batch_size, drop_remainder=not allow_smaller_final_batch
        )

    def repeat(self: D, count: int | None = None, name: str | None = None) -> D:
        """The elements ``count`` times over; for ever when ``count`` is None or -1.

        Example:
            >>> [int(x) for x in Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        return self._next(stages.Repeat(self._stage, count), "repeat")

    def shard(self: D, num_shards: int, index: int, name: str | None = None) -> D:
        """Every ``num_shards``-th element, beginning with element ``index``.

        All elements are read; `shard_source` reads only one share of the data.

        Raises:
            ValueError: ``num_shards`` is below 1, or ``index`` not within [0, num_shards).

        Example:
            >>> [int(x) for x in Dataset.range(5).shard(2, 1)]
            [1, 3]
        """
        return self._next(stages.Shard(self._stage, num_shards, index), "shard")

    def shard_source(self: D, num_shards: int, index: int, rule: str = "even") -> D:
        """The same pipeline over one share of the data at its source, so that no shard reads what
        is another's.

        Shards are contiguous records where these are numbered (``indexed=True``, arrays), whole
        files otherwise (file i is shard i mod num_shards), and every num_shards-th element of a
        generator. Over all shards no record is lost or doubled, save as the rule says. For hosts
        with several workers each: ``shard_source(hosts * workers, host * workers + worker)``.

        Args:
            num_shards: How many shards.
            index: Which of them, from 0.
            rule: "even": sizes differ by one record at most; "drop": equal sizes, the records that
                are left over are in no shard; "pad": equal sizes, the first records are in the last
                shards once more. The last two need numbered records.

        Raises:
            ValueError: No such shard or rule, or the rule needs an index.

        Example:
            >>> [list(map(int, Dataset.range(5).shard_source(2, i, "pad"))) for i in range(2)]
            [[0, 1, 2], [3, 4, 0]]
        """
        num_shards, index = shard_of(num_shards, index)
        if rule not in numbered.RULES:
            raise ValueError(f"expected a rule of {', '.join(numbered.RULES)}, found {rule!r}")
        return self._next(self._stage.sharded(num_shards, index, rule), self._name)

    def prefetch(self: D, buffer_size: int, name: str | None = None) -> D:
        """The same elements, made by a thread while those before are being used.

        Args:
            buffer_size: How many elements to make ahead; -1 (AUTOTUNE) chooses.

        Raises:
            ValueError: ``buffer_size`` is 0 or below -1.
        """
        count = integer("buffer_size", buffer_size)
        if count == -1:
            count = _AUTO_PREFETCH
        elif count < 1:
            raise ValueError(f"buffer_size must be at least 1, or -1 (AUTOTUNE), found {count}")
        return self._next(Prefetch(self._stage, count), "prefetch")

    # ---- Looking at it ----

    def __iter__(self) -> DatasetIterator:
        show = self._show
        if show is Dataset._show:
            return iterate(self._stage)
        return iterate(self._stage, lambda element: map_structure(show, element))

    def __len__(self) -> int:
        """The number of elements.

        Raises:
            TypeError: It cannot be known without reading.
        """
        if self._stage.length is None:
            raise TypeError(f"the length of {self!r} is not known without reading it")
        return self._stage.length

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements as numpy values and bytes."""
        return iterate(self._stage)

    @property
    def element_spec(self) -> Any:
        """The structure of an element with "dtype[shape]" for each leaf; None where unknown."""
        return self._stage.spec

    def __repr__(self) -> str:
        spec = "unknown until read" if self.element_spec is None else repr(self.element_spec)
        length = "" if self._stage.length is None else f", length={self._stage.length}"
        return f"<{self._name} elements={spec}{length}>"


class TFRecordDataset(Dataset):
    """The records of TFRecord files, as bytes; every checksum is verified.

    Args:
        filenames: A path (str or PathLike), a pattern like "train-*" (its files in the order of
            their names), or an iterable of paths.
        compression_type: None or "" for none, "GZIP", "ZLIB"; "auto" looks at each file.
        buffer_size: Bytes read at a time; None chooses.
        num_parallel_reads: Read this many files in turn, one record each, as TensorFlow orders
            them; None or 1 reads one file after the other.
        on_corrupt: What to do at damage: "raise", "skip", "tail" or "stop", as for
            ``read_records``; what is left out of a file is said in a warning at its end.
        indexed: Read by an index of each file, the one saved beside it (``tfwire index``) or one
            made now from the headers. Then the length is known, shards are exact by the record, and
            shuffling of all records takes no memory. Not together with ``num_parallel_reads`` and
            ``on_corrupt``.

    Raises:
        ValueError: An unknown compression type; on iteration also OSError and DataLossError.

    Example:
        >>> for record in TFRecordDataset(["a.tfrecord", "b.tfrecord"]).take(10):
        ...     print(len(record))
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        on_corrupt: str = "raise",
        indexed: bool = False,
    ) -> None:
        paths = _paths(filenames)
        options = {"buffer_size": buffer_size, "on_corrupt": on_corrupt}
        make_options(compression_type or "", True, on_corrupt, None, buffer_size)  # checks them
        cycle = (
            1 if num_parallel_reads is None else integer("num_parallel_reads", num_parallel_reads)
        )
        stage: Stage = sources.Records(paths, compression_type or "", cycle, **options)
        if indexed:
            if cycle > 1 or on_corrupt != "raise":
                raise ValueError("indexed excludes num_parallel_reads and on_corrupt")
            from tfwire.index import TFRecordFiles

            files = TFRecordFiles(paths)
            stage = numbered.IndexedRecords(files, range(len(files)))
        super().__init__(stage, "TFRecordDataset")


def _check_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be callable, found {type(value).__name__}")


def _paths(filenames: Any) -> list[Any]:
    if hasattr(filenames, "as_numpy_iterator"):
        filenames = list(filenames.as_numpy_iterator())
    if hasattr(filenames, "numpy"):
        filenames = filenames.numpy()
    if isinstance(filenames, (str, bytes, os.PathLike)):
        name = os.fsdecode(filenames)
        if glob.has_magic(name) and "://" not in name and not os.path.exists(name):
            filenames = sorted(glob.glob(name)) or [name]  # the name says what is missing
        else:
            filenames = [filenames]
    paths = split_paths(filenames)
    return [os.fsdecode(path) if isinstance(path, bytes) else path for path in paths]
