"""Values of a graph: a function and its inputs, evaluated once in every Session.run."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from tfwire.compat._columns import RaggedTensor, SparseTensor
from tfwire.compat._graph import outputs
from tfwire.compat._shapes import TensorShape
from tfwire.compat._tensor import Tensor

__all__ = ["Deferred", "Next", "Operation", "Run", "defer", "deferring", "deferring_all"]


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
        self.name = f"{getattr(function, '__name__', 'tensor')}:0"

    exists = False  # whether there is any: until then nothing is looked for in arguments

    def _evaluate(self, run: Run) -> Any:
        """The value in one Session.run; asked for once."""
        args, kwargs = run.value(self._inputs)
        return self._function(*args, **kwargs)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value, by a session or the default one."""
        from tfwire.compat._graph.session import session_or_default

        return session_or_default(session, "evaluate tensor using eval()").run(self, feed_dict)

    # ---- What is known before there is a value -------------------------------------------------

    @property
    def op(self) -> Deferred:
        return self

    @property
    def shape(self) -> TensorShape:
        """The shape that ``set_shape`` was told; of unknown rank otherwise."""
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

    # Equality is identity, as in TensorFlow 1, so that a tensor can be a key of feed_dict.
    __eq__, __ne__, __hash__ = object.__eq__, object.__ne__, object.__hash__

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
    return TypeError(f"a tensor of a graph is not {what}: its value comes with Session.run(tensor)")


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
    """What is run for its effect; its value is None."""

    def _evaluate(self, run: Run) -> None:
        super()._evaluate(run)


class Next(Deferred):
    """The next element that a session draws from a source."""

    def __init__(self, source: Any) -> None:
        super().__init__(source.open)
        self._source = source

    def _evaluate(self, run: Run) -> Any:
        return run.session.draw(self._source)


# ---- Evaluating -------------------------------------------------------------------------------


class Run:
    """One evaluation of a graph: every node that is needed, once.

    Args:
        session: Whose sources are drawn from.
        fed: The values of some nodes, given by the user.
    """

    def __init__(self, session: Any, fed: Any = ()) -> None:
        self.session = session
        self._values: dict[Deferred, Any] = dict(fed)

    def value(self, structure: Any) -> Any:
        """A structure with values in place of deferred ones."""
        if isinstance(structure, Deferred):
            if structure not in self._values:
                # What a function of the user returns may be deferred itself, as those of tf.cond.
                self._values[structure] = self.value(structure._evaluate(self))
            return self._values[structure]
        return rebuilt(self.value, structure)


def rebuilt(function: Callable[[Any], Any], structure: Any) -> Any:
    """A list, tuple or dict with a function applied to its items; anything else as it is."""
    if isinstance(structure, (list, tuple)):
        items = [function(item) for item in structure]
        if hasattr(structure, "_fields"):
            return type(structure)(*items)
        return items if isinstance(structure, list) else tuple(items)
    if isinstance(structure, dict):
        return {key: function(item) for key, item in structure.items()}
    return structure


def defer(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call for later, in the structure that its result will have as far as that is known."""
    node = Deferred(function, *args, **kwargs)
    return outputs.parts(node, outputs.structure_of(function.__name__, args, kwargs), _part)


def _part(node: Any, key: Any) -> Deferred:
    return Deferred(operator.getitem, node, key)


def _holds_deferred(structure: Any) -> bool:
    if isinstance(structure, (list, tuple)):
        return any(map(_holds_deferred, structure))
    if isinstance(structure, dict):
        return any(map(_holds_deferred, structure.values()))
    return isinstance(structure, Deferred)


@functools.cache
def deferring(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is called at once with values, and deferred with a deferred one."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if Deferred.exists and (_holds_deferred(args) or _holds_deferred(kwargs)):
            return defer(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def deferring_all(names: dict[str, Any]) -> None:
    """Makes the public functions of a namespace deferring ones."""
    for name, value in names.items():
        if isinstance(value, FunctionType) and not name.startswith("_"):
            names[name] = deferring(value)


def plain(value: Any) -> Any:
    """A value as Session.run returns it: numpy values, bytes, and structures of them."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, (SparseTensor, RaggedTensor)):
        return value.plain
    return rebuilt(plain, value)
