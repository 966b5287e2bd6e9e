"""TensorFlow 1's iterators of datasets: one-shot, initializable and reinitializable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfwire._data.structure import map_structure
from tfwire.compat._graph.outputs import parts
from tfwire.compat._graph.queues import SessionSource
from tfwire.compat._graph.session import Evaluation, Next, Operation

__all__ = ["GraphIterator"]


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
        return parts(Next(self), structure)

    @property
    def initializer(self) -> Operation:
        """The operation that begins the elements anew."""
        return self.make_initializer(self._dataset)

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """An operation that begins with the elements of a dataset."""
        return _Begin(self, dataset)

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec


class _Begin(Operation):
    def __init__(self, iterator: GraphIterator, dataset: Any) -> None:
        super().__init__(iter, dataset)
        self._iterator, self._dataset = iterator, dataset

    def _evaluate(self, evaluation: Evaluation) -> None:
        evaluation.session.begin(self._iterator, iter(self._dataset))
