"""Queues of TensorFlow 1, their Coordinator, and the monitored sessions that stop at the end."""

from __future__ import annotations

import glob
import os
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from typing import Any

import numpy as np

from tfwire._interface.files import without_indexes
from tfwire._interface.messages import integer
from tfwire.compat._calls import parts, signed
from tfwire.compat._constants import to_array, to_numpy
from tfwire.compat._data.dataset import Dataset
from tfwire.compat._errors import Explained, OutOfRangeError
from tfwire.compat._graph.session import (
    Deferred,
    Evaluation,
    Operation,
    Session,
    SessionStep,
    session_or_default,
)
from tfwire.compat._ops import stack
from tfwire.compat._tensor import Tensor


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
    def open(self, session: Any) -> Any:
        """What one session holds of it: its elements, or what makes them."""

    def dequeued(self, session: Any) -> Any:
        """The next element, in one session."""
        return session.draw(self)

    def drawn(self) -> SessionStep:
        """The next element, in the session that runs it."""
        return SessionStep(self.dequeued)


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

    def dequeue(self, name: str | None = None) -> Deferred:
        """The next element."""
        return self.drawn()

    def dequeue_many(self, n: int, name: str | None = None) -> Deferred:
        """The next n elements as one tensor."""
        return SessionStep(self.dequeued_many, n, False)

    def dequeue_up_to(self, n: int, name: str | None = None) -> Deferred:
        """The next n elements as one tensor; fewer at the end."""
        return SessionStep(self.dequeued_many, n, True)

    def dequeued_many(self, session: Any, n: Any, fewer: bool) -> Any:
        count = integer("n", to_numpy(n), 1)
        rows = list(islice(session.iterator(self), count))
        if len(rows) < count and not (rows and fewer):
            message = f"{self.name} is closed and has {len(rows)} of {count} elements"
            raise OutOfRangeError(None, None, message)
        return stack(rows)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Does nothing."""
        return Operation(lambda: None)


# ---- tf.train.string_input_producer and its relatives --------------------------------------------
def _rows_of(name: str, given: Any) -> Any:
    """What the first argument of a producer makes a queue of."""
    if name == "range_input_producer":
        return np.arange(given, dtype=np.int32)
    if name == "slice_input_producer":
        if not given:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        return tuple(given)
    is_deferred = isinstance(given, Deferred)
    if name == "string_input_producer" and not is_deferred and not to_array(given).size:
        raise ValueError("string_input_producer requires a non-null input tensor")
    return given


def _produced(name: str, arguments: dict[str, Any]) -> Any:
    given = next(iter(arguments.values()))
    options = (arguments[one] for one in ("num_epochs", "shuffle", "seed", "name"))
    queue = Queue(_rows_of(name, given), *options)
    if name == "slice_input_producer":
        return list(parts(queue.drawn(), tuple(None for _ in given)))
    return queue


_REPEATED = "num_epochs shuffle seed capacity shared_name"
_PRODUCERS = {
    "input_producer": (
        ("input_tensor", f"element_shape {_REPEATED} summary_name name cancel_op"),
        "A queue of the rows of a tensor.",
    ),
    "range_input_producer": (
        ("limit", f"{_REPEATED} name"),
        "A queue of the numbers from 0 to limit - 1, int32.",
    ),
    "slice_input_producer": (
        ("tensor_list", f"{_REPEATED} name"),
        "One row of each of some tensors, in turn or in random order.",
    ),
    "string_input_producer": (
        ("string_tensor", f"{_REPEATED} name cancel_op"),
        "A queue of strings, usually the names of files for a reader.",
    ),
}
_PRODUCER_PARAMETERS: dict[str, tuple[Any, str]] = {
    "string_tensor": (None, "Also a deferred tensor, as that of ``match_filenames_once``."),
    "num_epochs": (None, "How often they are repeated; None: endlessly."),
    "shuffle": (True, "Use another random order in every epoch."),
    "seed": (None, "Makes the order reproducible."),
    "capacity": (32, "Ignored."),
}
PRODUCERS = {
    name: signed(_produced, name, *facts, _PRODUCER_PARAMETERS)
    for name, facts in _PRODUCERS.items()
}


def match_filenames_once(pattern: Any, name: str | None = None) -> Deferred:
    """The names of the files that match patterns, sorted, when a session asks for them."""
    patterns = to_array(pattern).ravel().tolist()

    def names() -> Tensor:
        found = {name for one in patterns for name in glob.glob(os.fsdecode(one))}
        return Tensor(sorted(map(os.fsencode, without_indexes(list(found)))))

    return Deferred(names)


class Coordinator(Explained):
    """Asks threads to stop, and raises the error that one of them stopped for.

    Args:
        clean_stop_exception_types: Exceptions that stop the threads and are not errors; None:
            OutOfRangeError, which readers raise at their end.

    Example:
        >>> import tfwire.compat as tf
        >>> coordinator = tf.train.Coordinator()
        >>> coordinator.request_stop()
        >>> coordinator.should_stop()
        True
        >>> coordinator.join([])
    """

    _tf_name = "train.Coordinator"

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        self._clean = tuple(clean_stop_exception_types or (OutOfRangeError,))
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._threads: set[threading.Thread] = set()
        self._joined = False

    @property
    def joined(self) -> bool:
        return self._joined

    def should_stop(self) -> bool:
        """True once a stop was requested."""
        return self._stop.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop.

        Args:
            ex: Why: an exception, or what ``sys.exc_info()`` returned; ``join`` raises the first.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            first = self._error is None and not self._stop.is_set()
            if first and error is not None and not isinstance(error, self._clean):
                self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Forgets that a stop was requested, and why."""
        with self._lock:
            self._joined, self._error = False, None
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested; False if that takes longer than ``timeout`` seconds."""
        return self._stop.wait(timeout)

    def raise_requested_exception(self) -> None:
        """Raises the exception that a stop was requested with, if there is one."""
        if self._error is not None:
            raise self._error

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Turns an exception of the ``with`` block into a request to stop."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread that ``join`` waits for."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self,
        threads: Iterable[Any] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits for the threads to end, then raises what a stop was requested with.

        Args:
            threads: Threads to wait for in addition to the registered ones.
            stop_grace_period_secs: How long threads may go on after a stop was requested.
            ignore_live_threads: Do not raise for threads that go on longer.

        Raises:
            RuntimeError: A thread did not end in time.
        """
        waiting = self._threads.union(threads or ())
        while any(thread.is_alive() for thread in waiting) and not self._stop.wait(0.05):
            pass
        deadline = monotonic() + stop_grace_period_secs
        for thread in waiting:
            thread.join(max(0.0, deadline - monotonic()))
        self._joined = True
        self._threads.clear()
        self.raise_requested_exception()
        alive = [thread.name for thread in waiting if thread.is_alive()]
        if alive and not ignore_live_threads:
            raise RuntimeError(
                f"Coordinator stopped with threads still running: {' '.join(sorted(alive))}"
            )


