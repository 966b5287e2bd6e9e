"""tf.queue.FIFOQueue: elements that a program puts in and takes out, by a session or at once.

No thread fills a queue or waits for one. What TensorFlow would wait for is an error, unless a
QueueRunner was added: its operations run when elements are needed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import numpy as np

from tfwire._interface.messages import InvalidArgumentError, integer
from tfwire.compat._constants import as_dtype, to_numpy
from tfwire.compat._errors import (
    CancelledError,
    DeadlineExceededError,
    Explained,
    OutOfRangeError,
)
from tfwire.compat._graph.graph_inputs import executing_eagerly, graphs_by_default
from tfwire.compat._graph.queues import SessionSource
from tfwire.compat._graph.session import Deferred, Evaluation, SessionEffect, SessionStep, deferred
from tfwire.compat._ops import stack
from tfwire.compat._tensor import Tensor, TensorShape
from tfwire.typing import DType


class FIFOQueue(Explained):
    """A queue of elements, first in, first out.

    In a graph, and after ``disable_eager_execution``, its methods give operations and tensors for
    ``Session.run``, and each session has elements of its own. Else they act at once.

    Args:
        capacity: Most elements; negative: any number.
        dtypes: The dtype of every component of an element; one, or a list.
        shapes: Their shapes, which ``dequeue_many`` needs; None: elements may differ.
        names: Their names: elements are dicts.
        shared_name: In a session, queues of one such name are the same.
        name: Its name in errors.

    Raises:
        ValueError: A shape is not fully defined, or there are more or fewer names than dtypes.
        InvalidArgumentError: There are more or fewer shapes than dtypes, or no dtypes.

    Example:
        >>> import tfwire.compat as tf
        >>> queue = tf.queue.FIFOQueue(10, tf.int64, shapes=[()])
        >>> queue.enqueue_many([[1, 2, 3]])
        >>> queue.close()
        >>> queue.dequeue().numpy().item(), queue.dequeue_up_to(5).numpy().tolist()
        (1, [2, 3])
    """

    _tf_name = "FIFOQueue"

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:
        listed = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
        self.dtypes: list[DType] = [as_dtype(dtype) for dtype in listed]
        if not listed:
            raise InvalidArgumentError("a queue needs at least one dtype")
        self.shapes: list[TensorShape] = _as_shapes(shapes, len(self.dtypes))
        self.names: list[str] | None = _as_names(names, len(self.dtypes))
        self.name: str = name or "fifo_queue"
        self._runners: list[QueueRunner] = []
        self._store = _Store(integer("capacity", capacity), self, shared_name)
        self._eager = None if self._is_of_a_graph() else self._store.open(None)

    def _is_of_a_graph(self) -> bool:
        return not executing_eagerly()

    # ---- Elements that go in --------------------------------------------------------------------
    def enqueue(self, vals: Any, name: str | None = None) -> Any:
        """Adds an element.

        Args:
            vals: A tensor, a list of the components, or a dict of them if the queue has names.

        Raises:
            CancelledError: The queue is closed.
            DeadlineExceededError: It is full, where TensorFlow waits.
            InvalidArgumentError: Dtypes or shapes are not those of the queue.
        """
        return self._act(_Elements.put, *self._components(vals, many=False))

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """Adds the rows of tensors as elements, all of them or none; as :meth:`enqueue`."""
        return self._act(_Elements.put_rows, *self._components(vals, many=True))

    def _components(self, vals: Any, many: bool) -> list[Any]:
        """The components of an element, or of rows of elements, in the queue's dtypes."""
        if isinstance(vals, dict):
            if not self.names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if set(vals) != set(self.names):
                raise ValueError(
                    f"Keys in dictionary to enqueue do not match names of Queue: found "
                    f"{sorted(map(str, vals))}, expected {sorted(self.names)}"
                )
            vals = [vals[key] for key in self.names]
        elif self.names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        values = vals if isinstance(vals, (list, tuple)) else [vals]
        _same_length("components", values, self.dtypes)
        found = [_component(*pair) for pair in zip(values, self.dtypes, strict=True)]
        _check_shapes([value.shape for value in found], self.shapes, many)
        return found

    # ---- Elements that come out -----------------------------------------------------------------
    def dequeue(self, name: str | None = None) -> Any:
        """Takes the first element: a tensor, or a list or dict of several components.

        Raises:
            OutOfRangeError: The queue is closed and empty.
            DeadlineExceededError: It is empty, where TensorFlow waits.
        """
        return self._as_returned(self._take(self._first, self.shapes))

    def dequeue_many(self, n: int, name: str | None = None) -> Any:
        """Takes the first n elements, stacked; as :meth:`dequeue`.

        Raises:
            InvalidArgumentError: The queue was made without shapes, or n is negative.
        """
        return self._as_returned(self._take(self._stacked, self._batched(n), n, False))

    def dequeue_up_to(self, n: int, name: str | None = None) -> Any:
        """As :meth:`dequeue_many`; of a closed queue, what is left if that is fewer."""
        return self._as_returned(self._take(self._stacked, self._batched(None), n, True))

    def _batched(self, n: Any) -> list[TensorShape]:
        size = n if isinstance(n, int) and n >= 0 else None
        return [
            TensorShape(None if shape.rank is None else (size, *shape.as_list()))
            for shape in self.shapes
        ]

    def _take(self, function: Callable[..., Any], shapes: Any, *args: Any) -> list[Any]:
        """The tensors of one shape each that a function returns, now or in each run."""
        if self._eager is not None:
            found: list[Any] = function(None, *args)
            return found
        node = SessionStep(function, *args)
        found = [node[i] for i in range(len(shapes))]
        for tensor, shape in zip(found, shapes, strict=True):
            tensor.set_shape(shape)
        return found

    def _as_returned(self, components: list[Any]) -> Any:
        if self.names:
            return dict(zip(self.names, components, strict=True))
        return components[0] if len(components) == 1 else components

    def _first(self, session: Any) -> Any:
        return self._fill(session, 1).take(1, fewer=False)[0]

    def _stacked(self, session: Any, n: Any, fewer: bool) -> Any:
        count = integer("n", to_numpy(n))
        if any(shape.rank is None for shape in self.shapes):
            raise InvalidArgumentError(
                "FIFOQueue's dequeue_many and dequeue_up_to need a queue with specified shapes"
            )
        if count < 0:
            raise InvalidArgumentError(f"dequeue of {count} < 0 elements")
        rows = self._fill(session, count).take(count, fewer)
        if rows:
            return [stack(column) for column in zip(*rows, strict=True)]
        kinds = zip(self.shapes, self.dtypes, strict=True)
        return [Tensor(np.empty((0, *shape.as_list()), dtype.dtype)) for shape, dtype in kinds]

    def _fill(self, session: Any, count: int) -> _Elements:
        """The elements in a session, once runners have added what a call needs."""
        elements = self._elements(session)
        for runner in self._runners:
            runner._fill(session, elements, count)
        return elements

    def dequeued(self, session: Any) -> Any:
        """The next element, in one session."""
        return self._first(session)[0]

    def size_of_epoch(self, session: Any) -> float:
        """Infinite: elements do not repeat."""
        return math.inf

    # ---- The queue itself -----------------------------------------------------------------------
    def size(self, name: str | None = None) -> Any:
        """The number of elements, an int32."""
        return self._take(lambda session: [self._elements(session).size()], _SCALAR)[0]

    def is_closed(self, name: str | None = None) -> Any:
        """Whether it is closed."""
        return self._take(lambda session: [self._elements(session).is_closed()], _SCALAR)[0]

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """Says that no more elements will come; what is in the queue can be taken.

        Raises:
            CancelledError: It is closed already, and ``cancel_pending_enqueues`` is False.
        """
        return self._act(_Elements.end, cancel_pending_enqueues)

    def _act(self, method: Callable[..., Any], *args: Any) -> Any:
        """A method of the elements: called now, or by each run of the operation returned."""
        if self._eager is not None:
            return method(self._eager, *args)

        def act(session: Any, *values: Any) -> Any:
            return method(self._elements(session), *values)

        return SessionEffect(act, *args)

    def _elements(self, session: Any) -> _Elements:
        if self._eager is not None:
            return self._eager
        found: _Elements = session.iterator(self._store)
        found.store.check_same(self._store)
        return found


