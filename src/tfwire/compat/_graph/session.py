"""Session: evaluates deferred values, and holds what its sources have yet to give."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tfwire.compat._columns import RaggedTensor, SparseTensor
from tfwire.compat._errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    translating_files,
)
from tfwire.compat._graph.deferred import Deferred, Operation, Run, plain, rebuilt
from tfwire.compat._missing import Explained
from tfwire.compat._tensor import Tensor

__all__ = [
    "InteractiveSession",
    "Placeholder",
    "Session",
    "get_default_session",
    "group",
    "no_op",
    "placeholder",
    "placeholder_with_default",
    "session_or_default",
]

_defaults = threading.local()


class Session(Explained):
    """Evaluates values of a graph. Each session draws from its sources anew.

    Args:
        target, graph, config: Accepted and ignored.

    Example:
        >>> import tfwire.compat as tf
        >>> queue = tf.train.string_input_producer(["train.tfrecord"], num_epochs=1)
        >>> key, record = tf.TFRecordReader().read(queue)
        >>> with tf.Session() as session:
        ...     tf.train.start_queue_runners(session)
        ...     key.eval()
        []
        b'train.tfrecord:0'
    """

    _tf_name = "Session"
    eager_elements = False  # whether eager iterators were made, whose elements are not for sessions

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        self._iterators: dict[Any, Any] = {}
        self._lock = threading.RLock()
        self._closed = False
        self.graph = graph

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """The values of a structure of deferred values, each evaluated once.

        Args:
            fetches: A deferred value, an operation (whose value is None), an eager tensor, or
                lists, tuples and dicts of them.
            feed_dict: Values to use in place of some nodes.
            options, run_metadata: Accepted and ignored.

        Returns:
            numpy values and bytes, in the structure of ``fetches``.

        Raises:
            OutOfRangeError: A source has come to its end.
            TypeError: Something cannot be fetched.
            RuntimeError: The session is closed.
        """
        _check_fetches(fetches)
        fed = {key: _fed(key, value) for key, value in (feed_dict or {}).items()}
        with self._lock:
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            with translating_files():
                return plain(Run(self, fed).value(fetches))

    # ---- Sources ------------------------------------------------------------------------------

    def draw(self, source: Any) -> Any:
        """The next element of a source, which is opened when it is first drawn from."""
        for element in self.iterator(source):
            return element
        raise OutOfRangeError(None, None, f"{source.name} is closed and has no more elements")

    def iterator(self, source: Any) -> Iterator[Any]:
        """What a source has yet to give in this session."""
        if source not in self._iterators:
            if source.needs_initializer:
                raise FailedPreconditionError(
                    None, None, f"{source.name} is not initialized: run its initializer first"
                )
            self.begin(source, source.open(self))
        found: Iterator[Any] = self._iterators[source]
        return found

    def begin(self, source: Any, elements: Iterator[Any]) -> None:
        """Begins a source anew."""
        _close(self._iterators.get(source))
        self._iterators[source] = elements

    def close(self) -> None:
        """Closes the files of all sources. Closing again is allowed."""
        self._closed = True
        for elements in self._iterators.values():
            _close(elements)
        self._iterators = {}

    # ---- The default session ------------------------------------------------------------------

    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """Makes it the session of ``eval`` and of ``start_queue_runners``, in this thread."""
        stack = _stack()
        stack.append(self)
        try:
            yield self
        finally:
            stack.remove(self)

    def __enter__(self) -> Session:
        _stack().append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self in _stack():
            _stack().remove(self)
        self.close()


class InteractiveSession(Session):
    """A session that is the default one until it is closed."""

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        _stack().append(self)

    def close(self) -> None:
        """Closes the session; another is the default one from then on."""
        if self in _stack():
            _stack().remove(self)
        super().close()


def _close(elements: Any) -> None:
    if hasattr(elements, "close"):
        elements.close()


def _stack() -> list[Session]:
    if not hasattr(_defaults, "stack"):
        _defaults.stack = []
    found: list[Session] = _defaults.stack
    return found


def get_default_session() -> Session | None:
    """The session of the innermost ``with`` statement, or None."""
    stack = _stack()
    return stack[-1] if stack else None


def session_or_default(session: Session | None, purpose: str) -> Session:
    """A session, or the default one.

    Raises:
        ValueError: There is neither.
    """
    found = session or get_default_session()
    if found is None:
        raise ValueError(
            f"Cannot {purpose}: No default session is registered. Use `with Session() as session`"
        )
    return found


# ---- Fetches and feeds ------------------------------------------------------------------------

_FETCHABLE = (Deferred, Tensor, SparseTensor, RaggedTensor)


def _check_fetches(fetches: Any) -> None:
    if isinstance(fetches, (list, tuple, dict)):
        rebuilt(_check_fetches, fetches)
    elif Session.eager_elements and type(fetches) is Tensor:
        raise RuntimeError(
            "a tensor of an eager iterator has one value in every run: call "
            "tf.compat.v1.disable_eager_execution() before the iterator is made"
        )
    elif not isinstance(fetches, _FETCHABLE):
        raise TypeError(
            f"Fetch argument {fetches!r} has invalid type {type(fetches).__name__}, must be a "
            "tensor or an operation"
        )


def _fed(key: Any, value: Any) -> Any:
    return (
        value if isinstance(value, _FETCHABLE) else Tensor(value, getattr(key, "fed_dtype", None))
    )


class Placeholder(Deferred):
    """A value that is fed to every run that needs it."""

    def __init__(self, dtype: Any, default: Any = None) -> None:
        super().__init__(Placeholder)
        self.fed_dtype, self._default = dtype, default

    def _evaluate(self, run: Run) -> Any:
        if self._default is None:
            raise InvalidArgumentError(
                None, None, f"You must feed a value for the placeholder {self.name!r}"
            )
        return Tensor(self._default)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Placeholder:
    """A value that ``Session.run`` is told by ``feed_dict``."""
    made = Placeholder(dtype)
    made.set_shape(shape)
    made.name = f"{name or 'Placeholder'}:0"
    return made


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Placeholder:
    """A placeholder with a value for runs that are told none."""
    made = Placeholder(None, input)
    made.set_shape(shape)
    return made


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that runs others."""
    return Operation(_nothing, *inputs)


def no_op(name: str | None = None) -> Operation:
    """An operation without effect."""
    return Operation(_nothing)


def _nothing(*values: Any) -> None:
    """Takes the values of a group."""
