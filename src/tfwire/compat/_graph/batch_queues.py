"""Batches of the values of tensors of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tfwire._base.arguments import integer
from tfwire.compat._constants import to_array, to_numpy
from tfwire.compat._data.dataset import Dataset
from tfwire.compat._errors import OutOfRangeError
from tfwire.compat._graph.outputs import parts
from tfwire.compat._graph.queues import SessionSource
from tfwire.compat._graph.session import Evaluation, Next
from tfwire.compat._ops import boolean_mask


class _Evaluations(SessionSource):
    """The values of tensors, evaluated again and again, and gathered by a pipeline.

    Args:
        tensor_sets: Tuples of deferred values; more than one are evaluated in turn.
        gather: Makes a dataset of batches of a dataset of the tuples.
        many: The values are batches, whose rows are gathered.
        keep: Whether to keep the values or, of batches, which rows; may be deferred.
        name: Its name in errors.
    """

    def __init__(
        self,
        tensor_sets: list[tuple[Any, ...]],
        gather: Callable[[Dataset], Any],
        many: bool,
        keep: Any,
        name: str,
    ) -> None:
        super().__init__(name)
        self._tensor_sets = tensor_sets
        self._gather = gather
        self._many = many
        self._keep = keep

    def open(self, session: Any) -> Iterator[Any]:
        rows: Any = Dataset.from_generator(partial(self._evaluate, session))
        return iter(self._gather(rows.unbatch() if self._many else rows))

    def _evaluate(self, session: Any) -> Iterator[Any]:
        left = list(self._tensor_sets)
        while left:
            for tensors in list(left):
                try:
                    values, keep = Evaluation(session).value((tensors, self._keep))
                except OutOfRangeError:
                    left = [one for one in left if one is not tensors]
                else:
                    yield from self._kept(values, to_array(keep, np.dtype(bool)))

    def _kept(self, values: Any, keep: Any) -> Iterator[Any]:
        if keep.ndim and not self._many:
            raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
        if keep.ndim:
            yield tuple(boolean_mask(value, keep) for value in values)
        elif keep:
            yield values


def _batched(
    tensors_list: Any,
    gather: Callable[[Dataset], Any],
    many: bool,
    name: str,
    keep: Any = True,
) -> Any:
    """Batches of tensors, in the structure that the tensors came in."""
    if not tensors_list or not all(tensors_list):
        raise ValueError(f"Must provide at least one tensor in {name}()")
    named = list(map(_as_dict, tensors_list))
    keys = list(named[0])
    if any(one.keys() != named[0].keys() for one in named):
        raise ValueError(f"the lists or dicts of {name}() must have the same length or keys")
    sets = [tuple(one[key] for key in keys) for one in named]
    following = parts(Next(_Evaluations(sets, gather, many, keep, name)), tuple(None for _ in keys))
    if isinstance(tensors_list[0], dict):
        return dict(zip(keys, following, strict=True))
    return list(following) if len(following) > 1 else following[0]


def _as_dict(tensors: Any) -> dict[Any, Any]:
    if isinstance(tensors, dict):
        return tensors
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"`tensors` must be a list or dict, found {type(tensors).__name__}")
    return dict(enumerate(tensors))


def batch(
    tensors: Any,
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of the values of tensors.

    Args:
        tensors: A list or dict of tensors, evaluated ``batch_size`` times for a batch.
        batch_size: Elements of a batch.
        enqueue_many: The tensors are batches, whose rows are the elements.
        dynamic_pad: Pad the elements of a batch to the longest of them.
        allow_smaller_final_batch: Keep a last batch of fewer elements.
        num_threads, capacity, shapes, shared_name, name: Accepted and ignored.

    Returns:
        Deferred values in the structure of ``tensors``; of a list of one, the value alone.
    """
    sizes = batch_size, dynamic_pad, allow_smaller_final_batch
    return _batched([tensors], partial(_in_order, *sizes), enqueue_many, "batch")


def batch_join(
    tensors_list: Any,
    batch_size: int,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As ``batch``, of several lists of tensors in turn."""
    sizes = batch_size, dynamic_pad, allow_smaller_final_batch
    return _batched(tensors_list, partial(_in_order, *sizes), enqueue_many, "batch_join")


def _in_order(size: int, pad: bool, keep_last: bool, dataset: Any) -> Any:
    size = integer("batch_size", to_numpy(size), 1)
    gather = dataset.padded_batch if pad else dataset.batch
    return gather(size, drop_remainder=not keep_last)


def shuffle_batch(
    tensors: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As ``batch``, in random order; see :meth:`tfwire.Dataset.shuffle_batch`.

    Args:
        capacity: Most elements held in memory.
        min_after_dequeue: Elements that are left for mixing, until the source ends.
        seed: Makes the order repeat; not the order that TensorFlow makes of it.

    Raises:
        ValueError: ``capacity`` is not above ``min_after_dequeue``.
    """
    sizes = _shuffling(batch_size, capacity, min_after_dequeue, seed, allow_smaller_final_batch)
    return _batched([tensors], sizes, enqueue_many, "shuffle_batch")


def shuffle_batch_join(
    tensors_list: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As ``shuffle_batch``, of several lists of tensors in turn."""
    sizes = _shuffling(batch_size, capacity, min_after_dequeue, seed, allow_smaller_final_batch)
    return _batched(tensors_list, sizes, enqueue_many, "shuffle_batch_join")


def _shuffling(
    size: int, capacity: int, least: int, seed: int | None, keep_last: bool
) -> Callable[[Dataset], Any]:
    if capacity <= least:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {least}.")
    return lambda dataset: dataset.shuffle_batch(size, capacity, max(1, least), seed, keep_last)


# ---- Batches of some of the values -------------------------------------------------------------
def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As ``batch``, of the values for which ``keep_input`` is True.

    Args:
        keep_input: A bool, evaluated with the tensors; with ``enqueue_many`` one for every row, or
            one for all of them.
    """
    sizes = batch_size, dynamic_pad, allow_smaller_final_batch
    return _batched([tensors], partial(_in_order, *sizes), enqueue_many, "batch", keep_input)


def maybe_batch_join(
    tensors_list: Any,
    keep_input: Any,
    batch_size: int,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As ``batch_join``, of the values for which ``keep_input`` is True."""
    sizes = batch_size, dynamic_pad, allow_smaller_final_batch
    return _batched(
        tensors_list, partial(_in_order, *sizes), enqueue_many, "batch_join", keep_input
    )


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As ``shuffle_batch``, of the values for which ``keep_input`` is True."""
    sizes = _shuffling(batch_size, capacity, min_after_dequeue, seed, allow_smaller_final_batch)
    return _batched([tensors], sizes, enqueue_many, "shuffle_batch", keep_input)


def maybe_shuffle_batch_join(
    tensors_list: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As ``shuffle_batch_join``, of the values for which ``keep_input`` is True."""
    sizes = _shuffling(batch_size, capacity, min_after_dequeue, seed, allow_smaller_final_batch)
    return _batched(tensors_list, sizes, enqueue_many, "shuffle_batch_join", keep_input)
