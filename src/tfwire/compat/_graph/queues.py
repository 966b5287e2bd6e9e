"""Queues of TensorFlow 1."""

from __future__ import annotations

import glob
import os
from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from tfwire._base.arguments import integer
from tfwire.compat._convert import to_array, to_numpy
from tfwire.compat._data.dataset import Dataset
from tfwire.compat._errors import Explained, OutOfRangeError
from tfwire.compat._graph.outputs import parts
from tfwire.compat._graph.session import Deferred, Evaluation, Next, Operation, session_or_default
from tfwire.compat._ops import stack
from tfwire.compat._tensor import Tensor

__all__ = [
    "Queue",
    "SessionSource",
    "input_producer",
    "match_filenames_once",
    "range_input_producer",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
]


class SessionSource(Explained):
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
class Queue(SessionSource):
    """The rows of some tensors, repeated, in order or in random order.

    Args:
        tensors: A structure of tensors; also deferred ones.
        num_epochs: How often they are repeated; None: endlessly.
        shuffle: Use another random order in every epoch.
        seed: Makes the order reproducible.
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
        rows = Dataset.from_tensor_slices(Evaluation(session).value(self._tensors))
        if self._shuffle and len(rows):
            rows = rows.shuffle(len(rows), self._seed)
        return iter(rows.repeat(self._num_epochs))

    def size_of_epoch(self, session: Any) -> int:
        """The number of elements before they repeat."""
        return len(Dataset.from_tensor_slices(Evaluation(session).value(self._tensors)))

    def dequeue(self, name: str | None = None) -> Next:
        """The next element."""
        return Next(self)

    def dequeue_many(self, n: int, name: str | None = None) -> Deferred:
        """The next n elements as one tensor."""
        return _Several(self, n, fewer=False)

    def dequeue_up_to(self, n: int, name: str | None = None) -> Deferred:
        """The next n elements as one tensor; fewer at the end."""
        return _Several(self, n, fewer=True)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Does nothing."""
        return Operation(lambda: None)


class _Several(Deferred):
    """The next elements that a session draws from a queue, stacked."""

    def __init__(self, queue: Queue, count: Any, fewer: bool) -> None:
        super().__init__(queue.open)
        self._queue, self._count, self._fewer = queue, count, fewer

    def _evaluate(self, evaluation: Evaluation) -> Any:
        count = integer("n", to_numpy(evaluation.value(self._count)), 1)
        rows = list(islice(evaluation.session.iterator(self._queue), count))
        if len(rows) < count and not (rows and self._fewer):
            raise OutOfRangeError(
                None, None, f"{self._queue.name} is closed and has {len(rows)} of {count} elements"
            )
        return stack(rows)


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
        num_epochs: How often they are repeated; None: endlessly.
        shuffle: Use another random order in every epoch.
        seed: Makes the order reproducible.
        capacity, shared_name, cancel_op: Accepted and ignored.

    Raises:
        ValueError: There are no strings.
    """
    if not isinstance(string_tensor, Deferred) and not to_array(string_tensor).size:
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
    patterns = to_array(pattern).ravel().tolist()

    def names() -> Tensor:
        found = {os.fsencode(name) for one in patterns for name in glob.glob(os.fsdecode(one))}
        return Tensor(sorted(found))

    return Deferred(names)