class GraphFIFOQueue(FIFOQueue):
    """TensorFlow 1's name for it: it is of a graph unless ``enable_eager_execution`` was called."""

    def _is_of_a_graph(self) -> bool:
        return graphs_by_default()


_SCALAR = [TensorShape(())]


# ---- Elements -----------------------------------------------------------------------------------
class _Store(SessionSource):
    """What a session knows the elements of a queue by: the queue, or the name that queues share."""

    def __init__(self, capacity: int, queue: FIFOQueue, shared_name: str | None) -> None:
        super().__init__(queue.name)
        self.capacity = math.inf if capacity < 0 else capacity
        self.dtypes, self.shapes = queue.dtypes, queue.shapes
        self._key = shared_name or object()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Store) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def open(self, session: Any) -> _Elements:
        return _Elements(self)

    def check_same(self, other: _Store) -> None:
        """Raises InvalidArgumentError unless queues of one name are made alike."""
        wanted = {
            "capacity": (self.capacity, other.capacity),
            "component types": (self.dtypes, other.dtypes),
            "component shapes": (list(map(str, self.shapes)), list(map(str, other.shapes))),
        }
        for what, (ours, theirs) in wanted.items():
            if ours != theirs:
                raise InvalidArgumentError(
                    f"Shared queue '{self._key}' has {what} {ours}, requested were {theirs}"
                )


