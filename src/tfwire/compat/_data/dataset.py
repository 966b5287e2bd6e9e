"""Datasets whose elements are tensors, and their iterators."""

from __future__ import annotations

import os
import time
from functools import partial
from glob import has_magic
from typing import Any

import numpy as np

import tfwire as tfw
from tfwire import DatasetIterator
from tfwire._interface.messages import InvalidArgumentError, integer
from tfwire._interface.pipelines import Description, iterate, leaves, map_structure
from tfwire.compat._constants import is_string_array, is_tensor, to_numpy
from tfwire.compat._data import caching, generators, specs
from tfwire.compat._data.generators import as_path, as_seed
from tfwire.compat._data.grouping import padding_arguments
from tfwire.compat._data.specs import leaf_spec
from tfwire.compat._data.transformations import UNKNOWN, FurtherTransformations
from tfwire.compat._decoding import RaggedTensor, SparseTensor, wrap
from tfwire.compat._errors import (
    Explained,
    FailedPreconditionError,
    OutOfRangeError,
    as_tensorflow,
    refusing_arguments,
    translating_files,
)
from tfwire.compat._tensor import Tensor

AUTOTUNE = -1
_WAIT_SECONDS = 0.1
_LARGEST_BUFFER = (1 << 31) - 1  # elements of the largest buffer
_ARRAY_CLASSES = (bytes, np.ndarray, np.generic)


