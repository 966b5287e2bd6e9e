"""How the datasets of tfwire.compat make further ones."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from tfwire._arguments import integer
from tfwire._datasets.pipeline import Pipeline
from tfwire._datasets.replayed import Replayed, elements_of
from tfwire._datasets.structure import map_structure
from tfwire.compat._convert import to_numpy
from tfwire.compat._data import generators
from tfwire.compat._missing import Explained

__all__ = ["Making", "check_dataset", "integer_of", "path_of", "seed_of"]

P = TypeVar("P", bound="Making")


class Making(Explained, Pipeline):
    """A pipeline, continued by generator functions."""

    _tf_name = "data.Dataset"

    def _made(
        self: P, name: str, generate: Any, *arguments: Any, others: Any = (), **facts: Any
    ) -> P:
        """A dataset of what a generator function makes of the elements of this one."""
        sources = (self._stage, *(other._stage for other in others))
        generate = partial(generate, *arguments)
        return self._next(Replayed(name, sources, generate, **facts), name)

    def _shown(self, structure: Any) -> Any:
        return map_structure(self._show, structure)

    def _hidden(self, structure: Any) -> Any:
        return map_structure(self._hide, structure)

    def _opening(self, map_func: Callable[..., Any]) -> Callable[[Any, str], Iterator[Any]]:
        """Opens the dataset that a function makes of an element."""
        return partial(_open_inner, self._calling(map_func))

    def _listed(self, values: list[Any], spec: Any = None) -> Any:
        """A dataset of values that are there already."""
        stage = Replayed(
            "list",
            (),
            partial(generators.listed, values),
            length=len(values),
            spec=spec,
            quiet=True,
        )
        return self._next(stage, "list")


# ---- Arguments ----


# Functions of modules and methods, no closures: pipelines pickle with their functions.


def _open_inner(call: Callable[[Any], Any], element: Any, epoch: str) -> Iterator[Any]:
    inner = call(element)
    check_dataset("the result of map_func", inner)
    return elements_of(inner._stage, epoch)


def check_dataset(name: str, value: Any) -> None:
    if not isinstance(value, Making):
        raise TypeError(f"{name} must be a Dataset, got {type(value).__name__}")


def integer_of(call: Callable[[Any], Any], element: Any) -> int:
    return int(call(element))


def seed_of(seed: Any) -> int:
    return random.randrange(2**63) if seed is None else integer("seed", to_numpy(seed))


def path_of(path: Any) -> str:
    return os.fsdecode(to_numpy(os.fspath(path) if isinstance(path, os.PathLike) else path))