class _Elements:
    """The elements of a queue: those of one session, or of an eager queue."""

    def __init__(self, store: _Store) -> None:
        self.store = store
        self.ended: set[Any] = set()  # operations of runners that will add no more
        self.puts = 0  # calls that added elements, be it none
        self.bounded = True  # False while a runner adds what a call takes at once
        self._rows: deque[Sequence[Tensor]] = deque()
        self._closed = False
        self._lock = RLock()

    def put(self, *components: Any) -> None:
        _check_shapes([value.shape for value in components], self.store.shapes, many=False)
        self._add([list(components)])

    def put_rows(self, *columns: Any) -> None:
        _check_shapes([value.shape for value in columns], self.store.shapes, many=True)
        self._add([[value[i] for value in columns] for i in range(len(columns[0]))])

    def _add(self, rows: list[Any]) -> None:
        name = f"FIFOQueue '{self.store.name}'"
        with self._lock:
            held = len(self._rows)
            if self._closed:
                raise CancelledError(f"{name} is closed.")
            if self.bounded and held + len(rows) > self.store.capacity:
                raise DeadlineExceededError(
                    f"{name} of capacity {self.store.capacity} has {held} elements and no room for "
                    f"{len(rows)}: no thread takes any while this one waits"
                )
            self._rows.extend(rows)
            self.puts += 1

    def take(self, count: int, fewer: bool) -> list[Any]:
        """The first elements; fewer if the queue is closed and that is allowed."""
        with self._lock:
            held = len(self._rows)
            if held < count and not (fewer and held and self._closed):
                raise self._lacking(f"(requested {count}, current size {held})")
            return [self._rows.popleft() for _ in range(min(count, held))]

    def _lacking(self, sizes: str) -> Exception:
        name = f"FIFOQueue '{self.store.name}'"
        if self._closed:
            return OutOfRangeError(f"{name} is closed and has insufficient elements {sizes}")
        return DeadlineExceededError(
            f"{name} has insufficient elements {sizes}: no thread adds any while this one waits; "
            "run an operation that does, or close the queue"
        )

    def lacks(self, count: int) -> bool:
        """True if it is open and has fewer elements."""
        return len(self._rows) < count and not self._closed

    def size(self) -> Tensor:
        return Tensor(np.int32(len(self._rows)), np.int32)

    def is_closed(self) -> Tensor:
        return Tensor(self._closed)

    def end(self, cancel_pending_enqueues: bool) -> None:
        with self._lock:
            if self._closed and not cancel_pending_enqueues:
                raise CancelledError(f"Queue '{self.store.name}' is already closed.")
            self._closed = True


