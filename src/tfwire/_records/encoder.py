"""The registered encoder of Examples. Records know nothing of Examples: ``tfwire`` registers it.

It is imported when a writer gets the first mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tfwire._base.aliases import Row, SupportsArrow


class Encoder(Protocol):
    """What writers need of the module that encodes Examples."""

    def encode_example(self, row: Row) -> bytes:
        """One serialized Example."""

    def encode_examples(self, rows: Iterable[Row]) -> list[bytes]:
        """One serialized Example per row."""

    def encode_columns(self, columns: Row | SupportsArrow, *, num_threads: int = 1) -> list[bytes]:
        """One serialized Example per entry of the columns."""

    def encode_framed(self, columns: Row | SupportsArrow) -> Generator[Any, None, None]:
        """Blocks of framed records, one record per entry of the columns."""

    def encode_framed_in_threads(
        self,
        columns: Row | SupportsArrow,
        num_threads: int,
        make: Callable[[memoryview], Any],
    ) -> Generator[Any, None, None]:
        """What ``make`` returns of the bytes of each block of framed records. Threads encode the
        blocks and call it; the results come in order."""

    def encode_spans(
        self, columns: Row | SupportsArrow, num_threads: int
    ) -> Generator[Any, None, None]:
        """Pairs of bytes and spans: blocks of messages, uint8 of rank 1 and uint64 of shape (n, 2).
        With one thread a block is valid until the next; else it has memory of its own."""

    def FramedRows(self) -> Any:
        """An object whose ``encode(rows)`` yields blocks of framed records, for one thread."""


_load: Callable[[], Any] | None = None


def register_encoder(load: Callable[[], Any]) -> None:
    """Sets the function that imports the encoder."""
    global _load
    _load = load


def encoder() -> Encoder:
    """The registered encoder."""
    if _load is None:
        raise RuntimeError("no encoder of Examples is registered: import tfwire first")
    found: Encoder = _load()
    return found
