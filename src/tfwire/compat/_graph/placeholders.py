"""Values of a graph that a run is given."""

from __future__ import annotations

from typing import Any

from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._graph.session import Deferred, Evaluation
from tfwire.compat._tensor import Tensor


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
