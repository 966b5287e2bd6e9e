"""What every Dataset is: a stage, and a way to iterate over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from tfwire._datasets.iterator import DatasetIterator, iterate
from tfwire._datasets.stage import Stage
from tfwire._datasets.structure import map_structure

__all__ = ["Pipeline", "check_dataset"]

P = TypeVar("P", bound="Pipeline")


class Pipeline:
    """A stage, the last of those that make the elements, and its name.

    Args:
        stage: The stage.
        name: What to call it where it is printed.
    """

    _further: Any = None  # the class of what follows; None: this one

    def __init__(self, stage: Stage, name: str = "Dataset") -> None:
        self._stage = stage
        self._name = name

    # What the user's code sees of a leaf, and what becomes of a leaf that it returns. The
    # compat layer shows objects with a numpy() method instead.
    @staticmethod
    def _show(leaf: Any) -> Any:
        return leaf

    @staticmethod
    def _hide(leaf: Any) -> Any:
        return leaf

    @classmethod
    def _of(cls: type[P], stage: Stage, name: str) -> P:
        """A pipeline of this kind, whatever arguments its class takes."""
        result = object.__new__(cls)
        Pipeline.__init__(result, stage, name)
        return result

    def _next(self: P, stage: Stage, name: str) -> P:
        """A pipeline of the same kind on a further stage."""
        return (self._further or type(self))._of(stage, name)

    def _calling(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        """function, called as tf.data calls it: tuples become arguments."""
        return partial(_call, function, self._show, self._hide)

    def __iter__(self) -> DatasetIterator:
        show = self._show
        if show is Pipeline._show:
            return iterate(self._stage)
        return iterate(self._stage, lambda element: map_structure(show, element))

    def __len__(self) -> int:
        """The number of elements.

        Raises:
            TypeError: It cannot be known without reading.
        """
        if self._stage.length is None:
            raise TypeError(f"the length of {self!r} is not known without reading it")
        return self._stage.length

    def __bool__(self) -> bool:
        """True, as in TensorFlow: whether there are elements is not known without reading."""
        return True

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements as numpy values and bytes."""
        return iterate(self._stage)

    @property
    def element_spec(self) -> Any:
        """The structure of an element with "dtype[shape]" for each leaf; None where unknown."""
        return self._stage.spec

    def __repr__(self) -> str:
        spec = "unknown until read" if self.element_spec is None else repr(self.element_spec)
        length = "" if self._stage.length is None else f", length={self._stage.length}"
        return f"<{self._name} elements={spec}{length}>"


def _call(function: Callable[..., Any], show: Any, hide: Any, element: Any) -> Any:
    # No closure: datasets go to other processes, with the functions that pickle.
    shown = map_structure(show, element)
    result = function(*shown) if isinstance(shown, tuple) else function(shown)
    return map_structure(hide, tuple(result) if isinstance(result, list) else result)


def check_dataset(dataset: Any) -> None:
    """Raises TypeError where something that should be a Dataset, a path say, is none."""
    if not isinstance(dataset, Pipeline):
        raise TypeError(f"expected a tfwire Dataset, found {type(dataset).__name__}")
