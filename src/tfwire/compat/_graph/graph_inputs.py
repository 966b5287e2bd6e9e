"""The inputs of a graph: placeholders, iterators of datasets; and eager execution, which decides
between two kinds of iterators.

Everything runs at once except queues, readers, placeholders and the iterators of
``dataset.make_one_shot_iterator()``, which belong to a graph. After ``enable_eager_execution``
those iterators are eager. The functions of ``tf.compat.v1.data`` return eager iterators unless
``disable_eager_execution`` was called, as in TensorFlow 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tfwire._interface.messages import InvalidArgumentError
from tfwire._interface.pipelines import map_structure
from tfwire.compat._calls import parts
from tfwire.compat._graph.queues import SessionSource
from tfwire.compat._graph.session import Deferred, Evaluation, Operation, Session, SessionEffect
from tfwire.compat._tensor import Tensor


# ---- Placeholders -------------------------------------------------------------------------------
class Placeholder(Deferred):
    """A value that is fed to every run that needs it."""

    def __init__(self, dtype: Any, default: Any = None) -> None:
        super().__init__(Placeholder)
        self.fed_dtype: Any = dtype
        self._default = default

    def _evaluate(self, evaluation: Evaluation) -> Any:
        if self._default is None:
            raise InvalidArgumentError(
                None, None, f"You must feed a value for the placeholder {self.name!r}"
            )
        return Tensor(self._default)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Placeholder:
    """A value that ``Session.run`` takes from ``feed_dict``."""
    made = Placeholder(dtype)
    made.set_shape(shape)
    made.name = f"{name or 'Placeholder'}:0"
    return made


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Placeholder:
    """A placeholder with a default value, for runs that do not feed it."""
    made = Placeholder(None, input)
    made.set_shape(shape)
    return made


# ---- Iterators ----------------------------------------------------------------------------------
class GraphIterator(SessionSource):
    """The elements of a dataset as values of a graph: each run takes the next element.

    Args:
        dataset: The dataset, or None if only its structure is known yet.
        needs_initializer: Every session must run its ``initializer`` first; running it again starts
            over.
        structure: The structure of an element if there is no dataset yet: None for every tensor.
    """

    _tf_name = "data.Iterator"

    def __init__(self, dataset: Any, needs_initializer: bool, structure: Any = None) -> None:
        super().__init__("the iterator")
        self._dataset = dataset
        self.needs_initializer = needs_initializer
        self._structure = structure

    @classmethod
    def from_structure(
        cls, output_types: Any, output_shapes: Any = None, shared_name: Any = None, **others: Any
    ) -> GraphIterator:
        """An iterator that ``make_initializer`` gives datasets with elements of a structure."""
        return cls(None, True, map_structure(lambda dtype: None, output_types))

    def open(self, session: Any) -> Iterator[Any]:
        return iter(self._dataset)

    def get_next(self, name: str | None = None) -> Any:
        """The next element, in its structure."""
        structure = self._structure
        if self._dataset is not None:
            structure = map_structure(lambda spec: None, self._dataset.element_spec)
        return parts(self.drawn(), structure)

    @property
    def initializer(self) -> Operation:
        """The operation that starts again with the first element."""
        return self.make_initializer(self._dataset)

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """An operation that begins with the elements of a dataset."""
        return SessionEffect(lambda session: session.begin(self, iter(dataset)))

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec


class _Mode:
    eager: bool | None = None  # None: neither was called


def executing_eagerly() -> bool:
    """True if the iterators of ``tf.compat.v1.data`` give values at once."""
    return _Mode.eager is not False


def graphs_by_default() -> bool:
    """True unless ``enable_eager_execution`` was called: the default of TensorFlow 1."""
    return not _Mode.eager


def enable_eager_execution(config: Any = None, **others: Any) -> None:
    """Makes all iterators of datasets eager."""
    _Mode.eager = True


def disable_eager_execution() -> None:
    """Makes the iterators of ``tf.compat.v1.data`` those of a graph."""
    _Mode.eager = False
    Session.eager_elements = False


def make_one_shot_iterator(dataset: Any) -> Any:
    """tf.compat.v1.data.make_one_shot_iterator."""
    if executing_eagerly():
        Session.eager_elements = _Mode.eager is None
        return iter(dataset)
    return GraphIterator(dataset, needs_initializer=False)


def make_initializable_iterator(dataset: Any, shared_name: str | None = None) -> Any:
    """tf.compat.v1.data.make_initializable_iterator.

    Raises:
        RuntimeError: While executing eagerly, as in TensorFlow.
    """
    if executing_eagerly():
        raise RuntimeError(
            "make_initializable_iterator is for graphs: call tf.compat.v1.disable_eager_execution "
            "first, or use iter(dataset)"
        )
    return GraphIterator(dataset, needs_initializer=True)


def graph_iterator(dataset: Any, needs_initializer: bool) -> Any:
    """The iterator of a dataset's own method, of TensorFlow 1."""
    if _Mode.eager and not needs_initializer:
        return iter(dataset)
    return GraphIterator(dataset, needs_initializer)


class Graph:
    """A graph, for code that asks for one; deferred values do not need it."""

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Makes iterators of a graph within the ``with`` statement."""
        before, _Mode.eager = _Mode.eager, False
        try:
            yield self
        finally:
            _Mode.eager = before

    def finalize(self) -> None:
        """Does nothing."""


_graph = Graph()


def get_default_graph() -> Graph:
    """The only graph."""
    return _graph


def reset_default_graph() -> None:
    """Does nothing: a graph holds nothing."""