class Dataset(FurtherTransformations):
    """A dataset whose elements are tensors; see :class:`tfwire.Dataset`.

    Example:
        >>> import tfwire.compat as tf
        >>> dataset = tf.data.Dataset.range(3).concatenate(tf.data.Dataset.range(2))
        >>> [int(x) for x in dataset], dataset.element_spec
        ([0, 1, 2, 0, 1], TensorSpec(shape=(), dtype=tf.int64, name=None))
    """

    @staticmethod
    def _show(leaf: Any) -> Any:
        if type(leaf) is bytes:
            return Tensor._of(leaf)
        if type(leaf) is np.ndarray or isinstance(leaf, np.generic):
            dtype = leaf.dtype
            if (dtype.kind in "biufc" and dtype.isnative) or is_string_array(leaf):
                return Tensor._of(leaf)
        if isinstance(leaf, _ARRAY_CLASSES):
            return Tensor(leaf)
        return leaf if isinstance(leaf, tfw.Dataset) else wrap(leaf)

    @staticmethod
    def _hide(leaf: Any) -> Any:
        if type(leaf) is Tensor:
            return leaf._value
        if isinstance(leaf, tfw.Dataset):
            return leaf
        if isinstance(leaf, (SparseTensor, RaggedTensor)):
            return leaf.plain
        return leaf if isinstance(leaf, (tfw.SparseTensor, tfw.RaggedTensor)) else to_numpy(leaf)

    def __iter__(self) -> Any:
        return Iterator.over(self, partial(map_structure, self._show))

    def as_numpy_iterator(self) -> Any:
        """The elements as numpy values and bytes."""
        return Iterator.over(self, None)

    def __len__(self) -> int:
        if self._stage.endless:
            raise TypeError("The dataset is infinite.")
        return super().__len__()

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a TensorSpec or another spec for every leaf.

        After a user function, the first two elements are made to find it. None if there are no
        elements.
        """
        return specs.element_spec(self._stage)

    def __repr__(self) -> str:
        spec = "unknown until read" if self._stage.spec is None else repr(self._stage.spec)
        length = "" if self._stage.length is None else f", length={self._stage.length}"
        return f"<{self._name} elements={spec}{length}>"

    # ---- Where elements come from -------------------------------------------------------------

    @classmethod
    def from_tensors(cls, tensors: Any, name: str | None = None) -> Any:
        """One element."""
        return cls._of_values([map_structure(cls._hide, tensors)], "from_tensors")

    @classmethod
    def _of_values(cls, values: list[Any], name: str) -> Any:
        spec = map_structure(_spec_words, values[0])
        return cls._source(name, generators.listed, values, length=len(values), spec=spec)

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: str | None = None) -> Any:
        """The slices of tensors along their first axis."""
        hidden = map_structure(cls._hide, tensors)
        if any(isinstance(leaf, (tfw.SparseTensor, tfw.RaggedTensor)) for leaf in leaves(hidden)):
            return cls.from_tensors(tensors).unbatch()
        return super().from_tensor_slices(hidden)

    @classmethod
    def from_generator(
        cls,
        generator: Any,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: Any = None,
    ) -> Any:
        """The elements that a function generates, converted to a signature and checked.

        Raises:
            TypeError: While iterating: an element does not fit the signature.
        """
        signature = output_signature
        specs.check_signature(() if signature is None else signature)
        if signature is None and output_types is not None:
            signature = specs.of_types(output_types, output_shapes)
        arguments = tuple(map(to_numpy, args or ()))
        made = super().from_generator(partial(_generate, generator, signature), args=arguments)
        if signature is not None:
            made._stage.spec = map_structure(specs.described, signature)
        return made

    @classmethod
    def range(cls, *args: Any, output_type: Any = np.int64, name: str | None = None) -> Any:
        """The numbers of Python's ``range`` as int64, or as ``output_type``."""
        with refusing_arguments(ValueError):
            numbers = range(*(integer("a limit", to_numpy(one)) for one in args))
        dtype = np.dtype(getattr(output_type, "as_numpy_dtype", output_type))
        return cls.from_tensor_slices(
            np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64).astype(dtype)
        )

    @classmethod
    def counter(
        cls, start: int = 0, step: int = 1, dtype: Any = np.int64, name: str | None = None
    ) -> Any:
        """start, start + step and so on, endlessly."""
        dtype = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        facts = {"endless": True, "spec": str(Description(dtype.name, ()))}
        return cls._source("counter", generators.numbers, start, step, dtype, **facts)

    @classmethod
    def random(
        cls,
        seed: int | None = None,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """Random int64 below 2**32, endlessly; not the numbers of TensorFlow."""
        again = bool(rerandomize_each_iteration)
        facts = {"endless": True, "spec": "int64[]", "redraws": again}
        return cls._source("random", generators.random_numbers, as_seed(seed), again, **facts)

    @classmethod
    def load(
        cls,
        path: Any,
        element_spec: Any = None,
        compression: Any = None,
        reader_func: Any = None,
        wait: bool = False,
    ) -> Any:
        """The elements that ``save`` wrote. ``element_spec`` and ``compression`` are ignored.

        Args:
            wait: Wait until there is what ``save`` writes, however long that takes.
        """
        file = caching.stored_file(as_path(path))
        while wait and not os.path.exists(file):
            time.sleep(_WAIT_SECONDS)
        with translating_files():
            os.stat(file)
        found = cls._source("load", caching.load, file, length=caching.count_saved(file))
        return found if reader_func is None else reader_func(cls._of_values([found], "load"))

    @classmethod
    def list_files(cls, *args: Any, **kwargs: Any) -> Any:
        """As :meth:`tfwire.Dataset.list_files`; names of patterns without a folder begin with "./".

        Raises:
            InvalidArgumentError: No file matches.
        """
        patterns, *others = args or [kwargs.pop("file_pattern")]
        with refusing_arguments(ValueError):
            return super().list_files(_in_folders(patterns), *others, **kwargs)

    # ---- One dataset of several ---------------------------------------------------------------

    @classmethod
    def zip(cls, *args: Any, datasets: Any = None, name: str | None = None) -> Any:
        """The structure of datasets, filled with one element of each."""
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        parts = list(leaves(structure))
        zipped = super().zip(*parts)
        return cls._of(generators.Arranged(zipped._stage, structure), "zip")

    @classmethod
    def choose_from_datasets(
        cls, datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Any:
        """The next element of the dataset that each element of ``choice_dataset`` names."""
        datasets = list(datasets)
        _, *given = sources = tuple(one._stage for one in (choice_dataset, *datasets))
        specs.check_dtypes(given)
        facts = {"given": tuple(given), "endless": any(one.endless for one in given)}
        stop, choose = bool(stop_on_empty_dataset), generators.choose
        return cls._source("choose_from_datasets", choose, stop, sources=sources, **facts)

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Any,
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Any:
        """Elements of datasets drawn at random.

        Args:
            datasets: Some datasets.
            weights: The weight of each: numbers, or a dataset of such lists; None: all the same. A
                dataset of weight 0 is left out.
            seed: Makes the choices reproducible. They differ from those of TensorFlow.
            stop_on_empty_dataset: End with the first dataset that ends, not with the last.
        """
        datasets = list(datasets)
        weights = [1.0] * len(datasets) if weights is None else weights
        if not isinstance(weights, tfw.Dataset):
            given = to_numpy(weights)
            if len(given) != len(datasets):
                raise ValueError(f"expected {len(datasets)} weights, found {len(given)}")
            if len(given) and not given.all():  # a dataset that is never drawn would never end
                positive = given.nonzero()[0] if given.any() else np.arange(1, dtype=np.int64)
                datasets = [datasets[i] for i in positive]
                given = given[positive] if given.any() else np.ones(1, np.float64)
            if len(datasets) == 1:
                return datasets[0]
            weights = cls._source("repeated", generators.repeated, given, endless=True)
        again = bool(rerandomize_each_iteration)
        facts = {"sources": (weights._stage,), "redraws": again}
        choices = cls._source("choices", generators.drawn_choices, as_seed(seed), again, **facts)
        return cls.choose_from_datasets(datasets, choices, stop_on_empty_dataset)

    # ---- Arguments as TensorFlow has them -----------------------------------------------------

    def map(  # type: ignore[override]  # in TensorFlow, `name` is the last argument
        self,
        map_func: Any,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """As :meth:`tfwire.Dataset.map`.

        Args:
            synchronous, use_unbounded_threadpool: Without effect on elements and their order.
        """
        if synchronous and num_parallel_calls is not None:
            raise ValueError("`synchronous` is not for `num_parallel_calls`")
        return super().map(map_func, num_parallel_calls, deterministic, name)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """As :meth:`tfwire.Dataset.prefetch`; None is AUTOTUNE."""
        return super().prefetch(AUTOTUNE if buffer_size is None else buffer_size, name)

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Any:
        """As :meth:`tfwire.Dataset.shuffle`.

        Args:
            buffer_size: UNKNOWN_CARDINALITY holds all elements, however many there are.

        Raises:
            ValueError: It does, and the dataset is endless.
        """
        size = integer("buffer_size", to_numpy(buffer_size))
        if size == UNKNOWN:
            if self._stage.endless:
                raise ValueError("an endless dataset does not fit into a buffer of all elements")
            size = _LARGEST_BUFFER
        return super().shuffle(size, seed, reshuffle_each_iteration, name)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
        *,
        max_padding: int | None = 1 << 30,
    ) -> Any:
        """As :meth:`tfwire.Dataset.padded_batch`, with tensors as arguments too."""
        padding = padding_arguments(padded_shapes, padding_values)
        return super().padded_batch(
            batch_size, *padding, bool(drop_remainder), max_padding=max_padding
        )

    # ---- TensorFlow 1 -------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> Any:
        """An iterator whose ``get_next`` is for ``Session.run``, or eager if that was enabled."""
        return graph.iterator(self, needs_initializer=False)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Any:
        """The same; a session must run its ``initializer`` first."""
        return graph.iterator(self, needs_initializer=True)

    @property
    def output_types(self) -> Any:
        return map_structure(lambda spec: spec.dtype, self.element_spec)

    @property
    def output_shapes(self) -> Any:
        return map_structure(lambda spec: spec.shape, self.element_spec)


for _name in (
    *("batch", "bucket_by_sequence_length", "group_by_window", "interleave", "padded_batch"),
    *("parse_example", "prefetch", "ragged_batch", "shard", "shuffle", "window"),
):
    setattr(Dataset, _name, refusing_arguments(ValueError)(getattr(Dataset, _name)))


def _spec_words(leaf: Any) -> str | None:
    return None if isinstance(leaf, tfw.Dataset) else specs.described(specs.leaf_spec(leaf))


def _generate(generator: Any, signature: Any, *arguments: Any) -> Any:
    elements = generator(*arguments)
    return elements if signature is None else map(partial(specs.convert, signature), elements)


def _in_folders(patterns: Any) -> Any:
    """Patterns of which those without a folder begin with "./", as their names then do."""
    if isinstance(patterns, (list, tuple)):
        return [_in_folders(pattern) for pattern in patterns]
    given = to_numpy(patterns) if is_tensor(patterns) else patterns
    if isinstance(given, np.ndarray):
        return _in_folders(given.ravel().tolist())
    if not isinstance(given, (str, bytes, os.PathLike)):
        return given
    text = os.fsdecode(given)
    return given if os.path.dirname(text) or not has_magic(text) else f"./{text}"


# ---- Iterators ----------------------------------------------------------------------------------
class _Graph:
    """Makes TensorFlow 1's iterators. ``tfwire.compat`` sets both functions, so that datasets need
    not import the graphs, which are made of datasets."""

    iterator: Any
    from_structure: Any


graph = _Graph()


class Iterator(Explained, DatasetIterator[Any]):
    """One pass over a dataset, made by ``iter(dataset)``.

    Its state can be saved and loaded, as that of :class:`tfwire.DatasetIterator`.

    Example:
        >>> import tfwire.compat as tf
        >>> iterator = iter(tf.data.Dataset.range(2))
        >>> int(iterator.get_next()), int(iterator.get_next())
        (0, 1)
        >>> bool(iterator.get_next_as_optional().has_value())
        False
    """

    _tf_name = "data.Iterator"
    _dataset: Any
    _translated = staticmethod(as_tensorflow)

    @staticmethod
    def _given_up(error: Exception) -> Exception:
        message = "the iterator has ended: its pipeline cannot go on after the error before"
        found = FailedPreconditionError(None, None, message)
        found.__cause__ = error
        return found

    @classmethod
    def over(cls, dataset: Any, show: Any) -> Iterator:
        """An iterator over a dataset; ``show`` is applied to its elements."""
        elements = iterate(dataset._stage, show, kind=cls)
        assert isinstance(elements, Iterator)
        elements._dataset = dataset
        return elements

    next = DatasetIterator.__next__

    @staticmethod
    def from_structure(output_types: Any, output_shapes: Any = None, **others: Any) -> Any:
        """An iterator of TensorFlow 1; ``make_initializer`` gives it a dataset."""
        return graph.from_structure(output_types, output_shapes)

    def get_next(self, name: str | None = None) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: There is none.
        """
        for element in self:
            return element
        raise OutOfRangeError(None, None, "End of sequence")

    def get_next_as_optional(self) -> Optional:
        """The next element as an Optional, without a value at the end."""
        for element in self:
            return Optional.from_value(element)
        return Optional.empty()

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec


class Optional:
    """A value, or none."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values = values

    @classmethod
    def from_value(cls, value: Any) -> Optional:
        return cls((value,))

    @classmethod
    def empty(cls, element_spec: Any = None) -> Optional:
        return cls(())

    def has_value(self, name: str | None = None) -> Tensor:
        return Tensor(bool(self._values))

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: There is none.
        """
        if not self._values:
            raise InvalidArgumentError(None, None, "the Optional has no value")
        return self._values[0]

    @property
    def element_spec(self) -> Any:
        return map_structure(leaf_spec, self.get_value())


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element of an iterator as an Optional."""
    return iterator.get_next_as_optional()
