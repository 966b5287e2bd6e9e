"""tf.data.Iterator and tf.data.experimental.Optional."""

from __future__ import annotations

from typing import Any

from tfwire import DatasetIterator
from tfwire._interface.messages import InvalidArgumentError
from tfwire._interface.pipelines import iterate, map_structure
from tfwire.compat._data.specs import leaf_spec
from tfwire.compat._errors import Explained, FailedPreconditionError, OutOfRangeError, as_tensorflow
from tfwire.compat._tensor import Tensor


class _Graph:
    """Makes TensorFlow 1's iterators. ``tfwire.compat`` sets both functions, so that datasets need
    not import the graphs, which are made of datasets."""

    iterator: Any
    from_structure: Any


graph = _Graph()


class Iterator(Explained, DatasetIterator[Any]):
    """One pass over a dataset, made by ``iter(dataset)``.

    Its state can be saved and loaded, as that of :class:`tfwire.DatasetIterator`.

    Example:
        >>> import tfwire.compat as tf
        >>> iterator = iter(tf.data.Dataset.range(2))
        >>> int(iterator.get_next()), int(iterator.get_next())
        (0, 1)
        >>> bool(iterator.get_next_as_optional().has_value())
        False
    """

    _tf_name = "data.Iterator"
    _dataset: Any
    _translated = staticmethod(as_tensorflow)

    @staticmethod
    def _given_up(error: Exception) -> Exception:
        message = "the iterator has ended: its pipeline cannot go on after the error before"
        found = FailedPreconditionError(None, None, message)
        found.__cause__ = error
        return found

    @classmethod
    def over(cls, dataset: Any, show: Any) -> Iterator:
        """An iterator over a dataset; ``show`` is applied to its elements."""
        elements = iterate(dataset._stage, show, kind=cls)
        assert isinstance(elements, Iterator)
        elements._dataset = dataset
        return elements

    next = DatasetIterator.__next__

    @staticmethod
    def from_structure(output_types: Any, output_shapes: Any = None, **others: Any) -> Any:
        """An iterator of TensorFlow 1; ``make_initializer`` gives it a dataset."""
        return graph.from_structure(output_types, output_shapes)

    def get_next(self, name: str | None = None) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: There is none.
        """
        for element in self:
            return element
        raise OutOfRangeError(None, None, "End of sequence")

    def get_next_as_optional(self) -> Optional:
        """The next element as an Optional, without a value at the end."""
        for element in self:
            return Optional.from_value(element)
        return Optional.empty()

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec


class Optional:
    """A value, or none."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values = values

    @classmethod
    def from_value(cls, value: Any) -> Optional:
        return cls((value,))

    @classmethod
    def empty(cls, element_spec: Any = None) -> Optional:
        return cls(())

    def has_value(self, name: str | None = None) -> Tensor:
        return Tensor(bool(self._values))

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: There is none.
        """
        if not self._values:
            raise InvalidArgumentError(None, None, "the Optional has no value")
        return self._values[0]

    @property
    def element_spec(self) -> Any:
        return map_structure(leaf_spec, self.get_value())


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element of an iterator as an Optional."""
    return iterator.get_next_as_optional()
