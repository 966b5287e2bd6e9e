"""Values of a graph, and Session.run that evaluates them."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, ClassVar

from tfwire.compat._calls import EARLIER, parts, renamed, result_structure
from tfwire.compat._decoding import RaggedTensor, SparseTensor
from tfwire.compat._errors import (
    Explained,
    FailedPreconditionError,
    OutOfRangeError,
    translating_files,
)
from tfwire.compat._tensor import Tensor, TensorShape


class Deferred(Tensor):
    """A tensor whose value comes with ``Session.run``.

    Args:
        function: Is called with the values of the inputs.
        args, kwargs: The inputs: deferred values, other values, and lists, tuples and dicts of
            them.
    """

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        Deferred.exists = True
        self._function = function
        self._inputs = args, kwargs
        self._shape = TensorShape(None)
        self.name: str = f"{getattr(function, '__name__', 'tensor')}:0"

    exists: bool = False  # True once there is one; before, calls do not look for them in arguments

    def _evaluate(self, evaluation: Evaluation) -> Any:
        """The value in one Session.run, which calls this once."""
        args, kwargs = evaluation.value(self._inputs)
        return self._function(*args, **kwargs)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value, by a session or the default one."""
        return session_or_default(session, "evaluate tensor using eval()").run(self, feed_dict)

    # ---- What is known before there is a value -------------------------------------------------

    @property
    def op(self) -> Deferred:
        return self

    @property
    def shape(self) -> TensorShape:
        """The shape set by ``set_shape``; unknown before."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """As ``shape``."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Says what the shape will be. It is not checked."""
        self._shape = TensorShape(shape)

    @property
    def values(self) -> Deferred:
        """The values of a sparse or ragged tensor."""
        return Deferred(operator.attrgetter("values"), self)

    @property
    def indices(self) -> Deferred:
        """The indices of a sparse tensor."""
        return Deferred(operator.attrgetter("indices"), self)

    @property
    def dense_shape(self) -> Deferred:
        """The shape of a sparse tensor."""
        return Deferred(operator.attrgetter("dense_shape"), self)

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r} shape={self.shape}, a value of Session.run>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __getitem__(self, key: Any) -> Deferred:
        return Deferred(operator.getitem, self, key)

    # Equality is identity, as in TensorFlow 1, so that a tensor can be a key of feed_dict. mypy
    # takes __hash__ for that of a class with an __eq__ of its own, which has none.
    __eq__: ClassVar[Callable[[Tensor, object], Any]] = object.__eq__
    __ne__: ClassVar[Callable[[Tensor, object], Any]] = object.__ne__
    __hash__: Callable[[Deferred], int] = object.__hash__  # type: ignore[assignment]

    @property
    def _value(self) -> Any:
        raise _unknown("a value")

    @property
    def dtype(self) -> Any:
        raise _unknown("one of a known dtype")

    def __bool__(self) -> bool:
        raise _unknown("a bool")

    def __iter__(self) -> Iterator[Any]:
        raise _unknown("an iterable")

    def __len__(self) -> int:
        raise _unknown("a sequence with a length")

    def numpy(self) -> Any:
        raise _unknown("a numpy value")


def _unknown(what: str) -> TypeError:
    return TypeError(
        f"a tensor of a graph is not {what}: its value comes with Session.run(tensor); "
        "datasets take the value itself, not a placeholder"
    )


def _delegate(name: str, reflected: bool) -> Callable[..., Deferred]:
    function = getattr(operator, name)

    def forward(self: Deferred, *other: Any) -> Deferred:
        return Deferred(function, self, *other)

    def backward(self: Deferred, other: Any) -> Deferred:
        return Deferred(function, other, self)

    return backward if reflected else forward


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor"):
    _stem = _name.rstrip("_")
    setattr(Deferred, f"__{_stem}__", _delegate(_name, False))
    setattr(Deferred, f"__r{_stem}__", _delegate(_name, True))
for _name in ("lt", "le", "gt", "ge", "neg", "abs", "invert", "matmul"):
    setattr(Deferred, f"__{_name}__", _delegate(_name, False))


