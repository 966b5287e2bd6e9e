"""Which threads work for which iterators: those that an iterator may wait for.

A function or a file object of the user's that runs in such a thread may ask the iterator for a
result, or for a state. The iterator must not wait then: it would wait for itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from threading import get_ident
from types import CodeType, FrameType
from typing import Any
from weakref import ref

__all__ = ["EXECUTING", "Service", "methods_inside", "services", "services_of"]

EXECUTING = "the iterator is already executing: a function or a read of its own asked it for more"

# The methods of iterators in which a thread is inside.
methods_inside: set[CodeType] = set()


class Service:
    """What some threads work for: their owner, the iterators that the starting thread is inside of,
    and what that thread works for itself.

    Args:
        owner: What starts them: an iterator, or a part of one.

    Attributes:
        consumer: The thread that waits for a result now; 0: none.
    """

    def __init__(self, owner: Any) -> None:
        self.consumer = 0
        # Without callbacks: Python loses an interrupt that arrives in one.
        self._served = [ref(each) for each in (owner, *_entered())]
        for service in services_of(get_ident()):
            self._served += service._served

    def __enter__(self) -> None:
        """This thread is one of them from now on."""
        services[get_ident()] = self

    def __exit__(self, *exc_info: object) -> None:
        services.pop(get_ident(), None)

    def serves(self, iterator: object) -> bool:
        """Whether an iterator may wait for these threads at any time."""
        return any(each() is iterator for each in self._served)

    def needs(self, thread: int) -> bool:
        """Whether one of these threads may wait for what a thread does."""
        return self in services_of(thread)


# By thread. Most threads have none.
services: dict[int, Service] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=services.clear)


def services_of(thread: int) -> Iterator[Service]:
    """The service of a thread, that of the thread which waits for it, and so on."""
    seen: set[int] = set()
    while thread not in seen and (service := services.get(thread)) is not None:
        yield service
        seen.add(thread)
        thread = service.consumer


def _entered() -> Iterator[Any]:
    """The iterators that this thread is inside of, from its stack. Noting them as it enters would
    cost every ``next`` something."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code in methods_inside:
            yield frame.f_locals["self"]
        frame = frame.f_back
