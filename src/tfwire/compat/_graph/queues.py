"""Queues of TensorFlow 1, and the batches made from them."""

from __future__ import annotations

import glob
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tfwire._base.arguments import integer
from tfwire.compat._convert import as_array, to_numpy
from tfwire.compat._data.dataset import Dataset
from tfwire.compat._errors import OutOfRangeError
from tfwire.compat._graph.outputs import parts
from tfwire.compat._graph.session import Deferred, Next, Operation, Run, session_or_default
from tfwire.compat._missing import Explained
from tfwire.compat._tensor import Tensor

__all__ = [
    "Queue",
    "Source",
    "batch",
    "batch_join",
    "input_producer",
    "match_filenames_once",
    "range_input_producer",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
]


class Source(Explained):
    """Something that a session draws elements from.

    Args:
        name: Its name in errors.
    """

    _tf_name = "Queue"
    needs_initializer = False

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def open(self, session: Any) -> Iterator[Any]:
        """The elements, for one session."""


def start_queue_runners(
    sess: Any = None,
    coord: Any = None,
    daemon: bool = True,
    start: bool = True,
    collection: Any = None,
) -> list[Any]:
    """Returns no threads: a session makes elements when it needs them.

    Raises:
        ValueError: There is no session.
    """
    session_or_default(sess, "start queue runners")
    return []


# ---- Queues of values -------------------------------------------------------------------------
class Queue(Source):
    """The rows of some tensors, over and over, in turn or in random order.

    Args:
        tensors: A structure of tensors; also deferred ones.
        num_epochs: How often they come; None: endlessly.
        shuffle: Use another random order in every epoch.
        seed: Makes the order repeat.
        name: Its name in errors.
    """

    def __init__(
        self,
        tensors: Any,
        num_epochs: int | None,
        shuffle: bool,
        seed: int | None,
        name: str | None,
    ) -> None:
        super().__init__(name or "input_producer")
        if num_epochs is not None and integer("num_epochs", num_epochs) < 1:
            raise ValueError(f"`num_epochs` must be at least 1, found {num_epochs}")
        self._tensors = tensors
        self._num_epochs = num_epochs
        self._shuffle = shuffle
        self._seed = seed

    def open(self, session: Any) -> Iterator[Any]:
        rows = Dataset.from_tensor_slices(Run(session).value(self._tensors))
        if self._shuffle and len(rows):
            rows = rows.shuffle(len(rows), self._seed)
        return iter(rows.repeat(self._num_epochs))

    def size_of_epoch(self, session: Any) -> int:
        """The number of elements before they repeat."""
        return len(Dataset.from_tensor_slices(Run(session).value(self._tensors)))

    def dequeue(self, name: str | None = None) -> Next:
        """The next element."""
        return Next(self)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Does nothing."""
        return Operation(lambda: None)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> Queue:
    """A queue of the rows of a tensor."""
    return Queue(input_tensor, num_epochs, shuffle, seed, name)


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> Queue:
    """A queue of strings, usually the names of files for a reader.

    Args:
        string_tensor: The strings; also a deferred tensor, as that of ``match_filenames_once``.
        num_epochs: How often they come; None: endlessly.
        shuffle: Use another random order in every epoch.
        seed: Makes the order repeat.
        capacity, shared_name, cancel_op: Accepted and ignored.

    Raises:
        ValueError: There are no strings.
    """
    if not isinstance(string_tensor, Deferred) and not as_array(string_tensor).size:
        raise ValueError("string_input_producer requires a non-null input tensor")
    return Queue(string_tensor, num_epochs, shuffle, seed, name)


def range_input_producer(
    limit: int,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> Queue:
    """A queue of the numbers from 0 to limit - 1, int32."""
    return Queue(np.arange(limit, dtype=np.int32), num_epochs, shuffle, seed, name)


def slice_input_producer(
    tensor_list: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Deferred]:
    """One row of each of some tensors, in turn or in random order.

    Raises:
        ValueError: There are no tensors.
    """
    if not tensor_list:
        raise ValueError("Expected at least one tensor in slice_input_producer().")
    queue = Queue(tuple(tensor_list), num_epochs, shuffle, seed, name)
    found: list[Deferred] = list(parts(Next(queue), tuple(None for _ in tensor_list)))
    return found


def match_filenames_once(pattern: Any, name: str | None = None) -> Deferred:
    """The names of the files that match patterns, sorted, when a session asks for them."""
    patterns = as_array(pattern).ravel().tolist()

    def names() -> Tensor:
        found = {os.fsencode(name) for one in patterns for name in glob.glob(os.fsdecode(one))}
        return Tensor(sorted(found))

    return Deferred(names)


# ---- Batches of the values of tensors -----------------------------------------------------------


class _Evaluations(Source):
    """The values of tensors, evaluated again and again, and gathered by a pipeline.

    Args:
        tensor_sets: Tuples of deferred values; more than one are evaluated in turn.
        gather: Makes a dataset of batches of a dataset of the tuples.
        name: Its name in errors.
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
    following = parts(Next(_Evaluations(sets, rows, name)), tuple(None for _ in sets[0]))
    first = tensors_list[0]
    if isinstance(first, dict):
        return dict(zip(first, following, strict=True))
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
