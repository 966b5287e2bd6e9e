"""Dataset and TFRecordDataset: small pipelines of numpy elements, with tf.data's method names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np

from tfwire._base.aliases import (
    DetectedCompressionType,
    Input,
    OnCorrupt,
    RemotePath,
    StorageOptions,
    Value,
)
from tfwire._base.arguments import boolean, check_callable, integer, refuse_unordered, wrong_type
from tfwire._base.errors import public
from tfwire._data import (
    dataset_methods,
    element_sources,
    grouped,
    indexed_records,
    per_element,
    record_sources,
)
from tfwire._data.combining import Sample, Zip
from tfwire._data.dataset_methods import Transformations
from tfwire._data.pipeline import Element
from tfwire._data.stages import Stage
from tfwire._data.structure import map_structure
from tfwire._records.files.compression import either_word
from tfwire._records.files.find_files import input_paths, matching_names
from tfwire._records.files.paths import is_path, split_paths
from tfwire._records.files.urls import with_storage_options
from tfwire._records.reading.options import make_options

D = TypeVar("D", bound="Dataset[Any]")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Key = TypeVar("Key")


@public
class Dataset(Transformations[Element]):
    """A re-iterable sequence of elements: numpy values, bytes, or tuples and dicts of them.

    Made from arrays (``from_tensor_slices``), a generator (``from_generator``) or files
    (``TFRecordDataset``). Every method returns a new dataset and reads nothing; iterating reads.
    It is small on purpose: larger pipelines belong to Grain, torch or Ray.

    Example:
        >>> ds = Dataset.from_tensor_slices({"x": [1, 2, 3]}).map(lambda e: e["x"] * 10)
        >>> next(iter(ds.batch(2)))
        array([10, 20])
    """

    @overload
    @classmethod
    def from_tensor_slices(
        cls, tensors: Sequence[str] | Sequence[bytes], name: str | None = None
    ) -> Dataset[bytes]: ...
    @overload
    @classmethod
    def from_tensor_slices(
        cls, tensors: Mapping[Key, object], name: str | None = None
    ) -> Dataset[dict[Key, Value]]: ...
    @overload
    @classmethod
    def from_tensor_slices(cls, tensors: object, name: str | None = None) -> Dataset[Value]: ...
    @classmethod
    def from_tensor_slices(cls, tensors: object, name: str | None = None) -> Dataset[Value]:
        """The slices of arrays along their first axis.

        Args:
            tensors: An array-like of rank 1 or more, or tuples and dicts of such arrays with equal
                first axes. Strings become bytes (UTF-8). Numbers are copied only when they are
                elements.
            name: Ignored.

        Returns:
            A dataset with a length. Its elements have the structure and dtypes of ``tensors``, and
            their shapes without the first axis.

        Raises:
            ValueError: A scalar, or arrays with different first axes.

        Example:
            >>> for x, name in Dataset.from_tensor_slices(([1.5, 2.5], ["cat", "dog"])):
            ...     print(x, name)
            1.5 b'cat'
            2.5 b'dog'
        """
        dataset: Dataset[Any] = cls._of(element_sources.Slices(tensors), "from_tensor_slices")
        return dataset

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Iterable[A]],
        output_types: object = None,
        output_shapes: object = None,
        args: Sequence[object] | None = None,
        output_signature: object = None,
        name: str | None = None,
    ) -> Dataset[A]:
        """The elements that a function generates, called again for every iteration.

        Args:
            generator: A function that returns an iterable of elements.
            output_types: Ignored, as are ``output_shapes``, ``output_signature`` and ``name``:
                numpy values have their own types.
            args: Arguments for ``generator``.

        Returns:
            A dataset of unknown length. Iterating raises what the generator raises.

        Raises:
            TypeError: ``generator`` is not callable.

        Example:
            >>> def squares(count):
            ...     for i in range(count):
            ...         yield i * i
            >>> list(Dataset.from_generator(squares, args=(4,)))
            [0, 1, 4, 9]
        """
        check_callable("generator", generator)
        if args is not None and not isinstance(args, (tuple, list)):
            raise TypeError(f"args must be a tuple, found {type(args).__name__}")
        generate = partial(_generate, generator, tuple(args or ()), cls._hide)
        dataset: Dataset[Any] = cls._of(element_sources.Generator(generate), "from_generator")
        return dataset

    @classmethod
    def range(cls, *args: SupportsIndex, name: str | None = None) -> Dataset[np.int64]:
        """The numbers of Python's ``range``, as int64.

        Args:
            args: As for ``range``: an end; a beginning and an end; or those and a step.

        Returns:
            A dataset of numpy int64 scalars, with a length.

        Raises:
            TypeError, ValueError: As ``range``; and a number is not an int64.

        Example:
            >>> [int(x) for x in Dataset.range(0, 10, 3)]
            [0, 3, 6, 9]
        """
        for number in args:
            if not hasattr(number, "__index__") or isinstance(number, np.bool_):
                raise TypeError(f"args must be integers, found {type(number).__name__}")
        numbers = range(*args)
        dataset: Dataset[Any] = cls._of(
            element_sources.Numbers(numbers, str(numbers)), "from_tensor_slices"
        )
        return dataset

    @overload
    @classmethod
    def zip(
        cls, a: Dataset[A], b: Dataset[B], /, *, name: str | None = None
    ) -> Dataset[tuple[A, B]]: ...
    @overload
    @classmethod
    def zip(
        cls,
        a: Dataset[A],
        b: Dataset[B],
        c: Dataset[C],
        /,
        *,
        name: str | None = None,
    ) -> Dataset[tuple[A, B, C]]: ...
    @overload
    @classmethod
    def zip(
        cls,
        *datasets: Dataset[object] | tuple[Dataset[object], ...],
        name: str | None = None,
    ) -> Dataset[tuple[Value, ...]]: ...
    @classmethod
    def zip(
        cls, *datasets: Dataset[object] | tuple[Dataset[object], ...], name: str | None = None
    ) -> Dataset[tuple[Value, ...]]:
        """Tuples of one element of every dataset, as many as the shortest has.

        Args:
            datasets: Datasets, one or more, or a tuple of them.

        Returns:
            A dataset of tuples; its length is known where all lengths are.

        Raises:
            TypeError: Something is not a Dataset, or there are no datasets.

        Example:
            >>> pairs = Dataset.zip(Dataset.range(2), Dataset.from_tensor_slices(["a", "b", "c"]))
            >>> [(int(i), letter) for i, letter in pairs]
            [(0, b'a'), (1, b'b')]
        """
        parts: tuple[Any, ...] = datasets
        if len(datasets) == 1 and isinstance(datasets[0], tuple):
            parts = datasets[0]
        if not parts or not all(isinstance(part, Dataset) for part in parts):
            found = ", ".join(type(part).__name__ for part in parts)
            raise TypeError(f"datasets must be one or more Datasets, found ({found})")
        dataset: Dataset[Any] = cls._of(Zip(tuple(part._stage for part in parts)), "zip")
        return dataset

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Sequence[Dataset[A]],
        weights: Sequence[float] | None = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
    ) -> Dataset[A]:
        """Elements of datasets, each the next one of a dataset that is drawn at random.

        Args:
            datasets: One or more datasets.
            weights: How often each is drawn, as a part of their sum; None: all as often. A dataset
                of weight 0 is never drawn.
            seed: Makes the choices the same in every run; they differ from epoch to epoch.
            stop_on_empty_dataset: End with the first dataset that ends, so that the weights hold to
                the end; False: end with the last.

        Returns:
            A dataset. :meth:`shard_source` divides each of the datasets.

        Raises:
            TypeError: Something is not a Dataset.
            ValueError: There are no datasets, or the weights do not fit them.

        Example:
            >>> few, many = Dataset.range(2), Dataset.range(10, 14)
            >>> mixed = Dataset.sample_from_datasets([few, many], [0.2, 0.8], seed=1)
            >>> sorted(map(int, mixed))
            [0, 1, 10, 11, 12, 13]
        """
        parts = _datasets(datasets)
        given = _weights(weights, len(parts))
        stop = boolean("stop_on_empty_dataset", stop_on_empty_dataset)
        drawn = [i for i, weight in enumerate(given) if weight > 0]
        sources = tuple(parts[i]._stage for i in drawn)
        stage = Sample(sources, tuple(given[i] for i in drawn), seed, stop)
        dataset: Dataset[Any] = cls._of(stage, "sample_from_datasets")
        return dataset

    @classmethod
    def list_files(
        cls,
        file_pattern: RemotePath | Iterable[RemotePath],
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
        *,
        storage_options: StorageOptions = None,
    ) -> Dataset[bytes]:
        """The names of the files that match a pattern, as bytes.

        Args:
            file_pattern: A pattern of ``glob``, also in a URL, or a set of shards, as "train@64",
                or several. All that matches is listed, but for the indexes (``.tfwindex``) of files
                that match.
            shuffle: Use a new random order in every pass, the default as in TensorFlow. False
                sorts the names.
            seed: As for :meth:`shuffle`.
            storage_options: fsspec's options of the filesystem of URLs.

        Returns:
            A dataset of bytes, with a length. The files are searched now; each name occurs once.

        Raises:
            ValueError: No file matches.

        Example:
            >>> list(Dataset.list_files("*.tfrecord", shuffle=False))
            [b'a.tfrecord', b'b.tfrecord', b'train.tfrecord']
        """
        shuffled = shuffle is None or boolean("shuffle", shuffle)
        seed = None if seed is None else integer("seed", seed)
        patterns = [
            with_storage_options(pattern, storage_options)
            for pattern in split_paths(file_pattern, "file_pattern")
        ]
        for pattern in patterns:
            if not is_path(pattern):
                raise wrong_type("file_pattern", pattern, "a pattern or several")
        names = matching_names(patterns)
        if not names:
            raise ValueError(f"no files match {file_pattern!r}")
        files: Dataset[bytes] = cls.from_tensor_slices(list(map(os.fsencode, names)))
        return files.shuffle(len(names), seed) if shuffled else files


# Their annotations name what comes after them.
for _module in (dataset_methods, grouped, per_element):
    vars(_module)["Dataset"] = Dataset


@public
class TFRecordDataset(Dataset[bytes]):
    """The records of TFRecord files, as bytes; every checksum is verified.

    Args:
        filenames: As for ``read_records``: paths, URLs, folders, patterns; or a dataset of names.
        compression_type, options: Two words for one argument: None or "" for none, "GZIP", "ZLIB";
            "auto" looks at each file.
        buffer_size: Bytes read at a time; None chooses.
        num_parallel_reads: Read this many files in turn, one record each, as TensorFlow orders
            them; None, 1 or -1 (AUTOTUNE) reads one file after the other.
        on_corrupt: What to do at damage: "raise", "skip", "tail" or "stop", as for
            ``read_records``. A warning at the end of a file says what was left out.
        indexed: Read by an index of each file: the one saved beside it (``tfwire index``), or one
            made now from the headers. Then the length is known, shards are exact to the record, and
            shuffling all records takes no memory. The index knows the compression of the file. Not
            together with ``num_parallel_reads``, ``on_corrupt`` and ``max_record_size``.
        max_record_size: Longer records are damage; None: no limit. An index has none.
        shuffle_files: Read the files in another order in every epoch. Shards are made of this
            order, so that each has other files in every epoch. Not together with ``indexed``:
            :meth:`shuffle` is exact then.
        seed: Of the order of the files, which is the same in every process and on every machine.
        cache_bytes: With ``indexed``, as for TFRecordFiles: what is read stays in memory, for later
            epochs, too. Each process has memory of its own.
        storage_options: fsspec's options of the filesystem of URLs.

    Raises:
        ValueError: An unknown compression type; on iteration also OSError and DataLossError.

    Example:
        >>> for record in TFRecordDataset(["a.tfrecord", "b.tfrecord"]).take(3):
        ...     print(record)
        b'one'
        b'two'
        b'three'
    """

    _further = Dataset

    def __init__(
        self,
        filenames: Input | Iterable[Input] | Dataset[bytes],
        compression_type: DetectedCompressionType = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        on_corrupt: OnCorrupt = "raise",
        indexed: bool = False,
        max_record_size: int | None = 2**30,
        shuffle_files: bool = False,
        seed: int = 0,
        cache_bytes: int = 0,
        options: DetectedCompressionType = None,
        storage_options: StorageOptions = None,
    ) -> None:
        compression_type = either_word(compression_type, options)
        paths = self._files(filenames, storage_options)
        reading = {
            "buffer_size": buffer_size,
            "on_corrupt": on_corrupt,
            "max_record_size": max_record_size,
        }
        compression_type = "" if compression_type is None else compression_type
        make_options(compression_type, True, on_corrupt, max_record_size, buffer_size)  # checks
        cycle = 1
        if num_parallel_reads is not None:
            cycle = integer("num_parallel_reads", num_parallel_reads)
            if cycle < 1 and cycle != -1:
                raise ValueError(f"num_parallel_reads must be at least 1, or -1, found {cycle}")
        indexed = boolean("indexed", indexed)
        if integer("cache_bytes", cache_bytes, 0) and not indexed:
            raise ValueError("cache_bytes needs indexed=True")
        shuffle_files, seed = boolean("shuffle_files", shuffle_files), integer("seed", seed)
        order = seed if shuffle_files else None
        stage: Stage = record_sources.Records(paths, compression_type, cycle, order, **reading)
        if indexed:
            read_whole = shuffle_files or cycle > 1 or on_corrupt != "raise"
            if read_whole or max_record_size not in (None, 2**30):
                raise ValueError(
                    "indexed excludes num_parallel_reads, on_corrupt, max_record_size and "
                    "shuffle_files"
                )
            from tfwire._records.index.random_access import TFRecordFiles

            files = TFRecordFiles(iter(paths), cache_bytes=cache_bytes)
            stage = indexed_records.IndexedRecords(files, range(len(files)))
        super().__init__(stage, "TFRecordDataset")

    @staticmethod
    def _files(filenames: Any, storage_options: StorageOptions) -> list[Any]:
        return paths_of(filenames, storage_options)


def _datasets(datasets: Any) -> list[Any]:
    refuse_unordered("datasets", datasets)
    many = isinstance(datasets, Iterable) and not isinstance(datasets, Dataset)
    parts = list(datasets) if many else [datasets]
    for part in parts:
        if not many or not isinstance(part, Dataset):
            raise TypeError(f"datasets must be a list of Datasets, found {type(part).__name__}")
    if not parts:
        raise ValueError("datasets must be one or more Datasets, found none")
    return parts


def _weights(weights: Any, count: int) -> tuple[float, ...]:
    try:
        found = np.ones(count, np.float64) if weights is None else np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise wrong_type("weights", weights, "a list of numbers") from None
    if found.shape != (count,):
        raise ValueError(f"weights must be {count} numbers, found the shape {found.shape}")
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise ValueError("weights must be finite, at least 0, and one above 0")
    return tuple(found.tolist())


def _generate(
    generator: Callable[..., Iterable[Any]], args: tuple[Any, ...], hide: Callable[[Any], Any]
) -> Iterable[Any]:
    # Not a generator, which an error of one element would end.
    return map(partial(map_structure, hide), generator(*args))


def paths_of(
    filenames: Any,
    storage_options: StorageOptions = None,
    find: Callable[..., Iterable[Any]] = input_paths,
) -> list[Any]:
    """The files of an argument, which may be a dataset of them. The rule finds what it names."""
    if hasattr(filenames, "as_numpy_iterator"):
        filenames = list(filenames.as_numpy_iterator())
    return list(find(filenames, storage_options, "filenames"))