class MonitoredSession(Session):
    """A session whose ``with`` statement ends cleanly where a source has come to its end.

    Args:
        session_creator, stop_grace_period_secs, config: Accepted and ignored.
        hooks: None or empty: hooks are not run.

    Raises:
        ValueError: There are hooks.

    Example:
        >>> import tfwire.compat as tf
        >>> numbers = tf.train.range_input_producer(2, num_epochs=1, shuffle=False).dequeue()
        >>> with tf.train.MonitoredSession() as session:
        ...     while not session.should_stop():
        ...         print(session.run(numbers))
        0
        1
    """

    _tf_name = "train.MonitoredSession"

    def __init__(
        self,
        session_creator: Any = None,
        hooks: Any = None,
        stop_grace_period_secs: float = 120,
        config: Any = None,
    ) -> None:
        if hooks:
            raise ValueError("hooks are not run: call them in the loop around `session.run`")
        super().__init__()
        self._ended = False

    def should_stop(self) -> bool:
        """True once a source has come to its end, or the session was closed."""
        return self._ended or self._closed

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """As :meth:`Session.run`; the end of a source is a reason to stop."""
        try:
            return super().run(fetches, feed_dict)
        except OutOfRangeError:
            self._ended = True
            raise

    def __enter__(self) -> MonitoredSession:
        super().__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> bool | None:
        super().__exit__(*exc_info)
        return isinstance(exc_info[1], (OutOfRangeError, StopIteration))


class SingularMonitoredSession(MonitoredSession):
    """As :class:`MonitoredSession`.

    Args:
        hooks: None or empty.
        others: Accepted and ignored.
    """

    def __init__(self, hooks: Any = None, **others: Any) -> None:
        super().__init__(hooks=hooks)


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Any = None,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    **others: Any,
) -> MonitoredSession:
    """A :class:`MonitoredSession`.

    Args:
        checkpoint_dir: None: there are no variables to save.
        hooks, chief_only_hooks: None or empty.
        master, is_chief, scaffold, others: Accepted and ignored.

    Raises:
        ValueError: There are hooks, or a folder for checkpoints.
    """
    if checkpoint_dir is not None:
        raise ValueError("`checkpoint_dir` must be None: there are no variables to save")
    return MonitoredSession(hooks=[*(hooks or ()), *(chief_only_hooks or ())])
