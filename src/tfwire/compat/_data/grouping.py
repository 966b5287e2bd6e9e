"""Transformations of tf.data that group: windows, groups, buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar, cast

import numpy as np

from tfwire import RaggedTensor
from tfwire._interface.messages import InvalidArgumentError, check_callable, integer
from tfwire._interface.pipelines import (
    Unbatch,
    description,
    group_by_window,
    map_structure,
    stack_elements,
    stack_ragged,
    stage_elements,
    zip_structures,
)
from tfwire.compat._constants import Array, is_tensor, to_array, to_numpy
from tfwire.compat._data import generators, specs
from tfwire.compat._data.generators import Generating, require_dataset, scalar_integer
from tfwire.compat._tensor import Tensor

P = TypeVar("P", bound="Grouping")


class Grouping(Generating):
    """The methods of ``tf.data.Dataset`` that group elements."""

    def window(
        self: P,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> P:
        """Windows of up to ``size`` elements, as a dataset for every leaf of an element.

        Args:
            size: Elements per window.
            shift: Elements from the start of a window to the start of the next; None: ``size``.
            stride: Distance between the elements of a window.
            drop_remainder: Leave out windows of fewer elements.
        """
        size, stride = integer("size", size, 1), integer("stride", stride, 1)
        shift = size if shift is None else integer("shift", shift, 1)
        length = self._stage.length
        if length is not None:
            span = (size - 1) * stride + 1 if drop_remainder else 1
            length = max(0, (length - span) // shift + 1)
        arguments = (self._as_window, size, shift, stride, bool(drop_remainder))
        facts = {"length": length, "endless": self._stage.endless, "quiet": True}
        return self._generated("window", generators.windows, *arguments, **facts)

    def _as_window(self, elements: list[Any]) -> Any:
        return zip_structures(lambda *leaves: self._listed(list(leaves)), *elements)

    def unbatch(self: P, name: str | None = None) -> P:
        """The rows of every element, one by one."""
        rows, spec = specs.of_rows(self._stage.spec)
        length = self._stage.length
        length = None if length is None or rows is None else length * rows
        return self._next(Unbatch(self._stage, length, spec), "unbatch")

    def rebatch(
        self: P, batch_size: Any, drop_remainder: bool = False, name: str | None = None
    ) -> P:
        """Batches of other sizes of the same rows.

        Args:
            batch_size: The size of every batch, or a list of sizes that repeats; 0: no rows.
            drop_remainder: Leave out a last batch of fewer rows.
        """
        given = to_numpy(batch_size)
        if np.ndim(given) > 1:
            raise ValueError(f"`batch_size` must be one size or a list, found shape {given.shape}")
        sizes = [integer("batch_size", size, 0) for size in np.ravel(given)]
        if not sizes:
            raise ValueError("`batch_size` must have at least one size")
        rows, row = specs.of_rows(self._stage.spec)
        spec = None
        if row is not None:
            size = sizes[0] if len(set(sizes)) == 1 and sizes[0] else None
            whole = drop_remainder or (rows is not None and size and not rows % size)
            spec = map_structure(partial(_spec_of_batch, size if whole else None), row)
        arguments = (sizes, bool(drop_remainder), spec)
        return self._generated("rebatch", generators.rebatched, *arguments, spec=spec)

    def group_by_window(
        self: P,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> P:
        """The elements of the datasets that ``reduce_func`` makes of groups with one key.

        Args:
            key_func: The key of an element, an int64.
            reduce_func: A dataset made of a key and of a dataset of elements with that key.
            window_size: Elements per group; the last groups may have fewer.
            window_size_func: The same as a function of the key.

        Raises:
            ValueError: Both or neither of the last two are given.
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError("give either `window_size` or `window_size_func`")
        key_of = partial(scalar_integer, self._calling(key_func))
        size_of = partial(_window_size, window_size, window_size_func)
        opening = partial(self._open_reduced, reduce_func)
        arguments = (key_of, size_of, opening)
        endless = self._stage.endless
        return self._generated("group_by_window", group_by_window, *arguments, endless=endless)

    def _open_reduced(
        self, reduce_func: Callable[..., Any], key: int, elements: list[Any], epoch: str
    ) -> Iterator[Any]:
        reduced = reduce_func(_key(key), self._listed(elements, self._stage.spec))
        require_dataset("the result of reduce_func", reduced)
        return stage_elements(reduced._stage, epoch)

    def bucket_by_sequence_length(
        self: P,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Any,
        bucket_batch_sizes: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> P:
        """As :meth:`tfwire.Dataset.bucket_by_sequence_length`, with tensors as arguments too; no
        ``padded_shapes`` are needed for ``pad_to_bucket_boundary``."""
        check_callable("element_length_func", element_length_func)
        if pad_to_bucket_boundary and padded_shapes is None and not no_padding:
            padded_shapes = map_structure(lambda leaf: leaf.shape, self.element_spec)
        batches = super().bucket_by_sequence_length(
            partial(scalar_integer, element_length_func),
            bucket_boundaries,
            bucket_batch_sizes,
            *padding_arguments(padded_shapes, padding_values),
            bool(pad_to_bucket_boundary),
            bool(no_padding),
            bool(drop_remainder),
        )
        return cast("P", batches)

    def ragged_batch(
        self: P,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: Any = np.int64,
        name: str | None = None,
    ) -> P:
        """Batches of elements of different lengths, as RaggedTensors."""
        size = integer("batch_size", batch_size, 1)
        splits = np.dtype(getattr(row_splits_dtype, "as_numpy_dtype", row_splits_dtype))
        length = self._stage.length
        if length is not None:
            length = length // size if drop_remainder else -(-length // size)
        batched = partial(_spec_of_scalars, size if drop_remainder else None)
        spec = self._stage.spec and map_structure(batched, self._stage.spec)
        arguments = (splits, size, bool(drop_remainder))
        facts = {"length": length, "endless": self._stage.endless, "spec": spec}
        return self._generated("ragged_batch", _ragged_batches, *arguments, **facts)


def _spec_of_batch(size: int | None, text: str | None) -> str | None:
    found = description(text)
    return None if found is None else str(found.batched(size))


def _spec_of_scalars(size: int | None, text: str | None) -> str | None:
    """The text of a batch of scalars; None of others, which may become ragged."""
    found = description(text)
    return _spec_of_batch(size, text) if found is not None and found.sizes == () else None


def _ragged_batches(
    splits: Any, size: int, drop_remainder: bool, epoch: str, source: Iterator[Any]
) -> Iterator[Any]:
    """Batches of elements as RaggedTensors. An axis that was ragged once stays so."""
    num_axes: dict[int, int] = {}  # by the number of the leaf
    make = partial(_stack_ragged, splits, num_axes)
    return generators.windows(make, size, size, 1, drop_remainder, epoch, source)


def _stack_ragged(splits: Any, num_axes: dict[int, int], elements: list[Any]) -> Any:
    """Elements of one structure as one, leaves of rank 1 or more as RaggedTensors."""
    numbers = count()

    def stack_leaves(*values: Any) -> Any:
        number = next(numbers)
        if isinstance(values[0], RaggedTensor) or np.ndim(values[0]):
            count = max(num_axes.get(number, 0), _num_ragged_axes(values))
            num_axes[number] = count
            if count:
                values = tuple(_with_ragged_axes(value, count, splits) for value in values)
            return stack_ragged(values, splits)
        return stack_elements(list(values))

    return zip_structures(stack_leaves, *elements)


def _num_ragged_axes(values: Sequence[Any]) -> int:
    """How many axes of arrays must become ragged besides the first, so that they can be stacked:
    up to the last in which they differ."""
    if isinstance(values[0], RaggedTensor):
        return 0
    shapes = [np.shape(value) for value in values]
    if len({len(shape) for shape in shapes}) > 1:
        raise InvalidArgumentError(f"cannot batch elements of different ranks: {shapes}")
    sizes = enumerate(zip(*shapes, strict=True))
    return max((axis for axis, of_axis in sizes if len(set(of_axis)) > 1), default=0)


def _with_ragged_axes(array: Array, count: int, splits_dtype: Any) -> Any:
    """An array as a RaggedTensor with this many ragged axes after the first."""
    if not count:
        return array
    rows, size = array.shape[:2]
    inner = array.reshape(rows * size, *array.shape[2:])
    splits = np.arange(rows + 1, dtype=splits_dtype) * size
    return RaggedTensor(_with_ragged_axes(inner, count - 1, splits_dtype), splits)


def _window_size(size: Any, function: Callable[[Any], Any] | None, key: int) -> int:
    asked = size if function is None else function(_key(key))
    return integer("window_size", to_numpy(asked), 1)


def _key(key: int) -> Tensor:
    return Tensor(np.int64(key))


# ---- Arguments of padded batches ----------------------------------------------------------------
def padding_arguments(shapes: Any, values: Any) -> tuple[Any, Any]:
    """``padded_shapes`` and ``padding_values`` without tensors."""
    return (
        None if shapes is None else map_structure(_sizes, shapes),
        None if values is None else map_structure(_value, values),
    )


def _value(padding: Any) -> Any:
    return None if padding is None else to_numpy(padding)


def _sizes(shape: Any) -> Any:
    """A shape or a size of one; a tensor as a list."""
    if not is_tensor(shape) and not isinstance(shape, np.ndarray):
        return shape
    sizes = to_array(shape)
    if sizes.dtype.kind not in "iu":
        raise TypeError(f"a padded shape must have integers, found {sizes.dtype}")
    if sizes.ndim != 1:
        raise ValueError(f"a padded shape must be a vector, found shape {sizes.shape}")
    return sizes.tolist()
