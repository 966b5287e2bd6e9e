"""Batches of TensorFlow 1: what tensors evaluate to, gathered by a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tfwire._arguments import integer
from tfwire.compat._convert import to_numpy
from tfwire.compat._data.dataset import Dataset
from tfwire.compat._errors import OutOfRangeError
from tfwire.compat._graph.deferred import Next, Run
from tfwire.compat._graph.queues import Source, parts_of

__all__ = ["batch", "batch_join", "shuffle_batch", "shuffle_batch_join"]


class _Evaluations(Source):
    """What tensors evaluate to, again and again, gathered by a pipeline.

    Args:
        tensor_sets: Tuples of deferred values; more than one are evaluated in turn.
        gather: Makes a dataset of batches of a dataset of the tuples.
        name: What errors call it.
    """

    def __init__(
        self, tensor_sets: list[tuple[Any, ...]], gather: Callable[[Dataset], Any], name: str
    ) -> None:
        super().__init__(name)
        self._tensor_sets = tensor_sets
        self._gather = gather

    def open(self, session: Any) -> Iterator[Any]:
        return iter(self._gather(Dataset.from_generator(partial(self._evaluate, session))))

    def _evaluate(self, session: Any) -> Iterator[Any]:
        left = list(self._tensor_sets)
        while left:
            for tensors in list(left):
                try:
                    yield Run(session).value(tensors)
                except OutOfRangeError:
                    left.remove(tensors)


def _batched(tensors_list: Any, gather: Callable[[Dataset], Any], many: bool, name: str) -> Any:
    """Batches of tensors, in the structure that the tensors came in."""
    if not tensors_list or not all(tensors_list):
        raise ValueError(f"Must provide at least one tensor in {name}()")
    sets = [tuple(_as_dict(tensors).values()) for tensors in tensors_list]
    rows = (lambda dataset: gather(dataset.unbatch())) if many else gather
    following = parts_of(Next(_Evaluations(sets, rows, name)), tuple(None for _ in sets[0]))
    first = tensors_list[0]
    if isinstance(first, dict):
        return dict(zip(first, following, strict=True))
    return list(following) if len(following) > 1 else following[0]


def _as_dict(tensors: Any) -> dict[Any, Any]:
    if isinstance(tensors, dict):
        return tensors
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"`tensors` must be a list or dict, got {type(tensors).__name__}")
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
    """Batches of what tensors evaluate to.

    Args:
        tensors: A list or dict of tensors, evaluated ``batch_size`` times for a batch.
        batch_size: Elements of a batch.
        enqueue_many: The tensors are batches already, of which the rows are elements.
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
        capacity: Elements held in memory at most.
        min_after_dequeue: Elements that are left for mixing, until the source ends.
        seed: Makes the order repeat; it is not the one that TensorFlow makes of it.

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
