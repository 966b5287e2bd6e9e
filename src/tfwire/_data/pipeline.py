"""Pipeline, the base of datasets: a chain of stages, and how the functions of users are called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from tfwire._base.aliases import Value
from tfwire._base.arguments import check_type
from tfwire._base.text import html_of
from tfwire._data.iterator import DatasetIterator, iterate
from tfwire._data.permutations import generator
from tfwire._data.stages import Stage
from tfwire._data.structure import map_structure

P = TypeVar("P", bound="Pipeline[Any]")
Element = TypeVar("Element", covariant=True)
FOR_TORCH = "for torch's DataLoader: tfwire.torch.TFRecordIterableDataset(dataset)"


class Pipeline(Generic[Element]):
    """The base of Dataset: the last of the stages that make its elements.

    Args:
        stage: The stage.
        name: Its name when printed.
    """

    _further: Any = None  # the class of derived pipelines; None: this class

    def __init__(self, stage: Stage, name: str = "Dataset") -> None:
        self._stage = stage
        self._name = name

    # How user functions see a leaf, and how a leaf that they return is stored. The compat
    # layer shows objects with a numpy() method.
    @staticmethod
    def _show(leaf: Any) -> Any:
        return leaf

    @staticmethod
    def _hide(leaf: Any) -> Any:
        return leaf

    @classmethod
    def _of(cls: type[P], stage: Stage, name: str) -> P:
        """A pipeline of this class, made without its __init__."""
        result = object.__new__(cls)
        Pipeline.__init__(result, stage, name)
        return result

    def _next(self: P, stage: Stage, name: str) -> P:
        """A pipeline of the same kind, with one more stage."""
        return (self._further or type(self))._of(stage, name)

    def _calling(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        """A function that is called as by tf.data: tuples become arguments, named ones do not."""
        return partial(_call, function, self._show, self._hide)

    def _calling_with_generator(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        """The same, with a random Generator as one more argument, for what Randomized gives."""
        return partial(_call_with_generator, function, self._show, self._hide)

    def __iter__(self) -> DatasetIterator[Element]:
        show = self._show
        if show is Pipeline._show:
            return iterate(self._stage)
        return iterate(self._stage, lambda element: map_structure(show, element))

    def __len__(self) -> int:
        """The number of elements.

        Raises:
            TypeError: It is not known without reading.
        """
        if self._stage.length is None:
            hint = f"; {FOR_TORCH}" if "torch" in sys.modules else ""
            raise TypeError(f"the length of {self!r} is not known without reading it{hint}")
        return self._stage.length

    def __bool__(self) -> bool:
        """True, as in TensorFlow: knowing whether there are elements would need reading."""
        return True

    def as_numpy_iterator(self) -> Iterator[Element]:
        """The elements as numpy values and bytes."""
        return iterate(self._stage)

    @property
    def element_spec(self) -> Value:
        """The structure of an element with "dtype[shape]" for each leaf; None where unknown."""
        return self._stage.spec

    def _repr_html_(self) -> str | None:
        """The structure of the elements, for notebooks."""
        return html_of(self)

    def __repr__(self) -> str:
        spec = "unknown until read" if self.element_spec is None else repr(self.element_spec)
        length = "" if self._stage.length is None else f", length={self._stage.length}"
        return f"<{self._name} elements={spec}{length}>"


# Not closures, because datasets are pickled with their functions.
def _call(function: Callable[..., Any], show: Any, hide: Any, element: Any, *more: Any) -> Any:
    shown = map_structure(show, element)
    result = function(*(shown if type(shown) is tuple else (shown,)), *more)
    return map_structure(hide, tuple(result) if isinstance(result, list) else result)


def _call_with_generator(function: Callable[..., Any], show: Any, hide: Any, keyed: Any) -> Any:
    return _call(function, show, hide, keyed.element, generator(keyed.key))


def check_dataset(dataset: Any) -> None:
    """Raises TypeError if a value, for example a path, is not a Dataset."""
    check_type("dataset", dataset, Pipeline, "a tfwire Dataset")