# ---- Runners ------------------------------------------------------------------------------------
class QueueRunner(Explained):
    """Operations that add elements to a queue when they are needed, and close it at their end.

    Args:
        queue: A FIFOQueue of a graph.
        enqueue_ops: The operations; each runs in turn until it raises one of the exceptions.
        close_op: Closes the queue then; None: ``queue.close()``.
        cancel_op: Accepted and ignored.
        queue_closed_exception_types: What means that there is no more; None: OutOfRangeError.

    Raises:
        ValueError: There is no queue, or no operation.
    """

    _tf_name = "train.QueueRunner"

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Any = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: Any = None,
        queue_runner_def: Any = None,
        import_scope: Any = None,
    ) -> None:
        if not isinstance(queue, FIFOQueue) or not enqueue_ops:
            raise ValueError("QueueRunner needs a FIFOQueue and a list of operations")
        self.queue: FIFOQueue = queue
        self.name: str = queue.name
        self.enqueue_ops: list[Any] = list(enqueue_ops)
        self.close_op: Any = queue.close(True) if close_op is None else close_op
        self.cancel_op: Any = cancel_op
        self.queue_closed_exception_types: Any = queue_closed_exception_types or (OutOfRangeError,)
        self.exceptions_raised: list[Exception] = []

    def create_threads(
        self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> list[Any]:
        """Adds it to its queue. Returns no threads."""
        add_queue_runner(self)
        return []

    def _fill(self, session: Any, elements: _Elements, count: int) -> None:
        """Runs the operations in turn until the queue has some elements, or they have ended."""
        while elements.lacks(count):
            before = elements.puts
            left = [key for key in enumerate(self.enqueue_ops) if (self, key) not in elements.ended]
            for key in left:
                if elements.lacks(count):
                    self._run(session, elements, key)
            if elements.puts == before:
                return  # by operations that add nothing

    def _run(self, session: Any, elements: _Elements, key: Any) -> None:
        elements.bounded = False
        try:
            Evaluation(session).value(key[1])
        except self.queue_closed_exception_types:
            elements.ended.add((self, key))
            if all((self, key) in elements.ended for key in enumerate(self.enqueue_ops)):
                Evaluation(session).value(self.close_op)
        finally:
            elements.bounded = True


def add_queue_runner(qr: QueueRunner, collection: Any = None) -> None:
    """Makes a QueueRunner fill its queue, in every session."""
    if qr not in qr.queue._runners:
        qr.queue._runners.append(qr)


# ---- Arguments ----------------------------------------------------------------------------------
def _as_shapes(shapes: Any, count: int) -> list[TensorShape]:
    if shapes is None:
        return [TensorShape(None)] * count
    if isinstance(shapes, TensorShape) or not isinstance(shapes, (list, tuple)):
        shapes = [shapes]
    elif all(size is None or isinstance(size, int) for size in shapes):
        shapes = [shapes]  # one shape
    found = [TensorShape(shape) for shape in shapes]
    if not all(shape.is_fully_defined() for shape in found):
        raise ValueError(f"All shapes must be fully defined: {found}")
    _same_length("shapes", found, range(count))
    return found


def _as_names(names: Any, count: int) -> list[str] | None:
    if names is None:
        return None
    found = list(names) if isinstance(names, (list, tuple)) else [names]
    if len(found) != count:
        raise ValueError(
            "List of names must have the same length as the list of dtypes, "
            f"found {len(found)} and {count}"
        )
    return found


def _same_length(what: str, found: Sequence[Any], dtypes: Sequence[Any]) -> None:
    if len(found) != len(dtypes):
        raise InvalidArgumentError(
            f"expected one of {what} for each dtype: {len(dtypes)}, found {len(found)}"
        )


def _component(value: Any, dtype: Any) -> Any:
    """A value in a dtype; of a graph's value, one for later."""
    found = deferred(Tensor, ((value, dtype), {}))
    if found is None:
        return Tensor(value, dtype)
    if isinstance(value, Deferred):
        found.set_shape(value.shape)
    return found


def _check_shapes(found: list[TensorShape], expected: list[TensorShape], many: bool) -> None:
    """Raises InvalidArgumentError unless the shapes of components, or of rows of them, fit."""
    counts = set()
    for shape, wanted in zip(found, expected, strict=True):
        if shape.rank is None:
            continue
        sizes = shape.as_list()
        if many:
            if not sizes:
                raise InvalidArgumentError("Shape () must have rank at least 1")
            counts.add(sizes.pop(0))
        if not TensorShape(sizes).is_compatible_with(wanted):
            raise InvalidArgumentError(
                f"Shape mismatch in a component: expected {wanted}, found {sizes}"
            )
    if len(counts - {None}) > 1:
        raise InvalidArgumentError(f"components with different numbers of rows: {counts}")
