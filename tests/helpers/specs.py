"""Counts how often specifications are compiled."""

from collections.abc import Iterator
from contextlib import contextmanager

from tfwire._parsing import native_session, spec_cache


class _Counting:
    """A library whose schemas are counted."""

    def __init__(self, lib: object, made: list[int]) -> None:
        self._lib, self._made = lib, made

    def __getattr__(self, name: str) -> object:
        return getattr(self._lib, name)

    def tfw_schema_create(self, *arguments: object) -> int:
        self._made.append(arguments[1])
        return self._lib.tfw_schema_create(*arguments)


@contextmanager
def compilations() -> Iterator[list[int]]:
    """The numbers of features of the schemas that C makes, from no specification known on."""
    forget()
    made: list[int] = []
    real = native_session.lib
    native_session.lib = _Counting(real, made)
    try:
        yield made
    finally:
        native_session.lib = real


def forget() -> None:
    """Forgets every compiled specification."""
    spec_cache._known.clear()
    spec_cache._met.clear()
