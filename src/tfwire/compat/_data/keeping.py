"""The transformations of tf.data that keep elements, in memory or in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from tfwire._datasets.replayed import Replayed
from tfwire._datasets.stage import Stage
from tfwire.compat._data import generators, stored
from tfwire.compat._data.making import Making, path_of
from tfwire.compat._errors import translating_files

__all__ = ["Keeping"]

P = TypeVar("P", bound="Keeping")


class Keeping(Making):
    """Methods with the names, arguments and results of ``tf.data.Dataset``."""

    def cache(self: P, filename: Any = "", name: str | None = None) -> P:
        """The same elements, kept by the first whole pass in memory or in a file.

        Args:
            filename: A path; "" keeps them in memory. The file is tfwire's own: see
                docs/differences.md.
        """
        path = path_of(filename)
        if path:
            keep = partial(stored.kept, path, None, self._stage)
        else:
            keep = partial(generators.cached, [], self._stage)
        return self._next(self._keeping("cache", keep), "cache")

    def snapshot(
        self: P,
        path: Any,
        compression: Any = "AUTO",
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> P:
        """The same elements, kept by the first whole pass in a file in the folder ``path``.

        Args:
            path: The folder.
            compression: "GZIP", or "AUTO" or None for none.
            reader_func: Is called with a dataset of datasets, of which there is one.
            shard_func: Accepted; there is one file.
        """
        keep = partial(
            stored.kept, stored.stored_file(path_of(path)), _codec(compression), self._stage
        )
        found = self._next(self._keeping("snapshot", keep), "snapshot")
        return found if reader_func is None else reader_func(self._listed([found]))

    def _keeping(self, name: str, keep: Any) -> Stage:
        """A stage that reads this pipeline in its first pass only."""
        return _Kept(name, self._stage, keep)

    def save(
        self,
        path: Any,
        compression: Any = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Writes the elements to a file in the folder ``path``, for ``Dataset.load``."""
        elements = self.as_numpy_iterator()
        with translating_files():
            stored.save(stored.stored_file(path_of(path)), _codec(compression), elements)


class _Kept(Replayed):
    """A Replayed whose function opens the source itself, if it needs it."""

    def __init__(self, name: str, source: Stage, generate: Any) -> None:
        facts = {"length": source.length, "spec": source.spec, "quiet": source.quiet}
        super().__init__(name, (), generate, **facts)
        self.kept = source

    def chain(self) -> Iterator[Stage]:
        yield self
        yield from self.kept.chain()


def _codec(compression: Any) -> Any:
    return None if compression in ("AUTO", "NONE") else compression
