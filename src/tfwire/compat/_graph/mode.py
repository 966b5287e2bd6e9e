"""Eager execution or graphs: which iterators TensorFlow 1's functions return.

Everything runs at once except queues, readers, placeholders and the iterators of
``dataset.make_one_shot_iterator()``, which belong to a graph. After ``enable_eager_execution``
those iterators are eager. The functions of ``tf.compat.v1.data`` return eager iterators unless
``disable_eager_execution`` was called, as in TensorFlow 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tfwire.compat._graph.iterators import GraphIterator
from tfwire.compat._graph.session import Session

__all__ = [
    "Graph",
    "disable_eager_execution",
    "enable_eager_execution",
    "executing_eagerly",
    "get_default_graph",
    "graph_iterator",
    "make_initializable_iterator",
    "make_one_shot_iterator",
    "reset_default_graph",
]


class _Mode:
    eager: bool | None = None  # None: neither was called


def executing_eagerly() -> bool:
    """True if the iterators of ``tf.compat.v1.data`` give values at once."""
    return _Mode.eager is not False


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