class Operation(Deferred):
    """A node that is run for its effect; its value is None."""

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Runs it in a session or the default one."""
        session_or_default(session, "execute operation using run()").run(self, feed_dict)

    def _evaluate(self, evaluation: Evaluation) -> None:
        super()._evaluate(evaluation)


class SessionStep(Deferred):
    """What a function makes of the session and of the values of the inputs, once in a run."""

    def _evaluate(self, evaluation: Evaluation) -> Any:
        args, _ = evaluation.value(self._inputs)
        return self._function(evaluation.session, *args)


class SessionEffect(SessionStep, Operation):
    """The same, for its effect."""


# ---- Evaluating -------------------------------------------------------------------------------
class Evaluation:
    """One evaluation of a graph: every node that is needed, once.

    Args:
        session: The session whose sources are drawn from.
        fed: The values of some nodes, given by the user.
    """

    def __init__(self, session: Any, fed: Any = ()) -> None:
        self.session = session
        self._values: dict[Deferred, Any] = dict(fed)

    def value(self, structure: Any) -> Any:
        """A structure with its deferred values replaced by values."""
        if isinstance(structure, Deferred):
            if structure not in self._values:
                # A function's result may be deferred itself, as that of tf.cond.
                self._values[structure] = self.value(structure._evaluate(self))
            return self._values[structure]
        return rebuilt(self.value, structure)


def rebuilt(function: Callable[[Any], Any], structure: Any) -> Any:
    """A list, tuple or dict with a function applied to its items; anything else unchanged."""
    if isinstance(structure, (list, tuple)):
        items = [function(item) for item in structure]
        if hasattr(structure, "_fields"):
            return type(structure)(*items)
        return items if isinstance(structure, list) else tuple(items)
    if isinstance(structure, dict):
        return {key: function(item) for key, item in structure.items()}
    return structure


def defer_call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call for later, in the structure that its result will have as far as that is known."""
    node = Deferred(function, *args, **kwargs)
    return parts(node, result_structure(function.__name__, args, kwargs))


def deferred(function: Callable[..., Any], arguments: tuple[Any, Any]) -> Any:
    """A call for later if an argument is deferred, else None."""
    return Deferred(function, *arguments[0], **arguments[1]) if _holds_deferred(arguments) else None


def _holds_deferred(structure: Any) -> bool:
    if isinstance(structure, (list, tuple)):
        return any(map(_holds_deferred, structure))
    if isinstance(structure, dict):
        return any(map(_holds_deferred, structure.values()))
    return isinstance(structure, Deferred)


@functools.cache
def deferring(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls are deferred if an argument is; other calls run at once. It takes
    the names that arguments had in TensorFlow 1."""
    earlier = EARLIER.get(function.__name__, {})

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and earlier:
            kwargs = renamed(earlier, kwargs)
        if Deferred.exists and (_holds_deferred(args) or _holds_deferred(kwargs)):
            return defer_call(function, args, kwargs)
        return function(*args, **kwargs)

    vars(call).update({"earlier_names": earlier} if earlier else {})  # for tfwire port
    return call


def deferring_all(names: dict[str, Any]) -> None:
    """Makes the public functions of a namespace defer calls with deferred arguments."""
    for name, value in names.items():
        if isinstance(value, FunctionType) and not name.startswith("_"):
            names[name] = deferring(value)


def _fetched(value: Any) -> Any:
    """A value as Session.run returns it: numpy values, bytes, and structures of them."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, (SparseTensor, RaggedTensor)):
        return value.plain
    return rebuilt(_fetched, value)


# ---- Session ------------------------------------------------------------------------------------

_defaults = threading.local()


class Session(Explained):
    """Evaluates values of a graph. Each session draws from its sources from the beginning.

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
    eager_elements = False  # True once an eager iterator was made: its elements cannot be fetched

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
            OutOfRangeError: A source has ended.
            TypeError: Something cannot be fetched.
            RuntimeError: The session is closed.
        """
        _check_fetches(fetches)
        fed = {key: _fed(key, value) for key, value in (feed_dict or {}).items()}
        with self._lock:
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            with translating_files():
                return _fetched(Evaluation(self, fed).value(fetches))

    # ---- Sources ------------------------------------------------------------------------------

    def draw(self, source: Any) -> Any:
        """The next element of a source, which is opened when it is first drawn from."""
        for element in self.iterator(source):
            return element
        raise OutOfRangeError(None, None, f"{source.name} is closed and has no more elements")

    def iterator(self, source: Any) -> Any:
        """The rest of a source's elements in this session, or what makes them."""
        if source not in self._iterators:
            if source.needs_initializer:
                raise FailedPreconditionError(
                    None, None, f"{source.name} is not initialized: run its initializer first"
                )
            self.begin(source, source.open(self))
        return self._iterators[source]

    def begin(self, source: Any, elements: Iterator[Any]) -> None:
        """Starts a source over."""
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

    def __exit__(self, *exc_info: Any) -> bool | None:
        if self in _stack():
            _stack().remove(self)
        self.close()
        return None


class InteractiveSession(Session):
    """A session that is the default until it is closed."""

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        _stack().append(self)

    def close(self) -> None:
        """Closes the session, which is no longer the default."""
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
    if isinstance(value, _FETCHABLE):
        return value
    if not isinstance(key, Deferred):
        raise TypeError(f"a key of feed_dict must be a tensor of a graph, found {key!r}")
    tensor = Tensor(value, getattr(key, "fed_dtype", None))
    if not tensor.shape.is_compatible_with(key.shape):
        raise ValueError(
            f"Cannot feed value of shape {tensor.shape} for Tensor {key.name}, which has shape "
            f"{key.shape}"
        )
    return tensor


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that runs others."""
    return Operation(_nothing, *inputs)


def no_op(name: str | None = None) -> Operation:
    """An operation without effect."""
    return Operation(_nothing)


def _nothing(*values: Any) -> None:
    """Takes the values of a group."""
